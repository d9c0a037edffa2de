#include "ledger/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <slidestream/error.hpp>
#include <slidestream/network.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "ledger/versions.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_network.hpp"
#include "networks/tissue_network.hpp"
#include "sink/background.hpp"
#include "sink/content_hash.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_formats.hpp"

namespace slidestream {

namespace {

constexpr const char* model_content_key = "the model's content";
constexpr const char* volumes_content_key = "the networks' content";

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
  // Volumes have networks, too; how neighbours share samples is a setting of stitching.
  if (op == "volume" && (section == "model" || section == "stitch")) return true;
  return op == section || (op == "model" && (section == "stitch" || section == "features"));
}

/// Whether some operator wants to know where tissue is.
bool wants_tissue(const Config& config) {
  return std::ranges::any_of(config.operators.run, [&](const auto& op) { return is_section_of(op, "tissue", config); });
}

bool decides(const ConfigKey& key, const Config& config) {
  constexpr std::array<std::string_view, 8> always = {"input.level",   "input.mpp",    "input.mpp_default",
                                                      "input.channel", "input.colour", "decode.on_bad_tile",
                                                      "output.maps",   "operators.run"};
  // Where networks and their runtime lie is nobody's business: `model_settings` and others say what they are.
  if (key.is_path && key.section == "tissue") return false;
  if (key.of_machine || (key.is_path && (key.section == "model" || key.section == "volume"))) return false;
  if (key.full_name() == "image.copy_levels") return config.image.compression == ImageCompression::copy;
  const auto is_of_format = [&](const ImageFormatTraits& format) { return key.section == format.settings; };
  if (std::ranges::any_of(image_formats(), is_of_format)) {
    return is_of_format(traits_of(config.image.format)) && !key.is_path;
  }
  // Of a pyramid in one file, or of files of another kind, these say nothing.
  if (key.full_name() == "image.zarr_version") return config.image.format == ImageFormat::ome_zarr;
  if (key.section == "image") {
    return config.image.format != ImageFormat::none && config.image.format != ImageFormat::automatic;
  }
  return std::ranges::find(always, key.full_name()) != always.end() ||
         std::ranges::any_of(config.operators.run,
                             [&](const auto& op) { return is_section_of(op, key.section, config); });
}

/// What the network is, and what computes it.
std::vector<std::pair<std::string, std::string>> model_settings(const Config& config) {
  if (config.model.network) return {{"the model", config.model.network->description()}};
  return {{"the model", std::filesystem::path(config.model.file).filename().string()},
          {model_content_key, networks::content_of_network(config.model.file)},
          {"the model's runtime", networks::computed_by(config)}};
}

/// Of the networks of volumes, in their order.
std::string content_of_volume_networks(const std::vector<std::string>& files) {
  // They have gigabytes.
  constexpr std::size_t most_at_once = 8;
  std::vector<std::string> content_of(files.size());
  std::atomic<std::size_t> next{0};
  at_once(std::min(files.size(), most_at_once), [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) content_of[i] = networks::content_of_network(files[i]);
  });
  std::string contents;
  for (const std::string& content : content_of) contents += content + "\n";
  return std::to_string(stable_hash(contents));
}

/// What the networks of volumes are, and what computes them.
std::vector<std::pair<std::string, std::string>> volume_settings(const Config& config) {
  const std::vector<std::string> files = networks::volume_networks(config.volume.networks);
  return {{"the networks", std::to_string(files.size())},
          {volumes_content_key, content_of_volume_networks(files)},
          {"the networks' runtime", networks::computed_by(config)}};
}

/// What files hold that the images' format reads.
std::vector<std::pair<std::string, std::string>> format_settings(const Config& config) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const ConfigKey& key : config_keys()) {
    if (!key.is_path || key.section != traits_of(config.image.format).settings) continue;
    const std::string file = std::get<std::string>(key.get(config));
    if (file.empty()) continue;
    const auto content = path_content(file);
    settings.emplace_back("the content of " + key.full_name(),
                          content ? std::to_string(content->digest) : "unreadable");
  }
  return settings;
}

/// What the reference slide's file holds, and the outlines beside it: other files in their places are another
/// reference.
std::vector<std::pair<std::string, std::string>> reference_settings(const Config& config) {
  // A run that can't read one fails all slides, with the cause.
  const auto text_of = [](const std::filesystem::path& file) {
    const auto content = path_content(file);
    return content ? std::to_string(content->digest) : std::string("unreadable");
  };
  const std::filesystem::path reference = config.stain.reference;
  std::vector<std::pair<std::string, std::string>> settings = {
      {"the digest of the stain reference", text_of(reference)}};
  if (config.tissue.source == TissueSource::geojson) {
    settings.emplace_back("the digest of the stain reference's outlines", text_of(outlines_beside(reference)));
  }
  return settings;
}

/// Whether a network in a file computes.
bool has_network_file(const Config& config) {
  return config.operators.runs("model") && !config.features.coords_only && !config.model.network &&
         !config.model.file.empty();
}

/// Empty where it isn't a key of the configuration.
std::string default_of(const std::string& name) {
  const auto key = std::ranges::find(config_keys(), name, &ConfigKey::full_name);
  return key == config_keys().end() ? std::string() : to_toml_value(key->get(Config{}));
}

}  // namespace

bool reads_outlines(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  return whole.tissue.source == TissueSource::geojson && wants_tissue(whole);
}

std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  resolve_image_format(whole);
  std::vector<std::pair<std::string, std::string>> settings = {{program_version_key, version()}};
  for (const ConfigKey& key : config_keys()) {
    if (decides(key, whole)) settings.emplace_back(key.full_name(), to_toml_value(key.get(whole)));
  }
  const bool has_callable = whole.operators.runs("model") && !whole.features.coords_only && whole.model.network;
  if (has_callable || has_network_file(whole)) std::ranges::move(model_settings(whole), std::back_inserter(settings));
  if (wants_tissue(whole)) std::ranges::move(networks::tissue_network_settings(whole), std::back_inserter(settings));
  if (whole.operators.runs("volume")) std::ranges::move(volume_settings(whole), std::back_inserter(settings));
  if (whole.operators.runs("stain") && !whole.stain.reference.empty()) {
    std::ranges::move(reference_settings(whole), std::back_inserter(settings));
  }
  if (whole.image.format != ImageFormat::none) std::ranges::move(format_settings(whole), std::back_inserter(settings));
  return settings;
}

std::vector<std::pair<std::string, std::string>> network_contents(const Config& config) {
  if (config.operators.runs("volume")) {
    return {{volumes_content_key, content_of_volume_networks(networks::volume_networks(config.volume.networks))}};
  }
  std::vector<std::pair<std::string, std::string>> contents;
  if (has_network_file(config)) {
    contents.emplace_back(model_content_key, networks::content_of_network(config.model.file));
  }
  if (wants_tissue(config) && !config.tissue.model.empty()) {
    contents.emplace_back(networks::tissue_content_key, networks::content_of_network(config.tissue.model));
  }
  return contents;
}

networks::NetworkState NetworkGuard::state() const {
  networks::NetworkState all;
  if (config_.operators.runs("volume")) {
    for (const std::string& file : networks::volume_networks(config_.volume.networks)) {
      all += networks::state_of_network(file);
    }
    return all;
  }
  if (has_network_file(config_)) all += networks::state_of_network(config_.model.file);
  if (wants_tissue(config_) && !config_.tissue.model.empty()) all += networks::state_of_network(config_.tissue.model);
  return all;
}

bool NetworkGuard::is_as_it_was(const std::vector<std::pair<std::string, std::string>>& settings) {
  const std::lock_guard lock(mutex_);
  networks::NetworkState now = state();
  if (now == state_) return true;
  if (now.written != state_.written) return false;
  for (const auto& content : network_contents(config_)) {
    if (std::ranges::find(settings, content) == settings.end()) return false;
  }
  // Taken before the files were read: a later change is seen the next time.
  state_ = std::move(now);
  return true;
}

const std::string& network_setting(const Config& config) noexcept {
  if (config.operators.runs("volume")) return config.volume.networks;
  return has_network_file(config) ? config.model.file : config.tissue.model;
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
  // A run has about a hundred. A configuration has 16 MiB, and what is in it may be escaped.
  constexpr std::size_t most_settings = 4096;
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  std::map<std::string, std::string> settings;
  std::size_t bytes = 0;
  Statement select(database, "SELECT name, value FROM settings");
  while (select.step()) {
    bytes += select.bytes(0).size() + select.bytes(1).size();
    if (settings.size() == most_settings || bytes > most_bytes) {
      database.fail_damaged("it has more than " + std::to_string(most_settings) + " settings, or than " +
                            std::to_string(most_bytes >> 20) + " MiB of them");
    }
    settings.emplace(select.text(0), select.text(1));
  }
  return settings;
}

namespace {

/// Of the configuration, and of the settings by their names.
std::int64_t configuration_digest(Database& database) {
  ContentHash hash;
  const auto add = [&hash](std::string_view text) {
    const std::string size = std::to_string(text.size()) + ":";
    for (const std::string_view part : {std::string_view(size), text}) {
      hash.add(std::as_bytes(std::span(part.data(), part.size())));
    }
  };
  Statement select(database, "SELECT value FROM meta WHERE name = 'configuration'");
  while (select.step()) add(select.bytes(0));
  for (const auto& [name, value] : stored_settings(database)) {
    add(name);
    add(value);
  }
  return static_cast<std::int64_t>(hash.value());
}

constexpr const char* damaged_configuration_text = "the configuration isn't what was written";

}  // namespace

void seal_configuration(Database& database) {
  Statement store(database, "INSERT OR REPLACE INTO meta VALUES('settings digest', ?1)");
  store.bind(1, configuration_digest(database)).run();
}

bool has_damaged_configuration(Database& database) {
  Statement lost(database,
                 "SELECT EXISTS (SELECT 1 FROM slides) AND NOT EXISTS (SELECT 1 FROM meta WHERE name = "
                 "'configuration')");
  if (lost.step() && lost.integer(0) != 0) return true;
  // Ledgers of earlier versions have no digest of it.
  Statement digest(database, "SELECT value FROM meta WHERE name = 'settings digest'");
  try {
    return digest.step() && digest.integer(0) != configuration_digest(database);
  } catch (const DamagedError&) {
    return true;
  }
}

std::optional<std::string> read_configuration(Database& database) {
  if (has_damaged_configuration(database)) database.fail_damaged(damaged_configuration_text);
  Statement select(database, "SELECT value FROM meta WHERE name = 'configuration'");
  return select.step() ? std::optional(select.text(0)) : std::nullopt;
}

std::optional<SettingDifference> changed_setting(Database& database,
                                                 const std::vector<std::pair<std::string, std::string>>& now) {
  const std::map<std::string, std::string> before = stored_settings(database);
  // Where all settings are this start's, only other things were damaged, and they are written anew.
  const bool is_same = before == std::map<std::string, std::string>(now.begin(), now.end());
  if (!is_same && has_damaged_configuration(database)) database.fail_damaged(damaged_configuration_text);
  return first_difference(now, before);
}

bool have_decided(Database& database) {
  Statement begun(database, "SELECT EXISTS (SELECT 1 FROM slides WHERE attempts > 0 OR state <> 'pending')");
  return begun.step() && begun.integer(0) != 0;
}

}  // namespace slidestream
