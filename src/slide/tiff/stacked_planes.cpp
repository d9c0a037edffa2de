#include "slide/tiff/stacked_planes.hpp"

#include <tiff.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <istream>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

#include "config/bounded_json.hpp"

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

/// Reads the shape of tifffile's description, beside which there may be anything.
class ShapeReader final : public JsonWalker {
 public:
  /// Values of all axes; 0 where it isn't said that one directory holds them all.
  double values() const { return is_truncated_ && has_shape_ ? values_ : 0.0; }

 private:
  void on_key(const std::string& name) override {
    if (depth() != 1) return;
    is_shape_ = name == "shape";
    is_truncating_ = name == "truncated";
    if (is_shape_) has_shape_ = false;
    if (is_truncating_) is_truncated_ = false;
  }
  void on_value(const nlohmann::json& value) override {
    if (depth() == 1 && is_truncating_) is_truncated_ = value == true;
    if (depth() == 2 && is_shape_ && value.is_number_unsigned()) values_ *= value.get<double>();
  }
  void on_start(bool is_object) override {
    if (depth() != 1 || !is_shape_) return;
    has_shape_ = !is_object;
    values_ = 1.0;
  }
  void on_end() override {}

  double values_ = 1.0;
  bool is_shape_ = false;
  bool is_truncating_ = false;
  bool has_shape_ = false;
  bool is_truncated_ = false;
};

/// Pages of tifffile's description, a JSON object with the shape of what was written: all of its axes but the image's.
std::uint64_t pages_of_shape(const File& file, std::string_view description, std::uint64_t values_a_page) {
  ShapeReader reader;
  BoundedJson bounded(description);
  std::istream in(&bounded);
  try {
    if (!nlohmann::json::sax_parse(in, &reader)) return 1;
  } catch (const Error& error) {
    throw_slide_error(file.path(), std::string("its description ") + error.what());
  }
  return static_cast<std::uint64_t>(std::clamp(reader.values() / static_cast<double>(values_a_page), 1.0, 1e9));
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
  const std::uint64_t bytes = product({values, (number(TIFFTAG_BITSPERSAMPLE, 1) + 7) / 8});
  const std::uint64_t first = number(directory.has_tiles() ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, 0);
  const bool has_second = bytes > 0 && first <= file.size() && (file.size() - first) / 2 >= bytes;
  if (!has_second) return 1;
  if (description.starts_with("ImageJ=")) return images_of_imagej(description);
  return description.starts_with("{") ? pages_of_shape(file, description, values) : 1;
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
