#include "networks/tissue_network.hpp"

#include <filesystem>
#include <functional>
#include <slidestream/error.hpp>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_network.hpp"

namespace slidestream::networks {
namespace {

std::string settings_file(const std::string& file) {
  return std::filesystem::path(file).replace_extension(".toml").filename().string();
}

[[noreturn]] void refuse(const Config& config, const std::string& what) {
  throw ConfigError(config.tissue.model + ": " + what);
}

/// The network as one of [model], with what MODEL.toml says.
Config as_model(const Config& config) {
  Config own;
  own.operators.run = {"model"};
  own.input.max_seconds = config.input.max_seconds;
  own.model.file = config.tissue.model;
  read_model_file(own);
  if (own.model.where == ModelWhere::tissue) refuse(config, "model.where is \"tissue\", which it is there to find");
  // Labels are kept, and the largest class is found here.
  if (own.model.output == ModelOutput::classes) own.model.output = ModelOutput::image;
  own.model.runtime = config.model.runtime;
  own.model.provider = ModelProvider::cpu;
  own.model.sample = ModelSample::uint16;
  own.model.sessions = 1;
  return own;
}

/// \throws ConfigError where it doesn't give what tissue can be found by
void check_output(const Config& config, const Network& network) {
  const NetworkOutput output = network.output();
  if (output.kind == NetworkOutput::Kind::labels) return;
  if (output.kind == NetworkOutput::Kind::vector)
    refuse(config, "it gives features; expected one or two channels of pixels");
  if (output.channels > 2) {
    refuse(config, "it gives " + std::to_string(output.channels) + " channels; expected one or two");
  }
  if (config.tissue.label > 1) {
    refuse(config, "tissue.class is " + std::to_string(config.tissue.label) + ", and it has the classes 0 and 1");
  }
}

/// Calls what throws ConfigError, and says which setting named the network, and where its own are.
template <class Result>
Result naming(const Config& config, const std::function<Result()>& call) {
  try {
    return call();
  } catch (const ConfigError& error) {
    std::string text = std::string("tissue.model: ") + error.what();
    const bool has_settings = text.find(" model.") != std::string::npos;
    // That one is the run's.
    const bool of_runtime = text.find(" model.runtime") != std::string::npos;
    if (has_settings && !of_runtime) {
      text += " (settings of this network are in " + settings_file(config.tissue.model) + ")";
    }
    throw ConfigError(text);
  }
}

}  // namespace

std::shared_ptr<const Network> open_tissue_network(const Config& config) {
  if (config.tissue.model.empty()) return nullptr;
  return naming<std::shared_ptr<const Network>>(config, [&] {
    auto network = open_network(as_model(config), NetworkRole::tissue);
    if (!network->tiles().mpp) refuse(config, "the size of its pixels isn't known: set model.mpp");
    check_output(config, *network);
    return network;
  });
}

std::vector<std::pair<std::string, std::string>> tissue_network_settings(const Config& config) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const std::string name = "tissue.model";
  if (config.tissue.model.empty()) return {{name, to_toml_value(std::string())}};
  return naming<Settings>(config, [&] {
    const Config own = as_model(config);
    std::string settings;
    for (const ConfigKey& key : config_keys()) {
      if (key.section != "model" || key.is_path || key.of_machine || key.get(own) == key.get(Config{})) continue;
      settings += (settings.empty() ? "" : ", ") + std::string(key.name) + " = " + to_toml_value(key.get(own));
    }
    return Settings{{name, to_toml_value(std::filesystem::path(config.tissue.model).filename().string())},
                    {tissue_content_key, content_of_network(config.tissue.model)},
                    {"tissue.model's description", settings},
                    {"tissue.model's runtime", computed_by(own)}};
  });
}

}  // namespace slidestream::networks
