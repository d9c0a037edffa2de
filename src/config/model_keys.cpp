#include "config/model_keys.hpp"

#include <cmath>

#include "config/key_makers.hpp"

namespace slidestream {

namespace {

/// Of red, green and blue.
ConfigKey channels_key(std::string_view name, std::vector<double> ModelConfig::*member, double low,
                       std::string_view comment) {
  ConfigKey key = plain("model", name, KeyKind::reals, &Config::model, member, comment);
  key.low = low;
  key.high = 1e6;
  key.check = [](const ConfigValue& value) {
    const std::size_t numbers = std::get<std::vector<double>>(value).size();
    if (numbers == 0 || numbers == 3) return std::string();
    return "has " + std::to_string(numbers) + " numbers; expected 3, for red, green and blue, or none";
  };
  return key;
}

ConfigKey model_range_key() {
  ConfigKey key = plain("model", "range", KeyKind::range, &Config::model, &ModelConfig::range,
                        "Values mapped to 0 and the largest sample. Others are clamped in images, and fail the slide "
                        "in classes without activation. [0.0, 0.0]: open, [0.0, 1.0]. Default [0.0, 0.0].");
  key.check = [](const ConfigValue& value) {
    const auto& [low, high] = std::get<std::array<double, 2>>(value);
    if (low == 0.0 && high == 0.0) return std::string();
    const double width = high - low;
    if (!(low < high)) return std::string("is empty: the first number must be below the second");
    return std::isfinite(width) && width >= 1e-30 && width <= 1e30 ? std::string()
                                                                   : std::string("is too wide or too narrow");
  };
  return key;
}

ConfigKey coords_only_key() {
  return plain("features", "coords_only", KeyKind::flag, &Config::features, &FeaturesConfig::coords_only,
               "Writes only tiles' positions, coords/SLIDE.h5, without model.file. Needs model.tile, also from "
               "MODEL.toml. Default false.");
}

}  // namespace

std::vector<ConfigKey> model_keys() {
  static const std::vector<std::string> output_names = {"auto", "image", "classes", "labels", "vector"};
  static const std::vector<std::string> activation_names = {"auto", "none", "softmax", "sigmoid"};
  static const std::vector<std::string> sample_names = {"auto", "uint8", "uint16"};
  static const std::vector<std::string> where_names = {"auto", "all", "tissue"};
  static const std::vector<std::string> provider_names = {"auto", "cpu", "cuda"};
  static const std::vector<std::string> feature_format_names = {"h5", "pt", "both"};
  static const std::vector<std::string> batches_names = {"auto", "slide", "mixed"};
  return {
      path("model", "file", &Config::model, &ModelConfig::file,
           "Network, an ONNX file. Open keys take their value from [model] in MODEL.toml, the file of the same name "
           "with .toml, else what follows \"open\". Default \"\"."),
      integer("model", "tile", &Config::model, &ModelConfig::tile, 0, 8192,
              "Side T of tiles, in pixels; 0: open, the network's own. Memory: two rows of output tiles. Default 0."),
      integer("model", "overlap", &Config::model, &ModelConfig::overlap, -1, 4096,
              "Pixels that neighbours share, 0 to T / 2; -1: open, 0. Default -1."),
      integer("model", "batch", &Config::model, &ModelConfig::batch, 0, 4096,
              "Tiles per batch; 0: open, the network's own, else 16. Memory: a batch's input and output per session. "
              "Default 0."),
      channels_key("mean", &ModelConfig::mean, -1e6,
                   "Subtracted from red, green and blue after model.scale; empty: open, 0. Default []."),
      channels_key("std", &ModelConfig::deviation, 1e-6,
                   "Divisors of red, green and blue after model.mean; empty: open, 1. Default []."),
      real("model", "scale", &Config::model, &ModelConfig::scale, 0.0, 65535.0,
           "Value of 255 before model.mean and model.std, mostly 1.0 or 255.0. 0: open, 1.0. "
           "Default 0.0."),
      micrometres("model", "mpp", &Config::model, &ModelConfig::mpp,
                  "Micrometres per pixel of tiles, 0.001 to 1000, from the coarsest finer level. 0: open, the level's. "
                  "Default 0.0."),
      or_minus_one(real("model", "mpp_tolerance", &Config::model, &ModelConfig::mpp_tolerance, -1.0, most_mpp_tolerance,
                        "Share by which a level's pixels may differ from model.mpp to be used unchanged, 0 to 0.25. "
                        "Coarser levels fail the slide. -1: open, 0.02. Default -1.0.")),
      choice("model", "output", &Config::model, &ModelConfig::output, output_names,
             "What the network returns. image: pixels. classes: a channel per class. labels: one channel of whole "
             "numbers. vector: features per tile. auto: open: whole numbers are labels, N x D is vector, N x C x H x W "
             "is image. Default auto."),
      plain("model", "output_name", KeyKind::text, &Config::model, &ModelConfig::output_name,
            "Output's name. Empty: open, the only one that fits. Default \"\"."),
      choice("model", "activation", &Config::model, &ModelConfig::activation, activation_names,
             "Function before model.range: none, softmax over channels, for scores of classes (logits), or sigmoid per "
             "value. Both set model.range to 0 to 1. auto: open, none. Default auto."),
      model_range_key(),
      choice("model", "sample", &Config::model, &ModelConfig::sample, sample_names,
             "Samples of image or labels: uint8, uint16, or auto: open, uint8. Default auto."),
      choice("model", "where", &Config::model, &ModelConfig::where, where_names,
             "Tiles to compute: all, tissue (those with some), or auto: open, all. Default auto."),
      or_minus_one(real("model", "tissue_share", &Config::model, &ModelConfig::tissue_share, -1.0, 1.0,
                        "With model.where = \"tissue\": smallest share of tissue in a tile, 0 to 1; 0: one mask pixel. "
                        "-1: open, 0. Default -1.0.")),
      integer("model", "ignore", &Config::model, &ModelConfig::ignore, 0, 65535,
              "Label of pixels without a computed tile, up to 255 for classes, the largest sample for labels. Returned "
              "by a network it fails the slide; in volumes it doesn't vote. 0: open, 255 (volumes: the largest "
              "label, and no class). Default 0."),
      of_machine(integer("model", "sessions", &Config::model, &ModelConfig::sessions, 0, 256,
                         "Batches per device at a time; 0: 3 on a GPU (volumes: 5), one per thread on the CPU. Memory: "
                         "the network's for each. Default 0.")),
      path("model", "runtime", &Config::model, &ModelConfig::runtime,
           "ONNX Runtime's libonnxruntime.so, or its folder. Empty: searched (docs/models.md). Default \"\"."),
      of_machine(choice("model", "provider", &Config::model, &ModelConfig::provider, provider_names,
                        "Where the network runs: cpu, or cuda, which fails without GPUs. auto: cuda if possible and "
                        "pipeline.backend isn't cpu. Default auto.")),
      choice("model", "batches", &Config::model, &ModelConfig::batches, batches_names,
             "Tiles that share a batch (docs/models.md): of one slide (slide), or of several, faster for small slides "
             "(mixed). auto: open, slide. Memory with mixed: slides that wait for others. Default auto."),
      coords_only_key(),
      choice("features", "format", &Config::features, &FeaturesConfig::format, feature_format_names,
             "Files of features: h5 (features/SLIDE.h5), pt (features/SLIDE.pt, without coordinates, for CLAM) or "
             "both. Default h5."),
  };
}

}  // namespace slidestream
