#include "config/volume_keys.hpp"

#include <string>
#include <string_view>

#include "config/key_makers.hpp"

namespace slidestream {

namespace {

/// Three whole numbers, along z, y, x.
ConfigKey axes_key(std::string_view name, std::vector<std::int64_t> VolumeConfig::*member, double high,
                   std::string_view comment) {
  ConfigKey key = plain("volume", name, KeyKind::integers, &Config::volume, member, comment);
  key.low = 1;
  key.high = high;
  key.check = [](const ConfigValue& value) {
    const std::size_t numbers = std::get<std::vector<std::int64_t>>(value).size();
    return numbers == 3 ? std::string() : "has " + std::to_string(numbers) + " numbers; expected 3, along z, y, x";
  };
  return key;
}

/// Three lengths along z, y, x, or none.
ConfigKey spacing_key() {
  ConfigKey key = plain("volume", "spacing", KeyKind::reals, &Config::volume, &VolumeConfig::spacing,
                        "Millimetres between the samples that networks see, along z, y, x: volumes are resampled to "
                        "that, and labels back to the volume's own grid. Not with blend. Empty means the volume's own "
                        "samples. Default [].");
  key.low = 0.001;
  key.high = 1000.0;
  key.check = [](const ConfigValue& value) {
    const std::size_t numbers = std::get<std::vector<double>>(value).size();
    return numbers == 3 || numbers == 0
               ? std::string()
               : "has " + std::to_string(numbers) + " numbers; expected 3, along z, y, x, or none";
  };
  return key;
}

}  // namespace

std::vector<ConfigKey> volume_keys() {
  static const std::vector<std::string> fusion_names = {"vote", "mean", "blend"};
  return {
      path(
          "volume", "networks", &Config::volume, &VolumeConfig::networks,
          "The network of `pipeline volume`, an ONNX file, or a folder: with one .onnx file, or with one per fragment, "
          "which are taken in the order of their names (network-01.onnx, ...). Default \"\"."),
      axes_key(
          "fragment", &VolumeConfig::fragment, 4096,
          "Samples of a fragment along z, y, x: what the networks take. The file's fastest axis is x. Memory: what "
          "a network takes for one, for each session. Default [96, 128, 88]."),
      axes_key(
          "grid", &VolumeConfig::grid, 256,
          "Fragments along z, y, x. Of n fragments along an axis, fragment i begins at i (W - T) / (n - 1), rounded "
          "half up, for W samples of the volume and T of a fragment. A volume smaller than a fragment is padded "
          "evenly. Default [3, 3, 3]."),
      real("volume", "fill", &Config::volume, &VolumeConfig::fill, -1e30, 1e30,
           "Value beyond a volume that is smaller than a fragment. Default 0.0."),
      spacing_key(),
      choice("volume", "fusion", &Config::volume, &VolumeConfig::fusion, fusion_names,
             "How fragments that overlap become one volume: vote (the label of most fragments, the lowest of equals), "
             "mean (scores of classes are averaged, the largest wins), or blend (an image of one channel). Scores need "
             "model.activation or model.range with mean, images model.range with blend. Memory: 2 bytes per sample of "
             "all fragments; with mean 2 bytes per voxel, and 4 bytes per class of those in two layers of fragments. "
             "Default vote."),
      of_machine(integer("volume", "in_flight", &Config::volume, &VolumeConfig::in_flight, 0, 4096,
                         "Volumes in memory at a time, at most; 0 means 8. A network takes its fragment of all of them "
                         "in a row. Default 0.")),
      of_machine(integer("volume", "memory_mib", &Config::volume, &VolumeConfig::memory_mib, 0, std::int64_t{1} << 30,
                         "Memory for networks, for what they compute, and for volumes, in MiB. Work that doesn't fit "
                         "waits. 0 means four fifths of what is available. Default 0.")),
  };
}

}  // namespace slidestream
