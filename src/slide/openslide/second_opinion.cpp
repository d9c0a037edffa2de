#include "slide/openslide/second_opinion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <slidestream/error.hpp>
#include <sstream>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/openslide/library.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t region_side = 256;
constexpr int decoder_rounding = 8;              ///< of 255, between decoders
constexpr std::size_t pixels_per_outlier = 100;  ///< of a region; with more outliers than that it differs
constexpr double most_apart_sizes = 0.01;        ///< of pixel sizes
constexpr double most_printed = 20.0;            ///< micrometres: above it is a resolution for printing
constexpr std::uint64_t seed = 43;

using Rgb = std::array<std::uint8_t, 3>;

std::string text_of(const Rgb& pixel) {
  return std::to_string(pixel[0]) + "," + std::to_string(pixel[1]) + "," + std::to_string(pixel[2]);
}

std::string text_of(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

/// Over white, as the readers here fill what is missing.
Rgb rgb_of_argb(std::uint32_t pixel) {
  const std::uint32_t alpha = pixel >> 24;
  const auto over = [&](unsigned shift) {
    return static_cast<std::uint8_t>(std::min<std::uint32_t>(255, (pixel >> shift & 255) + 255 - alpha));
  };
  return {over(16), over(8), over(0)};
}

struct Region {
  std::size_t level = 0;
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  std::string text() const {
    return "level " + std::to_string(level) + " at " + std::to_string(x) + "," + std::to_string(y);
  }
};

class Comparison {
 public:
  Comparison(const Slide& slide, const openslide::Handle& handle) : slide_(slide), handle_(handle) {}

  /// The first difference; empty: none.
  std::string first_difference(std::size_t regions) {
    if (std::string found = levels_differ(); !found.empty()) return found;
    if (std::string found = sizes_differ(); !found.empty()) return found;
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < regions; ++i) {
      if (std::string found = region_differs(region_at(random)); !found.empty()) return found;
    }
    return {};
  }

 private:
  std::string levels_differ() const {
    const std::vector<Level>& levels = slide_.info().levels;
    const auto count = static_cast<std::size_t>(handle_.call().get_level_count(handle_.get()));
    if (levels.size() != count) {
      return std::to_string(levels.size()) + " levels here, " + std::to_string(count) + " there";
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t width = 0;
      std::int64_t height = 0;
      handle_.call().get_level_dimensions(handle_.get(), static_cast<std::int32_t>(i), &width, &height);
      if (width == levels[i].width && height == levels[i].height) continue;
      return "level " + std::to_string(i) + " is " + std::to_string(levels[i].width) + " x " +
             std::to_string(levels[i].height) + " here, " + std::to_string(width) + " x " + std::to_string(height) +
             " there";
    }
    return {};
  }

  std::string sizes_differ() const {
    const SlideInfo& info = slide_.info();
    const auto differs = [&](const char* what, const char* property, const std::optional<double>& here) -> std::string {
      const std::optional<double> there = positive_number(handle_.property(property));
      if (!there || (!here && *there > most_printed)) return {};
      if (here && std::abs(*here - *there) <= most_apart_sizes * *there) return {};
      return std::string(what) + " is " + (here ? text_of(*here) : "not known") + " here, " + text_of(*there) +
             " there";
    };
    std::string found = differs("mpp", "openslide.mpp-x", info.mpp);
    return found.empty() ? differs("mpp_y", "openslide.mpp-y", info.mpp_y ? info.mpp_y : info.mpp) : found;
  }

  /// A pixel of the level that begins at a whole pixel of level 0: between those OpenSlide interpolates.
  static std::int64_t place(std::mt19937_64& random, std::int64_t beyond, double downsample) {
    constexpr int tries = 64;
    for (int i = 0; i < tries; ++i) {
      const auto pixel = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(beyond + 1));
      const double at = static_cast<double>(pixel) * downsample;
      if (std::abs(at - std::round(at)) < 1e-3) return pixel;
    }
    return 0;
  }

  Region region_at(std::mt19937_64& random) const {
    const std::vector<Level>& levels = slide_.info().levels;
    Region region;
    region.level = random() % levels.size();
    const Level& level = levels[region.level];
    region.width = std::min(region_side, level.width);
    region.height = std::min(region_side, level.height);
    const double downsample =
        handle_.call().get_level_downsample(handle_.get(), static_cast<std::int32_t>(region.level));
    region.x = place(random, level.width - region.width, downsample);
    region.y = place(random, level.height - region.height, downsample);
    return region;
  }

  std::string region_differs(const Region& region) {
    const auto pixels = static_cast<std::size_t>(region.width * region.height);
    here_.resize(3 * pixels);
    there_.resize(pixels);
    std::string fault;
    try {
      read_rgb(slide_, region.level, region.x, region.y,
               {here_.data(), 3 * region.width, region.width, region.height, rgb_format});
    } catch (const SlideError& error) {
      fault = error.what();
    }
    const double downsample =
        handle_.call().get_level_downsample(handle_.get(), static_cast<std::int32_t>(region.level));
    const auto at_level_0 = [&](std::int64_t pixel) {
      return static_cast<std::int64_t>(std::llround(static_cast<double>(pixel) * downsample));
    };
    handle_.call().read_region(handle_.get(), there_.data(), at_level_0(region.x), at_level_0(region.y),
                               static_cast<std::int32_t>(region.level), region.width, region.height);
    if (const std::string error = handle_.error(); !error.empty() || !fault.empty()) {
      return region.text() + ": " + (fault.empty() ? "read here, " : "not read here (" + fault + "), ") +
             (error.empty() ? "read there" : "not read there (" + error + ")");
    }
    std::size_t apart = 0;
    std::string first;
    for (std::size_t i = 0; i < pixels; ++i) {
      const Rgb here = {here_[3 * i], here_[3 * i + 1], here_[3 * i + 2]};
      const Rgb there = rgb_of_argb(there_[i]);
      const bool is_apart = std::abs(here[0] - there[0]) > decoder_rounding ||
                            std::abs(here[1] - there[1]) > decoder_rounding ||
                            std::abs(here[2] - there[2]) > decoder_rounding;
      if (!is_apart) continue;
      if (++apart > 1) continue;
      const auto at = static_cast<std::int64_t>(i);
      first = Region{region.level, region.x + at % region.width, region.y + at / region.width, 0, 0}.text() + ": " +
              text_of(here) + " here, " + text_of(there) + " there";
    }
    return pixels_per_outlier * apart > pixels ? first : std::string();
  }

  const Slide& slide_;
  const openslide::Handle& handle_;
  std::vector<std::uint8_t> here_;
  std::vector<std::uint32_t> there_;
};

}  // namespace

SecondOpinion second_opinion(const Slide& slide, const std::string& library, std::size_t regions) {
  using Verdict = SecondOpinion::Verdict;
  const SlideInfo& info = slide.info();
  if (!info.library.empty()) return {Verdict::not_compared, "not compared: " + info.library + " reads it here, too"};
  if (info.channels.size() > 1) return {Verdict::not_compared, "not compared: it has several channels"};
  const auto loaded = openslide::Library::load(library);
  std::optional<openslide::Handle> handle;
  try {
    handle.emplace(loaded, info.path);
  } catch (const Error& error) {
    return {Verdict::not_compared, "not compared: " + loaded->name() + ": " + error.what()};
  }
  const std::string difference = Comparison(slide, *handle).first_difference(regions);
  if (!difference.empty()) return {Verdict::differs, "differs from " + loaded->name() + ": " + difference};
  const std::size_t levels = info.levels.size();
  return {Verdict::agrees, "agrees with " + loaded->name() + ": " + std::to_string(levels) +
                               (levels == 1 ? " level, " : " levels, ") +
                               (handle->property("openslide.mpp-x").empty() || !info.mpp ? "" : "mpp, ") +
                               std::to_string(regions) + " regions"};
}

}  // namespace slidestream
