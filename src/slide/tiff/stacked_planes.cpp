#include "slide/tiff/stacked_planes.hpp"

#include <tiff.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace slidestream {
namespace {

/// The number behind `images=` in ImageJ's description.
std::uint64_t images_of_imagej(std::string_view description) {
  constexpr std::string_view key = "\nimages=";
  const std::size_t at = description.find(key);
  std::uint64_t images = 1;
  if (at != std::string_view::npos) {
    const char* const begin = description.data() + at + key.size();
    std::from_chars(begin, description.data() + description.size(), images);
  }
  return images;
}

/// Pages of tifffile's description, a JSON object with the shape of what was written: all of its axes but the image's.
std::uint64_t pages_of_shape(std::string_view description, std::uint64_t values_a_page) {
  const nlohmann::json said = nlohmann::json::parse(description, nullptr, false);
  if (!said.is_object() || said.value("truncated", nlohmann::json()) != true) return 1;
  const auto shape = said.find("shape");
  if (shape == said.end() || !shape->is_array()) return 1;
  double values = 1;
  for (const nlohmann::json& side : *shape) values *= side.is_number_unsigned() ? side.get<double>() : 1.0;
  return static_cast<std::uint64_t>(std::clamp(values / static_cast<double>(values_a_page), 1.0, 1e9));
}

/// 0 where it is absurd.
std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return 0;
  }
  return result;
}

/// As many as the description says; 1 where the file hasn't got the second one's bytes.
std::uint64_t stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory,
                             std::string_view description) {
  const auto number = [&](std::uint16_t tag, std::uint64_t unless_said) {
    return raw.number(directory, tag).value_or(unless_said);
  };
  const std::uint64_t values =
      product({number(TIFFTAG_IMAGEWIDTH, 0), number(TIFFTAG_IMAGELENGTH, 0), number(TIFFTAG_SAMPLESPERPIXEL, 1)});
  if (values == 0 || number(TIFFTAG_COMPRESSION, COMPRESSION_NONE) != COMPRESSION_NONE) return 1;
  std::uint64_t planes = 1;
  if (description.starts_with("ImageJ=")) planes = images_of_imagej(description);
  if (description.starts_with("{")) planes = pages_of_shape(description, values);
  const std::uint64_t bytes = product({values, (number(TIFFTAG_BITSPERSAMPLE, 1) + 7) / 8});
  const std::uint64_t first = number(directory.has_tiles() ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, 0);
  const bool has_second = bytes > 0 && first <= file.size() && (file.size() - first) / 2 >= bytes;
  return has_second ? planes : 1;
}

}  // namespace

void refuse_stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory) {
  const std::string text = raw.text(directory, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description);
  const std::uint64_t planes = stacked_planes(file, raw, directory, text);
  if (planes < 2) return;
  throw_slide_error(file.path(), "has " + std::to_string(planes) +
                                     " planes under one directory, of which the first can be read; set input.channel "
                                     "to 0 for it, or write a directory for each");
}

}  // namespace slidestream
