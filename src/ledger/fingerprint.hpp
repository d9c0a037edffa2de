#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>

#include "ledger/database.hpp"
#include "networks/onnx_files.hpp"

namespace slidestream {

/// The settings that decide results, as key and TOML value, in the order of the configuration; the program's version
/// comes first. Of operators they are those of the ones that run, and of images all where there are any. Where the work
/// is done, how much memory it takes and what is done about failures isn't among them.
std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config);

/// Whether slides' masks are made of given outlines, and some operator wants them.
bool reads_outlines(const Config& config);

/// Of `deciding_settings` those that are digests of networks' files, which it reads.
std::vector<std::pair<std::string, std::string>> network_contents(const Config& config);

/// Tells whether the files of the run's networks are as they were when this was made. What a run computes is of its
/// settings only where they are so at its end, and this was made before they were looked at. Thread-safe.
class NetworkGuard {
 public:
  explicit NetworkGuard(const Config& config) : config_(config), state_(state()) {}

  /// \param settings  that hold the digests at the start. Where a change may have been one of names or permissions
  ///   alone, they are compared with those of now
  bool is_as_it_was(const std::vector<std::pair<std::string, std::string>>& settings);

 private:
  networks::NetworkState state() const;

  const Config& config_;
  std::mutex mutex_;
  networks::NetworkState state_;  ///< guarded by mutex_
};

/// What the configuration names where a guard looks: the first of several.
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

/// The first of `now` that the ledger has otherwise. \throws DamagedError where what it has isn't what was written.
std::optional<SettingDifference> changed_setting(Database& database,
                                                 const std::vector<std::pair<std::string, std::string>>& now);

/// The text of the run's configuration; nothing where no start came so far. \throws DamagedError where that, or the
/// settings, aren't what was written.
std::optional<std::string> read_configuration(Database& database);

/// Whether the run's configuration or its settings aren't what was written, or slides have none. \throws OutputError.
bool has_damaged_configuration(Database& database);

/// Keeps the digest that this is found by.
void seal_configuration(Database& database);

/// Whether a slide was ever begun. Without one there is nothing that the settings of a ledger decided: a start that
/// came to nothing, for want of memory say, binds nobody to them. \throws OutputError.
bool have_decided(Database& database);

}  // namespace slidestream
