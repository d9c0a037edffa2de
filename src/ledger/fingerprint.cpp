#include "ledger/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <string_view>
#include <utility>

#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "ledger/versions.hpp"

namespace slidestream {

namespace {

/// All of [analysis] decides, and what the statistics asked for say.
bool decides(const ConfigKey& key, const Config& config) {
  for (const PlacedStatistic& placed : placed_statistics(config.analysis)) {
    if (key.section == placed.statistic->section) return true;
  }
  constexpr std::array<std::string_view, 3> others = {"input.level", "decode.on_bad_tile", "output.maps"};
  return key.section == "analysis" || std::ranges::find(others, key.full_name()) != others.end();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config) {
  std::vector<std::pair<std::string, std::string>> settings = {{program_version_key, version()}};
  for (const ConfigKey& key : config_keys()) {
    if (decides(key, config)) settings.emplace_back(key.full_name(), to_toml_value(key.get(config)));
  }
  return settings;
}

std::vector<std::pair<std::string, std::string>> ledger_settings(const Config& config) {
  std::vector<std::pair<std::string, std::string>> settings = {
      {ledger_version_key, std::to_string(current_ledger_version)}};
  for (auto& setting : deciding_settings(config)) settings.push_back(std::move(setting));
  return settings;
}

std::optional<SettingDifference> first_difference(const std::vector<std::pair<std::string, std::string>>& now,
                                                  const std::map<std::string, std::string>& before) {
  for (const auto& [key, value] : now) {
    const auto found = before.find(key);
    if (found == before.end()) return SettingDifference{key, value, "nothing"};
    if (found->second != value) return SettingDifference{key, value, one_line(found->second)};
  }
  return std::nullopt;
}

std::map<std::string, std::string> stored_settings(Database& database) {
  std::map<std::string, std::string> settings;
  Statement select(database, "SELECT name, value FROM settings");
  while (select.step()) settings.emplace(select.text(0), select.text(1));
  return settings;
}

}  // namespace slidestream
