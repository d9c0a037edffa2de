#include "slide/likeness/glass_type.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "codec/tile_rule.hpp"

namespace slidestream {
namespace {

// Windows: pixels of the larger level, in all of them.
constexpr std::int64_t least_windows = 4;  ///< however large
constexpr double most_window_pixels = 1 << 20;
constexpr double most_slow_window_pixels = 1 << 19;  ///< of JPEG 2000
constexpr double most_small_pixels = 1 << 22;        ///< where the whole larger level isn't larger
constexpr std::int64_t least_stroke_blocks = 2;      ///< of a window: dust has one
constexpr double usual_window = 256.0;               ///< pixels of the larger level along a side
constexpr std::int64_t least_usual_side = 48;        ///< of the smaller one
constexpr double most_window = 1024.0;               ///< pixels of the larger one
constexpr std::int64_t least_window_side = 32;

// Of strokes: pixels of the smaller level, and values of 255.
constexpr std::int64_t stroke_block = 8;
constexpr std::int64_t stroke_reach = 8;  ///< to both sides of a stroke
constexpr int most_side_difference = 6;   ///< of one stroke
constexpr int least_type_stroke = 24;
constexpr int most_glass_range = 24;           ///< of the larger level's pixels
constexpr std::int64_t least_type_pixels = 3;  ///< of a block
constexpr std::int64_t least_type_blocks = 8;  ///< of all windows: about two letters, and more than dust has

// Of glass around blocks of the smaller level, where places are chosen.
constexpr int bin_width = 8;  ///< values of 255
constexpr int bins = 256 / bin_width;
constexpr int most_colourfulness = 40;  ///< what its red and blue differ from green by
constexpr int most_darker = 64;         ///< of green, than the level's commonest glass

/// By how much a value lies below or above both sides, which have one colour; 0: not at all.
int height_of_stroke(int value, int before, int behind) {
  if (std::abs(before - behind) > most_side_difference) return 0;
  return std::max(std::min(before, behind) - value, value - std::max(before, behind));
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

/// Whether some pixels of a block are strokes of at least this height. Sides outside the picture don't count.
bool has_strokes(const RgbWindow& small, std::int64_t left, std::int64_t top, int channel, int least) {
  std::int64_t count = 0;
  for (std::int64_t y = top; y < top + stroke_block; ++y) {
    for (std::int64_t x = left; x < left + stroke_block; ++x) {
      const int value = small.value(x, y, channel);
      int height = 0;
      for (std::int64_t reach = 2; reach <= stroke_reach; ++reach) {
        if (x >= reach && x + reach < small.width) {
          height = std::max(
              height, height_of_stroke(value, small.value(x - reach, y, channel), small.value(x + reach, y, channel)));
        }
        if (y >= reach && y + reach < small.height) {
          height = std::max(
              height, height_of_stroke(value, small.value(x, y - reach, channel), small.value(x, y + reach, channel)));
        }
      }
      if (height >= least && ++count == least_type_pixels) return true;
    }
  }
  return false;
}

/// A block of the smaller level that has strokes.
struct StrokeBlock {
  std::int64_t x = 0;  ///< its middle
  std::int64_t y = 0;
  int glass = 0;  ///< green of what lies around
};

/// The value that half of the pixels of a rectangle have in one channel. Every second one is counted, along both axes.
std::optional<int> usual_value(const RgbWindow& picture, const PixelRange& columns, const PixelRange& rows,
                               int channel) {
  std::array<int, bins> counts{};
  int all = 0;
  for (std::int64_t y = rows.begin; y < rows.end; y += 2) {
    for (std::int64_t x = columns.begin; x < columns.end; x += 2) {
      ++counts[static_cast<std::size_t>(picture.value(x, y, channel) / bin_width)];
      ++all;
    }
  }
  int most = 0;
  int value = 0;
  for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
    const int both = counts[bin] + counts[bin + 1];
    if (both <= most) continue;
    most = both;
    value = static_cast<int>(bin + 1) * bin_width;
  }
  return 2 * most >= all ? std::optional(value) : std::nullopt;
}

/// The colour that half of the pixels around a block have, if it is as little coloured as glass. \return its green
std::optional<int> glass_around(const RgbWindow& picture, std::int64_t left, std::int64_t top) {
  const PixelRange columns(std::max<std::int64_t>(0, left - stroke_block), left + 2 * stroke_block, 1.0, picture.width);
  const PixelRange rows(std::max<std::int64_t>(0, top - stroke_block), top + 2 * stroke_block, 1.0, picture.height);
  // Green first: stain takes most of it.
  const std::optional<int> green = usual_value(picture, columns, rows, 1);
  if (!green) return std::nullopt;
  for (const int channel : {0, 2}) {
    const std::optional<int> value = usual_value(picture, columns, rows, channel);
    if (!value || std::abs(*value - *green) > most_colourfulness) return std::nullopt;
  }
  return green;
}

/// What pixels have in one channel.
struct CoveredValues {
  void add(const CoveredValues& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }

  int least = 255;
  int most = 0;
};

/// Which blocks of a picture have pixels that differ, also from those of the blocks beside them, as much as strokes.
class BlockContrast {
 public:
  explicit BlockContrast(const RgbWindow& picture)
      : columns_((picture.width + stroke_block - 1) / stroke_block),
        rows_((picture.height + stroke_block - 1) / stroke_block),
        values_(static_cast<std::size_t>(3 * columns_ * rows_)) {
    for (std::int64_t y = 0; y < picture.height; ++y) {
      for (std::int64_t x = 0; x < picture.width; ++x) {
        for (int channel = 0; channel < 3; ++channel) {
          const int value = picture.value(x, y, channel);
          values_[index(x / stroke_block, y / stroke_block, channel)].add({value, value});
        }
      }
    }
  }

  bool has_any(std::int64_t column, std::int64_t row) const {
    for (int channel = 0; channel < 3; ++channel) {
      CoveredValues all;
      for (std::int64_t y = std::max<std::int64_t>(0, row - 1); y < std::min(rows_, row + 2); ++y) {
        for (std::int64_t x = std::max<std::int64_t>(0, column - 1); x < std::min(columns_, column + 2); ++x) {
          all.add(values_[index(x, y, channel)]);
        }
      }
      if (all.most - all.least >= least_type_stroke) return true;
    }
    return false;
  }

 private:
  std::size_t index(std::int64_t column, std::int64_t row, int channel) const {
    return static_cast<std::size_t>(3 * (row * columns_ + column) + channel);
  }

  std::int64_t columns_;
  std::int64_t rows_;
  std::vector<CoveredValues> values_;
};

/// What is seen of a level's glass and the strokes on it.
struct GlassSight {
  std::array<std::uint64_t, 256> glass{};  ///< how many blocks are glass of this green
  std::vector<StrokeBlock> blocks;
};

void look_at_part(const RgbWindow& picture, const LevelPart& part, GlassSight& sight) {
  const BlockContrast contrast(picture);
  for (std::int64_t top = 0; top + stroke_block <= picture.height; top += stroke_block) {
    for (std::int64_t left = 0; left + stroke_block <= picture.width; left += stroke_block) {
      if (!contrast.has_any(left / stroke_block, top / stroke_block)) {
        const std::int64_t x = left + stroke_block / 2;
        const std::int64_t y = top + stroke_block / 2;
        const std::array<int, 3> colour = {picture.value(x, y, 0), picture.value(x, y, 1), picture.value(x, y, 2)};
        const auto [least, most] = std::minmax_element(colour.begin(), colour.end());
        if (*most - *least <= most_colourfulness) ++sight.glass[static_cast<std::size_t>(colour[1])];
        continue;
      }
      const std::optional<int> glass = glass_around(picture, left, top);
      if (!glass) continue;
      ++sight.glass[static_cast<std::size_t>(*glass)];
      bool has_any = false;
      for (int channel = 0; channel < 3 && !has_any; ++channel) {
        has_any = has_strokes(picture, left, top, channel, least_type_stroke);
      }
      if (!has_any) continue;
      sight.blocks.push_back({part.left + left + stroke_block / 2, part.top + top + stroke_block / 2, *glass});
    }
  }
}

/// The commonest glass of a level: green.
int commonest_glass(const GlassSight& sight) {
  int best = 0;
  std::uint64_t most = 0;
  for (int value = 0; value < 256; ++value) {
    std::uint64_t around = 0;
    for (int near = std::max(0, value - bin_width / 2); near <= std::min(255, value + bin_width / 2); ++near) {
      around += sight.glass[static_cast<std::size_t>(near)];
    }
    if (around > most) {
      most = around;
      best = value;
    }
  }
  return best;
}

/// Blocks with strokes on glass. Parts that are missing or bad have none.
std::vector<StrokeBlock> find_strokes(const ComparedLevels& levels, const std::vector<LevelPart>& parts) {
  GlassSight sight;
  for (const LevelPart& part : parts) {
    levels.budget.check();
    const PixelRange columns(part.left, part.left + part.picture.width, 1.0, levels.small.width);
    const PixelRange rows(part.top, part.top + part.picture.height, 1.0, levels.small.height);
    const std::optional<RgbWindow> picture = read_window(levels.slide, levels.level, columns, rows);
    if (picture) look_at_part(*picture, part, sight);
  }
  const int least = commonest_glass(sight) - most_darker;
  std::erase_if(sight.blocks, [least](const StrokeBlock& block) { return block.glass < least; });
  return std::move(sight.blocks);
}

/// A square of the smaller level. Blocks are judged within `around` from its sides.
struct TypeWindow {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t side = 0;
  std::int64_t around = 0;
  std::int64_t first_x = 0;  ///< blocks before are in another window
  std::int64_t first_y = 0;
  std::int64_t strokes = 0;  ///< blocks
};

/// As many windows as are judged.
std::size_t most_windows(const ComparedLevels& levels, std::int64_t side) {
  const double all = static_cast<double>(levels.large.width) * static_cast<double>(levels.large.height);
  const bool is_slow = levels.large.codec == Codec::jpeg2000 || levels.small.codec == Codec::jpeg2000;
  double most = all <= most_small_pixels ? most_small_pixels : most_window_pixels;
  if (is_slow) most = most_slow_window_pixels;
  const double of_window = static_cast<double>(side * side) * levels.plan.factor_x * levels.plan.factor_y;
  return static_cast<std::size_t>(std::max(least_windows, static_cast<std::int64_t>(most / of_window)));
}

/// Windows with the most strokes. What they judge lies side by side, so that no block is in two of them. None where
/// pixels of the smaller level cover too many of the larger one.
std::vector<TypeWindow> choose_windows(const ComparedLevels& levels, const std::vector<StrokeBlock>& strokes) {
  const double factor = std::max(levels.plan.factor_x, levels.plan.factor_y);
  const auto usual = std::max(static_cast<std::int64_t>(usual_window / factor), least_usual_side);
  const std::int64_t side =
      std::min({usual, static_cast<std::int64_t>(most_window / factor), levels.small.width, levels.small.height});
  if (side < least_window_side) return {};
  const std::int64_t around = side < least_usual_side ? 8 : 12;
  const std::int64_t judged = (side - 2 * around) / stroke_block * stroke_block;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> squares;  // by row and column
  for (const StrokeBlock& block : strokes) {
    ++squares[{std::max<std::int64_t>(0, block.y - around) / judged,
               std::max<std::int64_t>(0, block.x - around) / judged}];
  }
  std::vector<TypeWindow> windows;
  for (const auto& [at, count] : squares) {
    if (count < least_stroke_blocks) continue;
    const std::int64_t left = at.second * judged;
    const std::int64_t top = at.first * judged;
    // What lies at the level's end can't be judged.
    if (std::max(left - (levels.small.width - side), top - (levels.small.height - side)) >= judged) continue;
    windows.push_back({std::min(left, levels.small.width - side), std::min(top, levels.small.height - side), side,
                       around, left + around, top + around, count});
  }
  std::stable_sort(windows.begin(), windows.end(),
                   [](const TypeWindow& a, const TypeWindow& b) { return a.strokes > b.strokes; });
  windows.resize(std::min(windows.size(), most_windows(levels, side)));
  return windows;
}

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
      const std::int64_t middle = stroke_block / 2;
      if (at.left + left + middle < at.first_x || at.top + top + middle < at.first_y) continue;
      const int range = range_around(beneath, at, left, top);
      if (range <= most_glass_range && has_strokes(*small, left, top, channel, least_type_stroke + range) &&
          glass_around(*small, left, top)) {
        found[static_cast<std::size_t>(block)] = 1;
      }
    }
  }
  return std::ranges::count(found, 1);
}

}  // namespace

bool shows_type_on_glass(const ComparedLevels& levels, const std::vector<LevelPart>& parts) {
  std::int64_t blocks = 0;
  for (const TypeWindow& window : choose_windows(levels, find_strokes(levels, parts))) {
    blocks += count_type_blocks(levels, window);
    if (blocks >= least_type_blocks) return true;
  }
  return false;
}

}  // namespace slidestream
