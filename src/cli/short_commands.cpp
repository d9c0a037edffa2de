#include "cli/short_commands.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "cli/run_command.hpp"
#include "config/keys.hpp"

namespace slidestream::cli {

namespace {

struct ShortCommand {
  const char* name;
  const char* operator_name;
  const char* description;
  std::vector<KeyOption> own;
  std::vector<std::pair<std::string, std::string>> defaults;  ///< keys that neither options nor files set
  const char* footer;
};

constexpr KeyOption model_option = {"--model", "model", "file", "The network, an ONNX file"};
constexpr KeyOption format_option = {"--to", "image", "format", "Format of the images"};
constexpr KeyOption where_option = {"--where", "model", "where", "Tiles that the network gets"};
constexpr KeyOption mpp_option = {"--mpp", "model", "mpp", "Micrometres per pixel of the network's tiles"};

const std::vector<ShortCommand>& short_commands() {
  static const std::vector<ShortCommand> commands = {
      {"stain",
       "stain",
       "Normalise the stains of slides, or separate them",
       {{"--reference", "stain", "reference", "A slide whose stains the others get"},
        {"--stain", "stain", "output", "What the images hold"},
        format_option},
       {},
       "Examples:\n"
       "  pipeline stain slides/ -o normalised                          by the published reference, as OME-TIFF\n"
       "  pipeline stain slides/ --reference best.svs -o normalised     by a slide of your own\n"
       "  pipeline stain slide.svs --stain hematoxylin -o nuclei        one stain alone"},
      {"tissue",
       "tissue",
       "Find the tissue of slides: mask, outlines, areas",
       {{"--source", "tissue", "source", "Where the mask comes from"},
        {"--model", "tissue", "model", "A network that finds tissue, an ONNX file"}},
       {},
       "Examples:\n"
       "  pipeline tissue slides/ -o found              masks, and outlines with their areas, in found/images\n"
       "  pipeline tissue slides/ --source geojson      outlines from SLIDE.geojson beside each slide\n"
       "  pipeline tissue slides/ --model found.onnx    as a network finds it"},
      {"features",
       "model",
       "Run a network over the tiles with tissue and write its vectors as HDF5",
       {model_option, where_option, mpp_option},
       {{"model.output", "vector"}, {"model.where", "tissue"}},
       "Tiles without tissue are left out, unless MODEL.toml or --where says otherwise.\n\n"
       "Examples:\n"
       "  pipeline features slides/ --model features.onnx -o vectors     vectors/features/NAME.h5\n"
       "  pipeline features slides/ --model features.onnx --mpp 0.5 --where all -o vectors\n"
       "  pipeline features slides/ -s features.coords_only=true -s model.tile=256 -o places    coords/NAME.h5"},
      {"segment",
       "model",
       "Run a network over slides and write the class of each pixel as an image",
       {model_option, where_option, mpp_option, format_option},
       {{"model.output", "classes"}},
       "The network gives a channel per class, two or more, unless MODEL.toml says otherwise. -s model.output=image\n"
       "writes its values instead, such as the one channel of a mask. Channels are probabilities; a network of scores\n"
       "(logits) needs -s model.activation=softmax.\n\n"
       "Examples:\n"
       "  pipeline segment slides/ --model unet.onnx -o classes\n"
       "  pipeline segment slides/ --model unet.onnx --where tissue --to ome-zarr -o classes"},
  };
  return commands;
}

/// Says so where a format of features is asked for, and the network makes none.
void warn_of_unused_format(const RunOptions& options) {
  constexpr std::string_view key = "features.format";
  const bool asked = std::ranges::any_of(options.settings, [&](const std::string& setting) {
    return setting.substr(0, setting.find_first_of(" =")) == key;
  });
  if (!asked) return;
  const Config config = effective_config(options);
  const ModelOutput output = config.model.output;
  // Where it is open, the network says it.
  if (config.features.coords_only || output == ModelOutput::vector || output == ModelOutput::automatic) return;
  spdlog::warn("features.format is for files of features, and decides nothing here: model.output is \"{}\"",
               find_key("model", "output")->choices[static_cast<std::size_t>(output)]);
}

int run_short(const ShortCommand& command, RunOptions options) {
  constexpr std::string_view fixed = "operators.run";
  for (const std::string& setting : options.settings) {
    if (setting.substr(0, setting.find_first_of(" =")) != fixed) continue;
    throw ConfigError(std::string(fixed) + " can't be set here: `pipeline " + command.name + "` runs the operator " +
                      command.operator_name + "; use `pipeline SLIDE --operators ...`");
  }
  options.keys.emplace_back(fixed, command.operator_name);
  options.defaults = command.defaults;
  const auto lacks_network = [](const Config& config) {
    return config.model.file.empty() && !config.features.coords_only;
  };
  if (std::string_view(command.operator_name) == "model" && !options.print_config &&
      lacks_network(effective_config(options))) {
    throw ConfigError(std::string("which network? Name its ONNX file: pipeline ") + command.name +
                      " SLIDE --model FILE.onnx");
  }
  if (std::string_view(command.operator_name) == "model") warn_of_unused_format(options);
  return run(options);
}

}  // namespace

std::vector<std::shared_ptr<RunOptions>> add_short_commands(CLI::App& app, Action& action) {
  std::vector<std::shared_ptr<RunOptions>> all;
  for (const ShortCommand& command : short_commands()) {
    const auto options = std::make_shared<RunOptions>();
    CLI::App* added = app.add_subcommand(command.name, command.description);
    added->add_option("slides", options->inputs, "Slides, folders, .list or .csv files, as for a run")
        ->type_name("SLIDE|DIR|LIST|-");
    add_run_options(*added, *options, command.own);
    added->footer(command.footer);
    added->callback(
        [&action, &command, options] { action = [&command, options] { return run_short(command, *options); }; });
    all.push_back(options);
  }
  return all;
}

}  // namespace slidestream::cli
