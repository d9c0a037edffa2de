#include "operators/stain/stained_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <slidestream/stitch.hpp>

#include "image/block_means.hpp"
#include "image/small_level.hpp"
#include "operators/tissue/ink.hpp"

namespace slidestream::operators {

namespace {

constexpr std::int64_t one = 65536;
/// Pixels of level 0 along a micrometre, for slides that don't say.
constexpr double assumed_pixels = 4.0;

/// A block in RGB, and memory to make it in.
struct StainedBlock {
  std::vector<std::uint8_t> rows;    ///< the level's pixels
  std::vector<std::uint8_t> pixels;  ///< the block's
  Mask out;                          ///< of the block's size: 1 where it isn't looked at
};

/// Reads one block, and marks what isn't stain by the colours that the fit would take, whatever level they come from.
void read_block(const Slide& slide, const SmallLevel& source, const Rect& block, BadTilePolicy on_bad_tile,
                const InkColours& ink, StainedBlock& made) {
  std::vector<std::uint8_t>& rows = made.rows;
  std::vector<std::uint8_t>& pixels = made.pixels;
  const Level& level = slide.info().levels[source.level];
  pixels.resize(static_cast<std::size_t>(block.width * block.height * 3));
  const bool resampled = source.factor != one;
  // In halved pixels, then in the level's.
  const Rect area = resampled ? AreaResampler::source_of(block, source.factor) : block;
  const std::int64_t side = std::int64_t{1} << source.halvings;
  const Rect from = {area.x * side, area.y * side, std::min(area.width * side, level.width - area.x * side),
                     std::min(area.height * side, level.height - area.y * side)};
  rows.resize(static_cast<std::size_t>(from.width * from.height * 3));
  read_rgb(slide, source.level, from.x, from.y, {rows.data(), from.width * 3, from.width, from.height, rgb_format},
           on_bad_tile);
  const LevelWeights weights = weights_of_level(slide.info(), source.level);
  BlockMeans means({from.width, from.height}, source.halvings,
                   from.right() == level.width ? weights.across : PixelWeights{},
                   from.bottom() == level.height ? weights.down : PixelWeights{});
  std::optional<AreaResampler> resampler;
  if (resampled)
    resampler.emplace(BlockMeans::size_of({level.width, level.height}, source.halvings), source.factor, block);
  std::vector<std::uint8_t> mean(static_cast<std::size_t>(area.width * 3));
  std::uint8_t* to = pixels.data();
  for (std::int64_t y = 0; y < from.height; ++y) {
    if (!means.add(mean.data(), rows.data() + y * from.width * 3)) continue;
    if (!resampler) std::copy(mean.begin(), mean.end(), to);
    if (!resampler || resampler->add(to, mean.data())) to += block.width * 3;
  }
  const Size size = {block.width, block.height};
  const ConstHostView rgb = {reinterpret_cast<const std::byte*>(pixels.data()),
                             size.width * 3,
                             {0, 0, size.width, size.height},
                             size,
                             rgb_format};
  made.out = empty_mask(size, {}, size);
  mark_dark(made.out, rgb);
  mark_seen_through(made.out, rgb, ink);
}

SmallLevel source_of_blocks(const SlideInfo& info, const std::optional<double>& mpp, double target) {
  return choose_reduction(info, mpp ? target / *mpp : target * assumed_pixels);
}

}  // namespace

std::uint64_t stained_blocks_bytes(const SlideInfo& info, const std::optional<double>& mpp, double target) {
  // Colours and densities, in buffers that double, and what is sorted.
  constexpr std::int64_t of_pixel = 3 * (3 + 24) + 8;
  const SmallLevel source = source_of_blocks(info, mpp, target);
  const Level& level = info.levels[source.level];
  const Size image = source.size;
  const std::int64_t pixels =
      std::min(image.width * image.height, most_stained_blocks * stained_block_side * stained_block_side);
  const std::int64_t places = (image.width / stained_block_side + 1) * (image.height / stained_block_side + 1);
  const double pixel = std::ldexp(static_cast<double>(source.factor) / one, source.halvings);
  const double side = static_cast<double>(stained_block_side + 2) * pixel;
  const auto rows = static_cast<std::int64_t>(std::min(side, static_cast<double>(level.width)) *
                                              std::min(side, static_cast<double>(level.height)));
  return static_cast<std::uint64_t>(of_pixel * pixels + 6 * static_cast<std::int64_t>(sizeof(Rect)) * places +
                                    3 * (rows + pixels));
}

std::vector<std::uint8_t> stained_blocks(const Slide& slide, const std::optional<double>& mpp, const Mask& tissue,
                                         double target, BadTilePolicy on_bad_tile, const InkColours& ink) {
  const SmallLevel source = source_of_blocks(slide.info(), mpp, target);
  const Size image = source.size;
  const GridScale scale = source.scale;
  const MaskTable table(tissue);
  std::vector<Rect> some;
  std::vector<Rect> half;
  for (std::int64_t y = 0; y < image.height; y += stained_block_side) {
    for (std::int64_t x = 0; x < image.width; x += stained_block_side) {
      const Rect block = {x, y, std::min(stained_block_side, image.width - x),
                          std::min(stained_block_side, image.height - y)};
      if (table.is_tissue(block, scale, 0.0)) some.push_back(block);
      if (table.is_tissue(block, scale, 0.5)) half.push_back(block);
    }
  }
  const std::vector<Rect>& candidates = std::ssize(half) >= most_stained_blocks ? half : some;
  const std::int64_t taken = std::min(std::ssize(candidates), most_stained_blocks);
  std::vector<std::uint8_t> stained;
  StainedBlock made;
  for (std::int64_t i = 0; i < taken; ++i) {
    const Rect& block = candidates[static_cast<std::size_t>((2 * i + 1) * std::ssize(candidates) / (2 * taken))];
    read_block(slide, source, block, on_bad_tile, ink, made);
    for (std::int64_t y = 0; y < block.height; ++y) {
      for (std::int64_t x = 0; x < block.width; ++x) {
        // A single pixel is what the mask is under its middle.
        if (!table.is_tissue({block.x + x, block.y + y, 1, 1}, scale, 0.0)) continue;
        if (made.out.row(y)[static_cast<std::size_t>(x)] != 0) continue;
        const std::uint8_t* const from = made.pixels.data() + 3 * (y * block.width + x);
        stained.insert(stained.end(), from, from + 3);
      }
    }
  }
  return stained;
}

}  // namespace slidestream::operators
