#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"

/// \file
/// Pictures of slides, and what programs make of them for smaller levels.

namespace slidestream::test {

inline std::uint8_t to_sample(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

/// A grey picture of what `value` says of a pixel.
template <class Value>
Picture grey_picture(int width, int height, const Value& value) {
  Picture picture{width, height, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  std::uint8_t* to = picture.data.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) *to++ = to_sample(value(x, y));
  }
  return picture;
}

inline int at(const Picture& picture, int x, int y) {
  return *picture.at(std::clamp(x, 0, picture.width - 1), std::clamp(y, 0, picture.height - 1));
}

inline Picture grey(const Picture& rgb) { return {rgb.width, rgb.height, 1, formula(rgb)}; }

inline TestDirectory as_level(const Picture& picture, const std::function<Bytes(const Picture&)>& encode = to_bytes,
                              int tile = 256) {
  const auto side = static_cast<std::uint32_t>(tile);
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), side, side, picture.samples);
  for (int y = 0; y < picture.height; y += tile) {
    for (int x = 0; x < picture.width; x += tile) directory.tiles.push_back(encode(cut(picture, x, y, tile, tile)));
  }
  return directory;
}

// What programs make smaller levels by, and what they do to them.

inline Picture decimated(const Picture& picture, int by, int phase) {
  return grey_picture(picture.width / by, picture.height / by,
                      [&](int x, int y) { return at(picture, x * by + phase, y * by + phase); });
}

inline Picture displaced_by(const Picture& picture, int by_x, int by_y) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return at(picture, x + by_x, y + by_y); });
}

inline Picture displaced(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) {
    return (at(picture, x, y) + at(picture, x + 1, y) + at(picture, x, y + 1) + at(picture, x + 1, y + 1)) / 4.0;
  });
}

inline double mean_around(const Picture& picture, int x, int y) {
  double sum = 0.0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) sum += at(picture, x + dx, y + dy);
  }
  return sum / 25.0;
}

inline Picture blurred(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return mean_around(picture, x, y); });
}

inline Picture sharpened(const Picture& picture) {
  return grey_picture(picture.width, picture.height,
                      [&](int x, int y) { return 2.0 * at(picture, x, y) - mean_around(picture, x, y); });
}

inline Picture brighter(const Picture& picture, int by) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return at(picture, x, y) + by; });
}

inline Picture coarse_jpeg(const Picture& picture) {
  return decode_jpeg_grey(encode_jpeg(picture, {.coding = JpegOptions::Coding::grey, .quality = 30}));
}

/// By name, each made when it is asked for. `picture` must outlive them.
inline std::vector<std::pair<std::string, std::function<Picture()>>> sound_levels(const Picture& picture, int by) {
  const auto means = [&picture, by] { return reduced(picture, by); };
  const auto nearest = [&picture, by] { return decimated(picture, by, 0); };
  return {{"means", means},
          {"the nearest pixel", nearest},
          {"the middle pixel", [&picture, by] { return decimated(picture, by, by / 2); }},
          {"half a pixel away", [means] { return displaced(means()); }},
          {"the nearest pixel, half a pixel away", [nearest] { return displaced(nearest()); }},
          {"blurred", [means] { return blurred(means()); }},
          {"sharpened", [means] { return sharpened(means()); }},
          {"brighter", [means] { return brighter(means(), 6); }},
          {"darker", [means] { return brighter(means(), -6); }},
          {"JPEG of quality 30", [means] { return coarse_jpeg(means()); }},
          {"all at once", [nearest] { return coarse_jpeg(brighter(sharpened(displaced(nearest())), 4)); }}};
}

/// White paper with lines of dark strokes, of an area's part `share`, over the picture in one of its corners.
inline Picture with_label(Picture picture, double share, bool at_right, bool at_bottom) {
  const int width = static_cast<int>(std::ceil(picture.width * std::sqrt(share)));
  const int height = static_cast<int>(std::ceil(picture.height * std::sqrt(share)));
  const int left = at_right ? picture.width - width : 0;
  const int top = at_bottom ? picture.height - height : 0;
  const int line = std::max(6, height / 5);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool is_stroke = y % line > line / 3 && x % std::max(4, line / 2) < std::max(1, line / 8);
      const auto pixel = static_cast<std::size_t>((top + y) * picture.width + left + x);
      if (picture.samples == 1) {
        picture.data[pixel] = is_stroke ? 20 : 250;
        continue;
      }
      const std::uint8_t ink[] = {20, 20, 120};
      const std::uint8_t paper[] = {255, 250, 200};
      std::copy_n(is_stroke ? ink : paper, 3, picture.data.begin() + static_cast<std::ptrdiff_t>(3 * pixel));
    }
  }
  return picture;
}

inline Picture sharp_edges() {
  return grey_picture(2048, 1536, [](int x, int y) { return (x / 37 + y / 53) % 2 == 0 ? 40 : 230; });
}

/// Patches of tissue on glass, with structures of several sizes.
inline Picture tissue() {
  return grey_picture(2048, 1536, [](int x, int y) {
    if (std::sin(x / 170.0) + std::cos(y / 130.0) <= 0.0) return 240.0 + (x * 7 + y * 13) % 5;
    return 150.0 + 30.0 * std::sin(x / 23.0) * std::cos(y / 19.0) + 12.0 * std::sin(x / 5.0 + y / 7.0) +
           (x * 31 + y * 17) % 13;
  });
}

/// A number below a bound that says nothing of those beside it.
inline int grain(int x, int y, std::uint32_t seed, std::uint32_t bound) {
  std::uint32_t value = static_cast<std::uint32_t>(x) * 73856093U ^ static_cast<std::uint32_t>(y) * 19349663U;
  value ^= seed * 83492791U;
  value ^= value >> 13;
  value *= 0x5bd1e995U;
  value ^= value >> 15;
  return static_cast<int>(value % bound);
}

/// Tissue whose pixels differ much more than its places do.
inline Picture busy_tissue(std::uint32_t seed) {
  return grey_picture(2048, 1536, [seed](int x, int y) { return 90 + grain(x, y, seed, 121); });
}

/// Tissue in the middle of glass with grain.
inline Picture grainy_glass() {
  return grey_picture(2048, 1536, [](int x, int y) {
    if (std::abs(x - 1024) >= 500 || std::abs(y - 768) >= 400) return 232.0 + grain(x, y, 1, 16);
    return 150.0 + 30.0 * std::sin(x / 23.0) * std::cos(y / 19.0) + 12.0 * std::sin(x / 5.0 + y / 7.0) +
           (x * 31 + y * 17) % 13;
  });
}

/// Dark is red, and bright is white.
inline Picture in_red(const Picture& picture) {
  Picture coloured{picture.width, picture.height, 3, {}};
  for (const std::uint8_t value : picture.data) {
    const int dark = std::max(0, 240 - value);
    for (const int sample : {value + dark / 2, value - dark / 4, int{value}})
      coloured.data.push_back(to_sample(sample));
  }
  return coloured;
}

/// Purple tissue on glass: red goes with luminance.
inline Picture stained(const Picture& picture) {
  Picture coloured{picture.width, picture.height, 3, {}};
  for (const std::uint8_t value : picture.data) {
    const double pale = (value - 100) / 110.0;
    const std::array<double, 3> glass = {243.0, 241.0, 244.0};
    const std::array<double, 3> stain = {150.0 + 70.0 * pale, 70.0 + 90.0 * pale, 140.0 + 50.0 * pale};
    for (const double sample : value >= 230 ? glass : stain) coloured.data.push_back(to_sample(sample));
  }
  return coloured;
}

/// Three samples of a pixel.
using Samples = std::array<double, 3>;

inline Picture recoloured(Picture picture, const std::function<Samples(const Samples&)>& change) {
  for (std::size_t i = 0; i < picture.data.size(); i += 3) {
    std::uint8_t* pixel = picture.data.data() + i;
    const Samples changed =
        change({static_cast<double>(pixel[0]), static_cast<double>(pixel[1]), static_cast<double>(pixel[2])});
    for (std::size_t sample = 0; sample < 3; ++sample) pixel[sample] = to_sample(changed[sample]);
  }
  return picture;
}

/// A slide of 1024 x 1024 pixels, with a stained piece on a hundredth of it.
inline Picture piece_on_glass(const Samples& stain) {
  constexpr int side = 1024;
  constexpr int piece = 103;
  constexpr int begin = 300;
  const Samples glass = {241.0, 240.0, 238.0};
  Picture picture{side, side, 3, {}};
  picture.data.reserve(std::size_t{3} * side * side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool is_tissue = x >= begin && x < begin + piece && y >= begin && y < begin + piece;
      const double density = is_tissue ? 0.7 + 0.3 * std::sin(x / 9.0) * std::cos(y / 7.0) : 0.0;
      for (std::size_t i = 0; i < 3; ++i) {
        picture.data.push_back(to_sample(glass[i] + density * (stain[i] - glass[i]) + grain(x, y, 1, 4)));
      }
    }
  }
  return picture;
}

/// As if nothing had been written there.
inline Picture black_tile(Picture picture, int at, int side) {
  for (int y = at; y < at + side; ++y) {
    const auto from = static_cast<std::ptrdiff_t>(3 * (y * picture.width + at));
    std::fill_n(picture.data.begin() + from, 3 * side, std::uint8_t{0});
  }
  return picture;
}

inline double grey_of(const Samples& rgb) { return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]; }

inline Samples ycbcr_of(const Samples& rgb) {
  const double luminance = grey_of(rgb);
  return {luminance, 128.0 + (rgb[2] - luminance) / 1.772, 128.0 + (rgb[0] - luminance) / 1.402};
}

inline std::map<std::string, Picture> made_up_pictures() {
  return {{"tissue", tissue()},
          {"blank glass", grey_picture(2048, 1536, [](int x, int y) { return 240 + (x * 7 + y * 13) % 5; })},
          {"one colour", grey_picture(2048, 1536, [](int, int) { return 243; })}};
}

}  // namespace slidestream::test
