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
  ConfigKey key =
      plain("model", "range", KeyKind::range, &Config::model, &ModelConfig::range,
            "Values that become black and white, that is 0 and the largest sample; others are clamped in an image, "
            "and fail the slide in classes without model.activation. [0.0, 0.0] means what MODEL.toml "
            "says, else [0.0, 1.0]. Default [0.0, 0.0].");
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
  return plain(
      "features", "coords_only", KeyKind::flag, &Config::features, &FeaturesConfig::coords_only,
      "Write the places of tiles alone, as coords/SLIDE.h5, with the operator model: no network is opened, and "
      "no pixels are read but for tissue. model.tile must be set, here or in MODEL.toml; model.file may be "
      "left out. Default false.");
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
           "The network, an ONNX file. Settings that are left open here the file of the same name that ends in .toml "
           "beside it has (MODEL.toml), in a section [model]. Default \"\"."),
      integer("model", "tile", &Config::model, &ModelConfig::tile, 0, 8192,
              "Side T of the network's square tiles, in pixels; 0 means what MODEL.toml says, else what the network's "
              "own shape says. Memory: two rows of tiles of its output. Default 0."),
      integer("model", "overlap", &Config::model, &ModelConfig::overlap, -1, 4096,
              "Pixels that neighbouring tiles share, 0 to T / 2; -1 means what MODEL.toml says, else 0. Default -1."),
      integer("model", "batch", &Config::model, &ModelConfig::batch, 0, 4096,
              "Tiles that the network gets at a time; 0 means what MODEL.toml says, else what the network's shape "
              "says, else 16. Memory: as many tiles, in and out, for each session. Default 0."),
      channels_key("mean", &ModelConfig::mean, -1e6,
                   "What is subtracted from red, green and blue behind model.scale: three numbers; none means what "
                   "MODEL.toml says, else 0. Default []."),
      channels_key("std", &ModelConfig::deviation, 1e-6,
                   "What red, green and blue are divided by behind model.mean: three numbers; none means what "
                   "MODEL.toml says, else 1. Default []."),
      real("model", "scale", &Config::model, &ModelConfig::scale, 0.0, 65535.0,
           "What a sample of 255 becomes before model.mean and model.std: 1.0 or 255.0 for most networks; 0 means "
           "what MODEL.toml says, else 1.0. Default 0.0."),
      micrometres("model", "mpp", &Config::model, &ModelConfig::mpp,
                  "Micrometres a pixel of the network's tiles, 0.001 to 1000: they are made from the coarsest "
                  "level that is finer. 0 means what MODEL.toml says, else the level's own pixels. Default 0.0."),
      or_minus_one(real(
          "model", "mpp_tolerance", &Config::model, &ModelConfig::mpp_tolerance, -1.0, most_mpp_tolerance,
          "Largest part of a level's pixels by which model.mpp may differ from them, so that they are used unchanged, "
          "0 to 0.25; "
          "pixels that are coarser by more fail the slide. -1 means what MODEL.toml says, else 0.02. Default -1.0.")),
      choice("model", "output", &Config::model, &ModelConfig::output, output_names,
             "What the network gives: image (pixels), classes (a channel for each class, two or more; the label is the "
             "channel whose value is largest after blending), labels (one channel of whole numbers, which are never "
             "blended), vector (features of the tile, for features/SLIDE.h5), or auto (what MODEL.toml says, else by "
             "the network's type and shape: whole numbers are labels, N x D is vector, N x C x H x W image). Default "
             "auto."),
      plain(
          "model", "output_name", KeyKind::text, &Config::model, &ModelConfig::output_name,
          "Name of the output that is used of a network with several; empty means what MODEL.toml says, else the only "
          "output whose shape fits. Default \"\"."),
      choice(
          "model", "activation", &Config::model, &ModelConfig::activation, activation_names,
          "Function of the network's values, applied before they are mapped to samples: none, softmax (over a pixel's "
          "channels), sigmoid (of each value), or auto (what MODEL.toml says, else none). With softmax and sigmoid "
          "model.range is 0 to 1. Scores of classes (logits) need softmax. Default auto."),
      model_range_key(),
      choice("model", "sample", &Config::model, &ModelConfig::sample, sample_names,
             "Samples of an image that a network gives: uint8, uint16, or auto (what MODEL.toml says, else uint8). "
             "Default auto."),
      choice("model", "where", &Config::model, &ModelConfig::where, where_names,
             "Which tiles the network gets: all, those with tissue, or auto (what MODEL.toml says, else all). "
             "Default auto."),
      or_minus_one(real(
          "model", "tissue_share", &Config::model, &ModelConfig::tissue_share, -1.0, 1.0,
          "With model.where = \"tissue\": the share of a tile that must be tissue, 0 to 1; 0 means any tissue, that is "
          "one pixel of the mask. -1 means what MODEL.toml says, else 0. Default -1.0.")),
      integer(
          "model", "ignore", &Config::model, &ModelConfig::ignore, 0, 65535,
          "Label of pixels that no tile was computed for: of classes up to 255, of labels up to the largest sample. A "
          "slide fails where the network gives it. 0 means what MODEL.toml says, else 255. Default 0."),
      of_machine(
          integer("model", "sessions", &Config::model, &ModelConfig::sessions, 0, 256,
                  "Batches that a device works on at a time; 0 means 3 on a GPU, and on the CPU as many as threads. "
                  "Memory: what the network takes for a batch, for each. Default 0.")),
      path(
          "model", "runtime", &Config::model, &ModelConfig::runtime,
          "ONNX Runtime's library (libonnxruntime.so), or a folder that holds it; empty means what the environment's "
          "SLIDESTREAM_ONNXRUNTIME names, else where the system or Python's package onnxruntime has it. Default \"\"."),
      of_machine(choice(
          "model", "provider", &Config::model, &ModelConfig::provider, provider_names,
          "Where the network runs: cpu, cuda, or auto (on GPUs where both ONNX Runtime and the machine have them, "
          "and pipeline.backend isn't cpu). Default auto.")),
      choice("model", "batches", &Config::model, &ModelConfig::batches, batches_names,
             "What fills a batch: slide (tiles of one slide, the last batch with zeros, so that it holds the same "
             "whenever it is run), mixed (tiles of several slides, which many small ones fill better), or auto (what "
             "MODEL.toml says, else slide). Memory with mixed: small slides that wait for others. Default auto."),
      coords_only_key(),
      choice(
          "features", "format", &Config::features, &FeaturesConfig::format, feature_format_names,
          "Files of features: h5 (features/SLIDE.h5, coords and features), pt (features/SLIDE.pt, the features alone "
          "as a tensor that PyTorch loads, for CLAM), or both. Default h5."),
  };
}

}  // namespace slidestream
