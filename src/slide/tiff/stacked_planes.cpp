#include "slide/tiff/stacked_planes.hpp"

#include <tiff.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>

#include "config/bounded_json.hpp"

namespace slidestream {
namespace {

/// The number behind a key of ImageJ's description, such as `images`; 1 where it has none.
std::uint64_t number_of_imagej(std::string_view description, std::string_view key) {
  const std::string line = "\n" + std::string(key) + "=";
  const std::size_t at = description.find(line);
  std::uint64_t number = 1;
  if (at != std::string_view::npos) {
    const char* const begin = description.data() + at + line.size();
    std::from_chars(begin, description.data() + description.size(), number);
  }
  return number;
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

/// The first of the bytes from `begin` on that another image or its directory has; else the end of the file.
std::uint64_t end_of_image(const File& file, const RawTiff& raw, const RawDirectory& directory,
                           std::span<const RawDirectory> others, std::uint64_t begin) {
  std::uint64_t end = file.size();
  const auto claim = [&](std::uint64_t at) {
    if (at > begin) end = std::min(end, at);
  };
  const auto claim_all = [&](const RawDirectory& other) {
    claim(other.offset);
    claim(raw.number(other, other.has_tiles() ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS).value_or(0));
  };
  for (const RawDirectory& other : others) {
    if (other.offset != directory.offset) claim_all(other);
  }
  return end;
}

/// Bytes of an entry at a place among its values, whatever its type; 0 where they aren't there.
std::uint64_t number_within(const File& file, const RawEntry& entry, std::uint64_t at, std::size_t bytes,
                            bool little_endian) {
  std::array<std::byte, 4> read{};
  if (!file.contains(entry.value_at, at + bytes)) return 0;
  file.read(entry.value_at + at, std::span(read).first(bytes));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number = number << 8 | std::to_integer<std::uint64_t>(read[little_endian ? bytes - 1 - i : i]);
  }
  return number;
}

constexpr std::uint64_t most_signed_16 = 0x7FFF;
constexpr std::uint64_t most_signed_32 = 0x7FFFFFFF;

/// Planes that a tag of a program's own counts.
StackedPlanes planes_of_tags(const File& file, const RawDirectory& directory) {
  // UIC2Tag has a value for each plane.
  constexpr std::uint16_t tag_uic2 = 33629;
  if (const RawEntry* entry = directory.find(tag_uic2); entry != nullptr && entry->count > 1) {
    return {entry->count, "tag 33629, UIC2Tag of MetaMorph"};
  }
  // A header of 256 big-endian numbers of 16 bits, of which one is the number of slices.
  constexpr std::uint16_t tag_nih = 43314;
  constexpr std::uint64_t header_values = 256;
  constexpr std::uint64_t slices_at = 260;
  if (const RawEntry* entry = directory.find(tag_nih);
      entry != nullptr && entry->type == TIFF_SHORT && entry->count == header_values) {
    const std::uint64_t slices = number_within(file, *entry, slices_at, 2, false);
    if (slices > 1 && slices <= most_signed_16) return {slices, "tag 43314, NIH Image's header"};
  }
  return {};
}

}  // namespace

StackedPlanes stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory,
                             std::span<const RawDirectory> others) {
  const auto number = [&](std::uint16_t tag, std::uint64_t unless_said) {
    return raw.number(directory, tag).value_or(unless_said);
  };
  const std::uint64_t samples = number(TIFFTAG_SAMPLESPERPIXEL, 1);
  const std::uint64_t values = product({number(TIFFTAG_IMAGEWIDTH, 0), number(TIFFTAG_IMAGELENGTH, 0), samples});
  if (values == 0) return {};
  StackedPlanes by_tag = planes_of_tags(file, directory);
  if (number(TIFFTAG_COMPRESSION, COMPRESSION_NONE) != COMPRESSION_NONE) return by_tag;
  const std::uint64_t bytes = product({values, (number(TIFFTAG_BITSPERSAMPLE, 1) + 7) / 8});
  const std::uint64_t first = number(directory.has_tiles() ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, 0);
  if (bytes == 0 || first > file.size()) return {};
  const std::uint64_t there = (end_of_image(file, raw, directory, others, first) - first) / bytes;
  if (there < 2) return {};
  if (by_tag.count > 1) return by_tag;
  const std::string text = raw.text(directory, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description);
  if (!text.starts_with("ImageJ=")) return {text.starts_with("{") ? pages_of_shape(file, text, values) : 1, {}};
  const std::uint64_t images = number_of_imagej(text, "images");
  // Some writers count red, green and blue, which are samples of one directory here, as images.
  const bool are_samples = samples > 1 && number_of_imagej(text, "channels") == samples && images % samples == 0;
  return {are_samples && there < images ? images / samples : images, {}};
}

void refuse_stacked_planes(const File& file, const StackedPlanes& planes) {
  throw_slide_error(file.path(), "has " + std::to_string(planes.count) + " planes under one directory" +
                                     (planes.said_by.empty() ? std::string() : " (" + planes.said_by + ")") +
                                     ", of which the first can be read; set input.channel "
                                     "to 0 for it, or write a directory for each");
}

std::string line_of_lsm(const File& file, const RawDirectory& directory, std::uint64_t planes, bool is_rgb) {
  constexpr std::uint16_t tag_lsm = 34412;
  constexpr std::uint64_t magics[] = {0x00300494, 0x00400494};
  constexpr std::uint64_t depths_at = 16, channels_at = 20, times_at = 24;
  const RawEntry* entry = directory.find(tag_lsm);
  if (entry == nullptr) return {};
  const auto number = [&](std::uint64_t at) {
    const std::uint64_t said = number_within(file, *entry, at, 4, true);
    return said <= most_signed_32 ? said : 0;
  };
  if (std::ranges::find(magics, number(0)) == std::end(magics)) return {};
  const std::uint64_t said =
      product({std::max<std::uint64_t>(1, number(depths_at)), std::max<std::uint64_t>(1, number(times_at))});
  if (said > planes) {
    return "its tag 34412 (Zeiss LSM) says " + std::to_string(said) + " planes, and " + std::to_string(planes) +
           (planes == 1 ? " directory has" : " directories have") + " the slide's size";
  }
  if (!is_rgb || number(channels_at) < 2) return {};
  return "its " + std::to_string(number(channels_at)) +
         " channels (tag 34412, Zeiss LSM) are read as red, green and blue, as the other tags say";
}

}  // namespace slidestream
