#include "slide/dicom/contradictions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "config/quoted_text.hpp"
#include "slide/level_factor.hpp"

namespace slidestream::dicom {

namespace {

using Place = Instance::SaidPlace;

/// By what places that go row by row are in order.
std::pair<std::int64_t, std::int64_t> row_and_column(const Place& place) { return {place.row, place.column}; }

bool are_in_another_order(std::vector<Place> places) {
  if (std::ranges::is_sorted(places, {}, row_and_column)) return false;
  std::ranges::sort(places, {}, row_and_column);
  return std::ranges::adjacent_find(places, {}, row_and_column) == places.end();
}

/// The longer side of a level's pixel, millimetres: the largest of what it and the largest image say; 0: nothing does.
double pixel_of(const Instance& level, const Instance& largest) {
  const auto along = [](const std::optional<double>& own, const std::optional<double>& base, std::int64_t base_pixels,
                        std::int64_t pixels) {
    return std::max(own.value_or(0.0), base.value_or(0.0) * level_factor(base_pixels, pixels));
  };
  const auto part = [](const std::optional<double>& side, std::int64_t pixels) {
    return side.value_or(0.0) / static_cast<double>(pixels);
  };
  return std::max({along(level.mm_x, largest.mm_x, largest.width, level.width),
                   along(level.mm_y, largest.mm_y, largest.height, level.height),
                   part(largest.volume_mm_x, level.width), part(largest.volume_mm_y, level.height)});
}

std::string place_text(const Place& place) {
  return "column " + std::to_string(place.column) + ", row " + std::to_string(place.row);
}

}  // namespace

std::string compare_lut_shape(const Instance& instance) {
  const char* contradiction = instance.photometric == "MONOCHROME1" ? "IDENTITY" : "INVERSE";
  if (instance.lut_shape != contradiction) return {};
  return std::string("its PresentationLUTShape (2050,0020) is ") + contradiction +
         ", and PhotometricInterpretation is " + shown_code(instance.photometric) +
         ": PhotometricInterpretation counts";
}

std::string compare_rescale(const Instance& instance) {
  const double slope = instance.rescale_slope.value_or(1.0);
  const double intercept = instance.rescale_intercept.value_or(0.0);
  if (slope == 1.0 && intercept == 0.0) return {};
  std::ostringstream text;
  text << "its RescaleSlope (0028,1053) is " << slope << ", and RescaleIntercept (0028,1052) " << intercept
       << "; expected 1 and 0: pixels are read as they are stored";
  return text.str();
}

std::string compare_length(const Instance& instance) {
  if (!instance.pixels || instance.is_encapsulated()) return {};
  const auto bytes = static_cast<std::uint64_t>(instance.tile_width * instance.tile_height * instance.samples) *
                     static_cast<std::uint64_t>(instance.frames);
  // An odd length has a byte that makes it even.
  if (instance.pixels->length <= bytes + bytes % 2) return {};
  return "its PixelData (7FE0,0010) has " + std::to_string(instance.pixels->length) + " bytes, and its frames take " +
         std::to_string(bytes) + ": what lies behind them is passed over";
}

std::string compare_orientation(const Instance& instance) {
  if (!instance.orientation) return {};
  constexpr double least_turn = 0.1;  // cosines of about 6 degrees, and of rounding
  const auto& [row_x, row_y, row_z, column_x, column_y, column_z] = *instance.orientation;
  const bool is_usual = std::abs(row_x) < least_turn && std::abs(row_y + 1.0) < least_turn &&
                        std::abs(column_x + 1.0) < least_turn && std::abs(column_y) < least_turn;
  if (is_usual) return {};
  // The Z of rows x columns. Z points from the glass to the objective, so that it is negative where columns are
  // clockwise of rows, as they are shown.
  const double normal = row_x * column_y - row_y * column_x;
  if (normal == 0.0) return {};
  return std::string("its ImageOrientationSlide (0048,0102) says that its pixels show the slide ") +
         (normal > 0.0 ? "mirrored" : "turned") + ": they are read as they are stored";
}

std::string compare_origins(const std::vector<std::vector<OpenFile*>>& images) {
  constexpr double most_pixels = 1.5;
  const Instance& largest = images.front().front()->instance;
  for (const std::vector<OpenFile*>& image : images) {
    const Instance& level = image.front()->instance;
    if (!level.origin_mm_x || !level.origin_mm_y || !largest.origin_mm_x || !largest.origin_mm_y) continue;
    const double apart = std::max(std::abs(*level.origin_mm_x - *largest.origin_mm_x),
                                  std::abs(*level.origin_mm_y - *largest.origin_mm_y));
    const double pixel = pixel_of(level, largest);
    if (pixel <= 0.0 || apart <= most_pixels * pixel) continue;
    std::ostringstream text;
    text.precision(9);
    text << "its image of " << level.width << " x " << level.height << " pixels begins at " << *level.origin_mm_x
         << ", " << *level.origin_mm_y << " mm by TotalPixelMatrixOriginSequence (0048,0008), and the largest one at "
         << *largest.origin_mm_x << ", " << *largest.origin_mm_y << ": it is read as if both began at one place";
    return text.str();
  }
  return {};
}

std::string compare_frame_type(const Instance& instance) {
  if (instance.frame_flavour.empty() || instance.frame_flavour == instance.flavour()) return {};
  const std::string flavour = instance.flavour();
  return "an image's ImageType (0008,0008) says " + (flavour.empty() ? "no flavour" : shown_code(flavour)) +
         ", and FrameType (0008,9007) of its frames " + shown_code(instance.frame_flavour) + ": ImageType counts";
}

std::string compare_doubles(std::int64_t doubles, std::int64_t first_tile, const Level& level) {
  if (doubles == 0) return {};
  const Place place{0, first_tile % level.columns * level.tile_width + 1,
                    first_tile / level.columns * level.tile_height + 1};
  return "frames of its image of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
         " pixels lie where others do: " + std::to_string(doubles) + ", the first at " + place_text(place) +
         ": the last one at a place is shown";
}

std::string compare_flavours(const Instance& other, const Instance& largest_level) {
  constexpr double most_difference = 0.02;
  const double across = static_cast<double>(other.width) / static_cast<double>(largest_level.width);
  const double down = static_cast<double>(other.height) / static_cast<double>(largest_level.height);
  if (across <= 1.0 || std::abs(across - down) > most_difference * down) return {};
  return "an image of " + std::to_string(other.width) + " x " + std::to_string(other.height) +
         " pixels, larger than the slide: it is no level, as its flavour isn't VOLUME (ImageType (0008,0008))";
}

std::string compare_places(const OpenFile& file, const Level& level) {
  // A single tile can only be at one place.
  if (level.columns * level.rows == 1) return {};
  const std::vector<Place>& said = file.instance.said_places;
  const auto by_order = [&](const Place& place) {
    const std::int64_t tile = file.instance.frames_before + place.frame;
    return Place{place.frame, tile % level.columns * level.tile_width + 1,
                 tile / level.columns * level.tile_height + 1};
  };
  const auto other = std::ranges::find_if(said, [&](const Place& place) { return place != by_order(place); });
  if (other == said.end()) return {};
  if (are_in_another_order(said)) {
    Refusal{file}(
        "its frames are in another order by PlanePositionSlideSequence (0048,021A) than by TILED_FULL: frame " +
        std::to_string(other->frame + 1) + " is at " + place_text(*other) + ", expected " +
        place_text(by_order(*other)));
  }
  return "its frames' places in PlanePositionSlideSequence (0048,021A) aren't those of TILED_FULL: TILED_FULL counts";
}

std::string compare_indices(const Instance& instance) {
  if (!instance.has_contrary_indices) return {};
  return "its frames' places in PlanePositionSlideSequence (0048,021A) aren't those of their DimensionIndexValues "
         "(0020,9157): PlanePositionSlideSequence counts";
}

bool have_different_paths(const Instance& a, const Instance& b) {
  const auto differ = [](const std::string& one, const std::string& other) {
    return !one.empty() && !other.empty() && one != other;
  };
  const OpticalPath& one = a.first_path;
  const OpticalPath& other = b.first_path;
  return differ(a.optical_path, b.optical_path) || differ(one.identifier, other.identifier) ||
         (one.wavelength && other.wavelength && *one.wavelength != *other.wavelength);
}

}  // namespace slidestream::dicom
