#include "operators/tissue/ink.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

#include "operators/tissue/components.hpp"
#include "system/release_memory.hpp"

namespace slidestream::operators {
namespace {

constexpr int most_uneven = 24;
constexpr std::int64_t least_ink = 256;
constexpr std::int64_t least_thin_ink = 64;
constexpr int least_glass = 170;
constexpr int most_glass_chroma = 40;
constexpr std::int64_t ink_reach = 4;
constexpr std::int64_t edge_reach = 2;
constexpr std::int64_t seen_through_reach = 8;

// Of blood the red is less saturated: eosin and haemoglobin let more green and blue pass than red ink.
constexpr int least_red_saturation = 190;
// Pure hematoxylin above this brightness has more red than green by at least a 15th of its chroma.
constexpr int ball_pen_hue = 16;
constexpr int least_ball_pen = 110;
constexpr int least_ball_pen_saturation = 150;
// Strands of hematoxylin of density 2.5 whose red is below green stay tissue.
constexpr int least_thin_blue_saturation = 170;

/// Colours of pens; 0 is none.
enum InkColour : std::uint8_t { no_ink, green_ink, blue_ink, red_ink, black_ink, ink_colours };

/// What a pixel with the colour of a pen is besides, added to the colour.
constexpr std::uint8_t even_mark = 8;
constexpr std::uint8_t thin_mark = 16;
constexpr std::uint8_t found_mark = 32;
constexpr std::uint8_t colour_bits = 7;

struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
  int most = 0;
  int chroma = 0;
  int saturation = 0;
};

Colour colour_of(const std::uint8_t* pixel) noexcept {
  const auto [least, most] = std::minmax({pixel[0], pixel[1], pixel[2]});
  const int chroma = most - least;
  return {pixel[0], pixel[1], pixel[2], most, chroma, (255 * chroma + most / 2) / std::max<int>(most, 1)};
}

/// Whether blue is most, and red is hardly more than green.
bool is_pure_blue(const Colour& c) noexcept { return c.blue == c.most && ball_pen_hue * (c.red - c.green) <= c.chroma; }

InkColour ink_colour(const Colour& c) noexcept {
  if (c.most < 100 && c.chroma <= 30) return black_ink;
  if (c.green > c.red && c.blue >= c.red) {
    if (4 * (c.blue - c.green) <= c.chroma) return c.saturation >= 40 ? green_ink : no_ink;
    return c.saturation >= 110 ? blue_ink : no_ink;
  }
  if (is_pure_blue(c)) {
    return c.most >= least_ball_pen && c.saturation >= least_ball_pen_saturation ? blue_ink : no_ink;
  }
  const bool is_red = c.red == c.most && 5 * std::abs(c.green - c.blue) <= c.chroma;
  return is_red && c.saturation >= least_red_saturation ? red_ink : no_ink;
}

/// Whether a pixel beside ink may be ink that is mixed with glass.
bool may_be_mixed(const Colour& c) noexcept {
  if (c.green >= c.red || is_pure_blue(c) || (c.most < 150 && c.chroma <= 30)) return true;
  return c.red == c.most && 3 * std::abs(c.green - c.blue) <= c.chroma && c.saturation >= 40;
}

/// What tissue looks like through ink, which takes red light, or green and blue.
struct SeenThrough {
  bool (*looks_so)(const Colour& c) noexcept;
  std::int64_t eighths;  ///< of the pixels around, at least
};
constexpr SeenThrough through_green = {[](const Colour& c) noexcept { return c.green > c.red && c.saturation >= 40; },
                                       5};
constexpr SeenThrough through_blue = {
    [](const Colour& c) noexcept { return c.blue == c.most && 3 * c.red <= c.blue && c.saturation >= 150; }, 4};
constexpr SeenThrough through_red = {[](const Colour& c) noexcept {
                                       return c.red == c.most && 2 * c.blue <= c.red &&
                                              c.saturation >= least_red_saturation;
                                     },
                                     4};

/// Marks pixels around which enough look as they do through ink.
void mark_crowded(Mask& out, const ConstHostView& rgb, const SeenThrough& ink) {
  const Size size = rgb.image;
  // Sums over all rows above and all columns to the left.
  const auto columns = static_cast<std::size_t>(size.width) + 1;
  std::vector<std::int32_t> sums(columns * (static_cast<std::size_t>(size.height) + 1));
  const auto sum = [&](std::int64_t x, std::int64_t y) -> std::int32_t& {
    return sums[static_cast<std::size_t>(y) * columns + static_cast<std::size_t>(x)];
  };
  for (std::int64_t y = 0; y < size.height; ++y) {
    const auto* pixel = rgb.row<const std::uint8_t>(y);
    std::int32_t in_row = 0;
    for (std::int64_t x = 0; x < size.width; ++x, pixel += 3) {
      in_row += ink.looks_so(colour_of(pixel)) ? 1 : 0;
      sum(x + 1, y + 1) = sum(x + 1, y) + in_row;
    }
  }
  for (std::int64_t y = 0; y < size.height; ++y) {
    const std::int64_t top = std::max<std::int64_t>(y - seen_through_reach, 0);
    const std::int64_t bottom = std::min(y + seen_through_reach + 1, size.height);
    const auto to = out.row(y);
    for (std::int64_t x = 0; x < size.width; ++x) {
      const std::int64_t left = std::max<std::int64_t>(x - seen_through_reach, 0);
      const std::int64_t right = std::min(x + seen_through_reach + 1, size.width);
      const std::int64_t count = sum(right, bottom) - sum(left, bottom) - sum(right, top) + sum(left, top);
      if (8 * count >= ink.eighths * (right - left) * (bottom - top)) to[static_cast<std::size_t>(x)] = 1;
    }
  }
}

/// Whether no channel of a pixel and its neighbours inside the image differs by more than `most_uneven`.
bool is_even(const ConstHostView& rgb, std::int64_t x, std::int64_t y) noexcept {
  std::array<int, 3> least = {255, 255, 255};
  std::array<int, 3> most = {0, 0, 0};
  for (std::int64_t j = std::max<std::int64_t>(y - 1, 0); j < std::min(y + 2, rgb.image.height); ++j) {
    const auto* const row = rgb.row<const std::uint8_t>(j);
    for (std::int64_t i = std::max<std::int64_t>(x - 1, 0); i < std::min(x + 2, rgb.image.width); ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        least[c] = std::min<int>(least[c], row[3 * i + static_cast<std::int64_t>(c)]);
        most[c] = std::max<int>(most[c], row[3 * i + static_cast<std::int64_t>(c)]);
      }
    }
  }
  for (std::size_t c = 0; c < 3; ++c) {
    if (most[c] - least[c] > most_uneven) return false;
  }
  return true;
}

/// Two steps to opposite sides: `steps` reach across a thin stroke, and one step is along another.
struct Crossing {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t steps = 0;
};
// Each is followed by the one at right angles to it.
constexpr std::array<Crossing, 4> crossings = {{{1, 0, 5}, {0, 1, 5}, {1, 1, 4}, {1, -1, 4}}};

/// Whether glass is near on both sides of a pixel, and its neighbours along the stroke are like it.
bool is_on_thin_stroke(const ConstHostView& rgb, std::int64_t x, std::int64_t y) noexcept {
  // Null outside the image.
  const auto pixel_at = [&](std::int64_t i, std::int64_t j) noexcept -> const std::uint8_t* {
    if (i < 0 || j < 0 || i >= rgb.image.width || j >= rgb.image.height) return nullptr;
    return rgb.row<const std::uint8_t>(j) + 3 * i;
  };
  const auto has_glass = [&](const Crossing& to, std::int64_t sign) noexcept {
    for (std::int64_t step = sign; step != sign * (to.steps + 1); step += sign) {
      const std::uint8_t* const pixel = pixel_at(x + step * to.x, y + step * to.y);
      if (pixel == nullptr) return false;
      const auto [least, most] = std::minmax({pixel[0], pixel[1], pixel[2]});
      if (least >= least_glass && most - least <= most_glass_chroma) return true;
    }
    return false;
  };
  const std::uint8_t* const here = pixel_at(x, y);
  const auto is_alike = [&](const std::uint8_t* other) noexcept {
    if (other == nullptr) return false;
    for (std::size_t c = 0; c < 3; ++c) {
      if (std::abs(int{here[c]} - int{other[c]}) > most_uneven) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    const Crossing& across = crossings[i];
    const Crossing& along = crossings[i ^ 1];
    if (is_alike(pixel_at(x + along.x, y + along.y)) && is_alike(pixel_at(x - along.x, y - along.y)) &&
        has_glass(across, 1) && has_glass(across, -1)) {
      return true;
    }
  }
  return false;
}

/// Sets pixels to `value` that lie within `reach` columns of one that has it.
void spread_in_row(std::span<std::uint8_t> row, std::uint8_t value, std::int64_t reach) noexcept {
  const auto width = std::ssize(row);
  std::int64_t filled = 0;
  for (std::int64_t x = 0; x < width;) {
    if (row[static_cast<std::size_t>(x)] != value) {
      ++x;
      continue;
    }
    std::int64_t end = x;
    while (end < width && row[static_cast<std::size_t>(end)] == value) ++end;
    const std::int64_t left = std::max(x - reach, filled);
    const std::int64_t right = std::min(end + reach, width);
    // As far as the next one that has it: what follows is looked at as it was.
    filled = end;
    while (filled < right && row[static_cast<std::size_t>(filled)] != value) ++filled;
    std::fill(row.begin() + left, row.begin() + filled, value);
    x = filled;
  }
}

/// Sets pixels to `value` that lie within a square of `reach` around one that has it.
void spread(Mask& mask, std::uint8_t value, std::int64_t reach) {
  for (std::int64_t y = 0; y < mask.size.height; ++y) spread_in_row(mask.row(y), value, reach);
  // Downwards, then upwards: by column, rows until the value no longer reaches.
  const auto pass = [&](std::int64_t first, std::int64_t step) {
    std::vector<std::int64_t> left(static_cast<std::size_t>(mask.size.width), 0);
    for (std::int64_t i = 0, y = first; i < mask.size.height; ++i, y += step) {
      const auto row = mask.row(y);
      for (std::size_t x = 0; x < row.size(); ++x) {
        if (row[x] == value) {
          left[x] = reach;
        } else if (left[x] > 0) {
          --left[x];
          row[x] = static_cast<std::uint8_t>(value | 2);
        }
      }
    }
  };
  pass(0, 1);
  pass(mask.size.height - 1, -1);
  for (std::uint8_t& pixel : mask.pixels) pixel = (pixel & 2) != 0 ? value : pixel;
}

/// Gives pixels that may be ink their colour and marks. \return how many are even, and how many on a thin stroke
std::array<std::int64_t, 2> mark_candidates(std::vector<std::uint8_t>& colours, const ConstHostView& rgb) {
  std::array<std::int64_t, 2> counts{};
  std::size_t i = 0;
  for (std::int64_t y = 0; y < rgb.image.height; ++y) {
    const auto* pixel = rgb.row<const std::uint8_t>(y);
    for (std::int64_t x = 0; x < rgb.image.width; ++x, ++i, pixel += 3) {
      const Colour c = colour_of(pixel);
      const InkColour colour = ink_colour(c);
      if (colour == no_ink) continue;
      const bool even = is_even(rgb, x, y);
      const bool may_be_thin = colour != blue_ink || c.saturation >= least_thin_blue_saturation;
      const bool thin = may_be_thin && is_on_thin_stroke(rgb, x, y);
      counts[0] += even ? 1 : 0;
      counts[1] += thin ? 1 : 0;
      colours[i] = static_cast<std::uint8_t>(colour | (even ? even_mark : 0) | (thin ? thin_mark : 0));
    }
  }
  return counts;
}

}  // namespace

void mark_dark(Mask& out, const ConstHostView& rgb) {
  const Size size = rgb.image;
  for (std::int64_t y = 0; y < size.height; ++y) {
    const auto* pixel = rgb.row<const std::uint8_t>(y);
    for (std::int64_t x = 0; x < size.width; ++x, pixel += 3) {
      if (std::max({pixel[0], pixel[1], pixel[2]}) >= dark_below) continue;
      const std::int64_t left = std::max<std::int64_t>(x - 1, 0);
      const std::int64_t right = std::min(x + 2, size.width);
      for (std::int64_t row = std::max<std::int64_t>(y - 1, 0); row < std::min(y + 2, size.height); ++row) {
        std::fill(out.row(row).begin() + left, out.row(row).begin() + right, std::uint8_t{1});
      }
    }
  }
}

std::int64_t mark_ink(Mask& out, const ConstHostView& rgb, InkColours* colours_found) {
  const Size size = rgb.image;
  // Colours and marks of pixels that may be ink, which wait there for their turn.
  std::vector<std::uint8_t> colours(out.pixels.size());
  const std::array<std::int64_t, 2> counts = mark_candidates(colours, rgb);
  if (counts[0] < least_ink && counts[1] < least_thin_ink) return 0;
  Mask ink = empty_mask(size, out.scale, out.level0);
  const auto find = [&](std::uint8_t mark, std::int64_t least) {
    for (std::uint8_t colour = green_ink; colour < ink_colours; ++colour) {
      const auto is_so = [&](std::uint8_t pixel) { return (pixel & mark) != 0 && (pixel & colour_bits) == colour; };
      if (std::ranges::count_if(colours, is_so) < least) continue;
      for (std::size_t i = 0; i < colours.size(); ++i) ink.pixels[i] = is_so(colours[i]) ? 1 : 0;
      flip_components(ink, 1, Connectivity::eight, [&](const Component& part) { return part.pixels < least; });
      for (std::size_t i = 0; i < colours.size(); ++i) {
        if (ink.pixels[i] == 0) continue;
        colours[i] |= found_mark;
        if (colours_found == nullptr) continue;
        colours_found->green_to_blue |= colour == green_ink || colour == blue_ink;
        colours_found->red |= colour == red_ink;
      }
    }
    for (std::size_t i = 0; i < colours.size(); ++i) ink.pixels[i] = (colours[i] & found_mark) != 0 ? 1 : 0;
  };
  find(even_mark, least_ink);
  // The edge of what is found is no thin stroke.
  spread(ink, 1, 1);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    if (ink.pixels[i] != 0) colours[i] = static_cast<std::uint8_t>(colours[i] & ~thin_mark);
  }
  find(thin_mark, least_thin_ink);
  std::int64_t found = 0;
  for (std::size_t i = 0; i < colours.size(); ++i) found += ink.pixels[i] != 0 && out.pixels[i] == 0 ? 1 : 0;
  release_memory(colours);
  spread(ink, 1, ink_reach);
  for (std::int64_t y = 0; y < size.height; ++y) {
    const auto* pixel = rgb.row<const std::uint8_t>(y);
    const auto near = ink.row(y);
    const auto to = out.row(y);
    for (std::size_t x = 0; x < near.size(); ++x, pixel += 3) {
      if (near[x] != 0 && may_be_mixed(colour_of(pixel))) to[x] = 1;
    }
  }
  // What is left of it is ink itself, and what lies between.
  spread(ink, 0, ink_reach);
  for (std::size_t i = 0; i < ink.pixels.size(); ++i) out.pixels[i] |= ink.pixels[i];
  return found;
}

InkColours mark_ink_and_edges(Mask& out, const ConstHostView& rgb) {
  InkColours colours;
  mark_ink(out, rgb, &colours);
  spread(out, 1, edge_reach);
  return colours;
}

void mark_seen_through(Mask& out, const ConstHostView& rgb, const InkColours& colours) {
  if (!colours.green_to_blue && !colours.red) return;
  Mask found = empty_mask(rgb.image, out.scale, out.level0);
  if (colours.green_to_blue) {
    mark_crowded(found, rgb, through_green);
    mark_crowded(found, rgb, through_blue);
  }
  if (colours.red) mark_crowded(found, rgb, through_red);
  spread(found, 1, seen_through_reach);
  for (std::size_t i = 0; i < found.pixels.size(); ++i) out.pixels[i] |= found.pixels[i];
}

}  // namespace slidestream::operators
