#include "ledger/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <slidestream/error.hpp>
#include <slidestream/network.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <string_view>
#include <utility>

#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "ledger/versions.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_network.hpp"

namespace slidestream {

namespace {

/// Whether the settings of a section decide what an operator gives.
bool is_section_of(const std::string& op, std::string_view section, const Config& config) {
  if (op == "spectrum") {
    return section == "analysis" || std::ranges::any_of(placed_statistics(config.analysis), [&](const auto& placed) {
             return section == placed.statistic->section;
           });
  }
  if (section == "tissue") {
    // Stains are fitted inside the mask, and networks get tissue alone where they are told to.
    return op == section || op == "stain" || (op == "model" && config.model.where == ModelWhere::tissue);
  }
  return op == section || (op == "model" && section == "stitch");
}

bool decides(const ConfigKey& key, const Config& config) {
  constexpr std::array<std::string_view, 5> always = {"input.level", "input.mpp", "decode.on_bad_tile", "output.maps",
                                                      "operators.run"};
  // Where the model and its runtime lie is nobody's business: `model_settings` says what they are.
  if (key.of_machine || (key.section == "model" && key.is_path)) return false;
  if (key.full_name() == "image.copy_levels") return config.image.compression == ImageCompression::copy;
  if (key.section == "image") return config.image.format != ImageFormat::none;
  return std::ranges::find(always, key.full_name()) != always.end() ||
         std::ranges::any_of(config.operators.run,
                             [&](const auto& op) { return is_section_of(op, key.section, config); });
}

/// What the network is, and what computes it.
std::vector<std::pair<std::string, std::string>> model_settings(const Config& config) {
  if (config.model.network) return {{"the model", config.model.network->description()}};
  return {{"the model", std::filesystem::path(config.model.file).filename().string()},
          {"the model's content", networks::content_of_network(config.model.file)},
          {"the model's runtime", networks::computed_by(config)}};
}

/// Empty where it isn't a key of the configuration.
std::string default_of(const std::string& name) {
  const auto key = std::ranges::find(config_keys(), name, &ConfigKey::full_name);
  return key == config_keys().end() ? std::string() : to_toml_value(key->get(Config{}));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  std::vector<std::pair<std::string, std::string>> settings = {{program_version_key, version()}};
  for (const ConfigKey& key : config_keys()) {
    if (decides(key, whole)) settings.emplace_back(key.full_name(), to_toml_value(key.get(whole)));
  }
  const bool has_model = whole.operators.runs("model") && (whole.model.network || !whole.model.file.empty());
  if (has_model) std::ranges::move(model_settings(whole), std::back_inserter(settings));
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
    // A key that the results are older than had its default.
    if (found == before.end() && value == default_of(key)) continue;
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

bool have_decided(Database& database) {
  Statement begun(database, "SELECT EXISTS (SELECT 1 FROM slides WHERE attempts > 0 OR state <> 'pending')");
  return begun.step() && begun.integer(0) != 0;
}

}  // namespace slidestream
