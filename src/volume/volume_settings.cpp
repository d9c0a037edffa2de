#include "volume/volume_settings.hpp"

#include <algorithm>
#include <array>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/keys.hpp"
#include "config/toml_text.hpp"

namespace slidestream::volume {
namespace {

/// Whether a key is of slides alone. Limits and settings of machines, which runs share, aren't.
bool is_of_slides(const ConfigKey& key) {
  constexpr std::array<std::string_view, 8> of_networks = {"ignore",     "runtime", "provider", "sessions",
                                                           "activation", "range",   "sample",   "output_name"};
  constexpr std::array<std::string_view, 5> of_slides = {"level", "mpp", "mpp_default", "channel", "colour"};
  if (key.section == "model") return std::ranges::find(of_networks, key.name) == of_networks.end();
  if (key.section == "stitch") return key.name != "weights";
  if (key.section == "input") return std::ranges::find(of_slides, key.name) != of_slides.end();
  return key.section == "image";
}

}  // namespace

void refuse_settings_of_slides(const Config& config) {
  const Config plain;
  for (const ConfigKey& key : config_keys()) {
    const bool is_of_blend = key.section == "stitch" && key.name == "weights";
    const bool is_refused = is_of_slides(key) || (is_of_blend && config.volume.fusion != VolumeFusion::blend);
    if (!is_refused || key.get(config) == key.get(plain)) continue;
    throw ConfigError(key.full_name() + " is " + to_toml_value(key.get(config)) +
                      (is_of_blend ? "; only volume.fusion = \"blend\" weighs fragments"
                                   : "; it is a setting of slides, and volumes have no use for it"));
  }
}

void check_scores(const Config& config) {
  ScoreSettings settings;
  settings.fusion = config.volume.fusion;
  settings.activation = config.model.activation;
  if (config.model.range != std::array<double, 2>{0.0, 0.0}) settings.range = config.model.range;
  if (config.model.ignore != 0) settings.ignore = config.model.ignore;
  settings.has_sample = config.model.sample != ModelSample::automatic;
  check_scores(settings);
}

void check_scores(const ScoreSettings& settings) {
  const VolumeFusion fusion = settings.fusion;
  const std::string model = settings.model_part;
  const std::string of_fusion = std::string(settings.volume_part) + "fusion = ";
  const bool is_softmax = settings.activation == ModelActivation::softmax;
  const bool has_activation = is_softmax || settings.activation == ModelActivation::sigmoid;
  const std::string activation = model + "activation is " + (is_softmax ? R"("softmax")" : R"("sigmoid")");
  std::string range;
  if (settings.range) {
    const std::vector<double> both(settings.range->begin(), settings.range->end());
    range = model + "range is " + to_toml_value(both);
  }
  if (fusion == VolumeFusion::blend && settings.has_sample) {
    throw ConfigError(model + "sample is of labels; images of volumes are float32");
  }
  if (fusion == VolumeFusion::vote && (settings.range || has_activation)) {
    throw ConfigError((settings.range ? range : activation) + "; " + of_fusion + "\"vote\" takes labels as they are");
  }
  if (fusion != VolumeFusion::vote && settings.ignore) {
    throw ConfigError(model + "ignore is " + std::to_string(*settings.ignore) + "; only " + of_fusion +
                      "\"vote\" leaves a label out");
  }
  if (settings.range && has_activation && *settings.range != std::array<double, 2>{0.0, 1.0}) {
    throw ConfigError(range + ", and " + activation + ", which gives values from 0 to 1; leave " + model + "range out");
  }
  if (fusion == VolumeFusion::blend && is_softmax) {
    throw ConfigError(activation + "; an image of one channel has no use for it");
  }
}

}  // namespace slidestream::volume
