#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <slidestream/error.hpp>
#include <sstream>
#include <string>
#include <vector>

/// \file
/// What benchmarks of tiles on a GPU are told in common.

namespace slidestream::bench {

struct TileOptions {
  std::vector<std::string> slides;   ///< that the tiles are of
  std::vector<std::uint32_t> tiles;  ///< how many a launch, one figure each
  int repeat;
  std::string json;  ///< the report's file; empty: none
};

/// Numbers with commas between them.
inline std::vector<std::uint32_t> numbers_in(const std::string& list) {
  std::vector<std::uint32_t> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    numbers.push_back(static_cast<std::uint32_t>(std::strtoul(part.c_str(), nullptr, 10)));
  }
  return numbers;
}

/// What tiles are decoded to: luminance, RGB, and both at once; or the one of these that is `wanted`. \throws
/// ConfigError.
inline std::vector<std::string> tile_formats(const std::string& wanted = "") {
  const std::vector<std::string> formats = {"luminance", "rgb", "both"};
  if (wanted.empty()) return formats;
  if (std::ranges::count(formats, wanted) == 0) throw ConfigError("--format is luminance, rgb or both");
  return {wanted};
}

/// The value that follows an argument. \throws ConfigError when there is none.
using ArgumentValue = std::function<std::string()>;

/// Reads a command line. \param takes_other  an argument that isn't one of these options; when that says false, it is a
/// slide. \throws ConfigError.
inline void parse_tile_options(
    int argc, char** argv, TileOptions& options,
    const std::function<bool(const std::string&, const ArgumentValue&)>& takes_other =
        [](const std::string&, const ArgumentValue&) { return false; }) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const ArgumentValue value = [&]() -> std::string {
      if (i + 1 == argc) throw ConfigError(argument + " needs a value");
      return argv[++i];
    };
    if (argument == "--tiles") {
      options.tiles = numbers_in(value());
    } else if (argument == "--repeat") {
      options.repeat = std::max(1, std::atoi(value().c_str()));
    } else if (argument == "--json") {
      options.json = value();
    } else if (!takes_other(argument, value)) {
      options.slides.push_back(argument);
    }
  }
}

}  // namespace slidestream::bench
