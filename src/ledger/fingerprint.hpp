#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>

#include "ledger/database.hpp"

namespace slidestream {

/// The settings that decide results, as key and TOML value, in the order of the configuration; the program's version
/// comes first. Of operators they are those of the ones that run, and of images all where there are any. Where the work
/// is done, how much memory it takes and what is done about failures isn't among them.
std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config);

/// Whether slides' masks are made of given outlines, and some operator wants them.
bool reads_outlines(const Config& config);

/// What the system says of the files of the run's network, or of the networks of volumes, as
/// `networks::state_of_network`; empty without one. What a run computes is of these settings only where it is the same
/// at its end as before they were looked at.
std::string network_state(const Config& config);

/// What the configuration names where `network_state` looks: the first of several.
const std::string& network_setting(const Config& config) noexcept;

inline constexpr const char* program_version_key = "the program's version";
inline constexpr const char* ledger_version_key = "the ledger's version";

/// What a ledger of this program says of how its results came about: `deciding_settings`, and the version that the
/// ledger has.
std::vector<std::pair<std::string, std::string>> ledger_settings(const Config& config);

/// A setting that two runs have otherwise.
struct SettingDifference {
  std::string key;
  std::string now;
  std::string before;  ///< "nothing" where there was no such setting

  /// Such as "analysis.stride is 64 here and was 128".
  std::string text() const { return key + " is " + now + " here and was " + before; }
};

/// The first of `now` that `before` has otherwise; nothing when all agree.
std::optional<SettingDifference> first_difference(const std::vector<std::pair<std::string, std::string>>& now,
                                                  const std::map<std::string, std::string>& before);

/// Those that a ledger was made with. \throws OutputError.
std::map<std::string, std::string> stored_settings(Database& database);

/// Whether a slide was ever begun. Without one there is nothing that the settings of a ledger decided: a start that
/// came to nothing, for want of memory say, binds nobody to them. \throws OutputError.
bool have_decided(Database& database);

}  // namespace slidestream
