#include "slide/likeness/glass_type.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "slide/likeness/strokes.hpp"
#include "slide/likeness/type_search.hpp"

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

// Of glass around blocks of the smaller level, where places are chosen.
constexpr int most_shift = 4;    ///< of one glass, values of 255
constexpr int most_darker = 64;  ///< of green, than the level's commonest glass

/// A block of the smaller level that has strokes.
struct StrokeBlock {
  std::int64_t x = 0;  ///< its middle
  std::int64_t y = 0;
  int glass = 0;  ///< green of what lies around
};

/// What is seen of a level's glass and the strokes on it.
struct GlassSight {
  std::array<std::uint64_t, 256> glass{};  ///< how many blocks are glass of this green
  std::vector<StrokeBlock> blocks;
};

void look_at_part(const RgbPicture& picture, const LevelPart& part, GlassSight& sight) {
  const BlockContrast contrast(picture);
  for (std::int64_t top = 0; top + stroke_block <= picture.height; top += stroke_block) {
    for (std::int64_t left = 0; left + stroke_block <= picture.width; left += stroke_block) {
      if (!contrast.has_any(left / stroke_block, top / stroke_block)) {
        const std::uint8_t* const colour = picture.pixel(left + stroke_block / 2, top + stroke_block / 2);
        const auto [least, most] = std::minmax_element(colour, colour + 3);
        if (*most - *least <= most_glass_colour) ++sight.glass[colour[1]];
        continue;
      }
      const std::optional<int> glass = glass_around(picture, left, top);
      if (!glass) continue;
      ++sight.glass[static_cast<std::size_t>(*glass)];
      if (stroke_strengths(picture, left, top) == std::array<int, 3>{}) continue;
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
    for (int near = std::max(0, value - most_shift); near <= std::min(255, value + most_shift); ++near) {
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
std::vector<StrokeBlock> find_strokes(const ComparedLevels& levels, const std::vector<LevelPart>& parts,
                                      ColourTiles& colours) {
  GlassSight sight;
  for (const LevelPart& part : parts) {
    levels.budget.check();
    const PixelRange columns(part.left, part.left + part.picture.width, 1.0, levels.small.width);
    const PixelRange rows(part.top, part.top + part.picture.height, 1.0, levels.small.height);
    const std::size_t before = sight.blocks.size();
    const std::optional<RgbPicture> picture = colours.read_whole(levels.level, columns, rows);
    if (picture) look_at_part(*picture, part, sight);
    if (sight.blocks.size() == before) colours.release(levels.level, columns, rows);
  }
  const int least = commonest_glass(sight) - most_darker;
  std::erase_if(sight.blocks, [least](const StrokeBlock& block) { return block.glass < least; });
  return std::move(sight.blocks);
}

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

}  // namespace

bool shows_type_on_glass(const ComparedLevels& levels, const std::vector<LevelPart>& parts, ColourTiles& colours) {
  return TypeSearch(levels, colours, choose_windows(levels, find_strokes(levels, parts, colours))).finds_type();
}

}  // namespace slidestream
