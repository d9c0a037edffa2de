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
                        "Millimetres between networks' samples along z, y, x. Volumes are resampled, and labels back. "
                        "Not with blend. Empty: no resampling. Default [].");
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
      path("volume", "networks", &Config::volume, &VolumeConfig::networks,
           "An ONNX file, or a folder with one, or with one per fragment by number (network-01.onnx, ...). Default "
           "\"\"."),
      axes_key("fragment", &VolumeConfig::fragment, 4096,
               "Samples per fragment along z, y, x; x is the file's fastest axis. Memory: the network's for one per "
               "session. Default [96, 128, 88]."),
      axes_key("grid", &VolumeConfig::grid, 256,
               "Fragments along z, y, x, spread evenly. Smaller volumes are padded evenly. Default [3, "
               "3, 3]."),
      real("volume", "fill", &Config::volume, &VolumeConfig::fill, -1e30, 1e30, "Padding's value. Default 0.0."),
      spacing_key(),
      choice("volume", "fusion", &Config::volume, &VolumeConfig::fusion, fusion_names,
             "How fragments become one volume (docs/volumes.md, with memory). vote: the most frequent label. mean: the "
             "class with the largest mean score. blend: an image of one channel. Default vote."),
      of_machine(integer("volume", "in_flight", &Config::volume, &VolumeConfig::in_flight, 0, 4096,
                         "Most volumes in memory; 0: 8. Default 0.")),
      of_machine(integer("volume", "memory_mib", &Config::volume, &VolumeConfig::memory_mib, 0, std::int64_t{1} << 30,
                         "Memory for networks and volumes, in MiB; other work waits. 0: four fifths of what is "
                         "available. Default 0.")),
  };
}

}  // namespace slidestream
