#include "slide/likeness/glass_type.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "codec/tile_rule.hpp"

namespace slidestream {
namespace {

constexpr std::size_t most_windows = 4;
constexpr double usual_window = 256.0;         ///< pixels of the larger level along a side
constexpr std::int64_t least_usual_side = 48;  ///< of the smaller one
constexpr double most_window = 1024.0;         ///< pixels of the larger one
constexpr std::int64_t least_window_side = 32;

// Of strokes: pixels of the smaller level, and values of 255.
constexpr std::int64_t stroke_block = 8;
constexpr std::int64_t stroke_reach = 8;   ///< to both sides of a stroke
constexpr std::int64_t chosen_reach = 6;   ///< the same where places are chosen
constexpr int most_side_difference = 6;    ///< of one stroke
constexpr int least_chosen_stroke = 4;     ///< of luminance: blue type changes it little
constexpr int most_chosen_stroke = 32;     ///< more says nothing else
constexpr int most_glass_difference = 24;  ///< from the commonest luminance
constexpr int least_type_stroke = 24;
constexpr int most_glass_range = 24;           ///< of the larger level's pixels
constexpr std::int64_t least_type_pixels = 3;  ///< of a block
constexpr std::int64_t least_type_blocks = 8;  ///< of all windows: about two letters, and more than dust has

/// By how much a value lies below or above both sides, which have one colour; 0: not at all.
int height_of_stroke(int value, int before, int behind) {
  if (std::abs(before - behind) > most_side_difference) return 0;
  return std::max(std::min(before, behind) - value, value - std::max(before, behind));
}

int commonest_luminance(const std::vector<LevelPart>& parts) {
  std::array<std::uint64_t, 256> counts{};
  for (const LevelPart& part : parts) {
    for (const std::uint8_t value : part.picture.pixels) ++counts[value];
  }
  int best = 0;
  std::uint64_t most = 0;
  for (int value = 0; value < 256; ++value) {
    std::uint64_t around = 0;
    for (int near = std::max(0, value - 2); near <= std::min(255, value + 2); ++near) {
      around += counts[static_cast<std::size_t>(near)];
    }
    if (around > most) {
      most = around;
      best = value;
    }
  }
  return best;
}

/// A place of the smaller level around the strokes of a cell.
struct TypePlace {
  std::int64_t strokes = 0;  ///< their heights together
  std::int64_t x = 0;        ///< the middle of them
  std::int64_t y = 0;
};

TypePlace strokes_within(const LevelCell& cell, int glass) {
  const LevelPicture& picture = cell.part->picture;
  TypePlace place;
  std::int64_t sum_x = 0;
  std::int64_t sum_y = 0;
  const auto is_glass = [glass](int value) { return std::abs(value - glass) <= most_glass_difference; };
  for (std::int64_t y = cell.top; y < cell.top + cell.height; ++y) {
    const std::uint8_t* row = picture.pixels.data() + y * picture.width;
    for (std::int64_t x = cell.left; x < cell.left + cell.width; ++x) {
      int height = 0;
      for (std::int64_t reach = 2; reach <= chosen_reach; reach += 2) {
        if (x >= reach && x + reach < picture.width && is_glass(row[x - reach])) {
          height = std::max(height, height_of_stroke(row[x], row[x - reach], row[x + reach]));
        }
        const std::int64_t rows = reach * picture.width;
        if (y >= reach && y + reach < picture.height && is_glass(row[x - rows])) {
          height = std::max(height, height_of_stroke(row[x], row[x - rows], row[x + rows]));
        }
      }
      if (height < least_chosen_stroke) continue;
      height = std::min(height, most_chosen_stroke);
      place.strokes += height;
      sum_x += height * (x - cell.left);
      sum_y += height * (y - cell.top);
    }
  }
  if (place.strokes == 0) return place;
  place.x = cell.level_left() + sum_x / place.strokes;
  place.y = cell.level_top() + sum_y / place.strokes;
  return place;
}

/// A square of the smaller level. Blocks are judged within `around` from its sides.
struct TypeWindow {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t side = 0;
  std::int64_t around = 0;
};

/// Windows around the places with the most strokes, so that no block is in two of them. None where pixels of the
/// smaller level cover too many of the larger one.
std::vector<TypeWindow> choose_windows(const ComparedLevels& levels, std::vector<TypePlace> places) {
  const double factor = std::max(levels.plan.factor_x, levels.plan.factor_y);
  const auto usual = std::max(static_cast<std::int64_t>(usual_window / factor), least_usual_side);
  const std::int64_t side =
      std::min({usual, static_cast<std::int64_t>(most_window / factor), levels.small.width, levels.small.height});
  std::vector<TypeWindow> windows;
  if (side < least_window_side) return windows;
  const std::int64_t around = side < least_usual_side ? 8 : 12;
  std::stable_sort(places.begin(), places.end(),
                   [](const TypePlace& a, const TypePlace& b) { return a.strokes > b.strokes; });
  for (const TypePlace& place : places) {
    if (windows.size() == most_windows || place.strokes == 0) break;
    const TypeWindow window = {std::clamp<std::int64_t>(place.x - side / 2, 0, levels.small.width - side),
                               std::clamp<std::int64_t>(place.y - side / 2, 0, levels.small.height - side), side,
                               around};
    const bool is_free = std::ranges::none_of(windows, [&](const TypeWindow& other) {
      const std::int64_t judged = side - 2 * around;
      return std::abs(window.left - other.left) < judged && std::abs(window.top - other.top) < judged;
    });
    if (is_free) windows.push_back(window);
  }
  return windows;
}

/// RGB of a rectangle of a level.
struct RgbWindow {
  int value(std::int64_t x, std::int64_t y, int channel) const {
    return samples[static_cast<std::size_t>(3 * (y * width + x) + channel)];
  }

  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> samples;
};

/// Nothing where tiles are missing or bad.
std::optional<RgbWindow> read_window(const Slide& slide, std::size_t level, const PixelRange& columns,
                                     const PixelRange& rows) {
  for (const std::int64_t tile :
       tiles_of(slide.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size())) {
    if (slide.tile(level, tile).length == 0) return std::nullopt;
  }
  return unless_bad([&] {
    RgbWindow window{columns.size(), rows.size(),
                     std::vector<std::uint8_t>(static_cast<std::size_t>(3 * columns.size() * rows.size()))};
    read_rgb(slide, level, columns.begin, rows.begin,
             {window.samples.data(), 3 * columns.size(), columns.size(), rows.size(), rgb_format});
    return window;
  });
}

/// What a pixel of a window covers in one channel of the larger level.
struct CoveredValues {
  int least = 255;
  int most = 0;
};

/// What one channel of the larger level has beneath each pixel of a window.
std::vector<CoveredValues> values_beneath(const ComparedLevels& levels, const TypeWindow& at, const RgbWindow& large,
                                          const PixelRange& columns, const PixelRange& rows, int channel) {
  std::vector<CoveredValues> beneath(static_cast<std::size_t>(at.side * at.side));
  for (std::int64_t y = 0; y < at.side; ++y) {
    const PixelRange down(at.top + y, at.top + y + 1, levels.plan.factor_y, levels.large.height);
    for (std::int64_t x = 0; x < at.side; ++x) {
      const PixelRange across(at.left + x, at.left + x + 1, levels.plan.factor_x, levels.large.width);
      CoveredValues& found = beneath[static_cast<std::size_t>(y * at.side + x)];
      for (std::int64_t row = down.begin; row < std::min(down.end, rows.end); ++row) {
        for (std::int64_t column = across.begin; column < std::min(across.end, columns.end); ++column) {
          const int value = large.value(column - columns.begin, row - rows.begin, channel);
          found.least = std::min(found.least, value);
          found.most = std::max(found.most, value);
        }
      }
    }
  }
  return beneath;
}

int range_around(const std::vector<CoveredValues>& beneath, const TypeWindow& at, std::int64_t left, std::int64_t top) {
  CoveredValues all;
  for (std::int64_t y = top - at.around; y < top + stroke_block + at.around; ++y) {
    for (std::int64_t x = left - at.around; x < left + stroke_block + at.around; ++x) {
      const CoveredValues& each = beneath[static_cast<std::size_t>(y * at.side + x)];
      all.least = std::min(all.least, each.least);
      all.most = std::max(all.most, each.most);
    }
  }
  return all.most - all.least;
}

/// Whether some pixels of a block are strokes of at least this height. All that is looked at lies within the window.
bool has_strokes(const RgbWindow& small, std::int64_t left, std::int64_t top, int channel, int least) {
  std::int64_t count = 0;
  for (std::int64_t y = top; y < top + stroke_block; ++y) {
    for (std::int64_t x = left; x < left + stroke_block; ++x) {
      const int value = small.value(x, y, channel);
      int height = 0;
      for (std::int64_t reach = 2; reach <= stroke_reach; ++reach) {
        height = std::max(
            height, height_of_stroke(value, small.value(x - reach, y, channel), small.value(x + reach, y, channel)));
        height = std::max(
            height, height_of_stroke(value, small.value(x, y - reach, channel), small.value(x, y + reach, channel)));
      }
      if (height >= least && ++count == least_type_pixels) return true;
    }
  }
  return false;
}

/// Blocks of a window with strokes, where the larger level has glass.
std::int64_t count_type_blocks(const ComparedLevels& levels, const TypeWindow& at) {
  levels.budget.check();
  const PixelRange columns(at.left, at.left + at.side, levels.plan.factor_x, levels.large.width);
  const PixelRange rows(at.top, at.top + at.side, levels.plan.factor_y, levels.large.height);
  const std::optional<RgbWindow> large = read_window(levels.slide, levels.larger, columns, rows);
  if (!large || may_be_unwritten(levels, columns, rows, large->samples)) return 0;
  const std::optional<RgbWindow> small =
      read_window(levels.slide, levels.level, {at.left, at.left + at.side, 1.0, levels.small.width},
                  {at.top, at.top + at.side, 1.0, levels.small.height});
  if (!small) return 0;
  const std::int64_t blocks = (at.side - 2 * at.around) / stroke_block;
  std::vector<char> found(static_cast<std::size_t>(blocks * blocks), 0);
  for (int channel = 0; channel < 3; ++channel) {
    const std::vector<CoveredValues> beneath = values_beneath(levels, at, *large, columns, rows, channel);
    for (std::int64_t block = 0; block < blocks * blocks; ++block) {
      const std::int64_t left = at.around + block % blocks * stroke_block;
      const std::int64_t top = at.around + block / blocks * stroke_block;
      const int range = range_around(beneath, at, left, top);
      if (range <= most_glass_range && has_strokes(*small, left, top, channel, least_type_stroke + range)) {
        found[static_cast<std::size_t>(block)] = 1;
      }
    }
  }
  return std::ranges::count(found, 1);
}

}  // namespace

bool shows_type_on_glass(const ComparedLevels& levels, const std::vector<LevelPart>& parts,
                         const std::vector<LevelCell>& cells) {
  const int glass = commonest_luminance(parts);
  std::vector<TypePlace> places;
  places.reserve(cells.size());
  for (const LevelCell& cell : cells) places.push_back(strokes_within(cell, glass));
  std::int64_t blocks = 0;
  for (const TypeWindow& window : choose_windows(levels, std::move(places))) {
    blocks += count_type_blocks(levels, window);
    if (blocks >= least_type_blocks) return true;
  }
  return false;
}

}  // namespace slidestream
