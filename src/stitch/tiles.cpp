#include <slidestream/stitch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>

#include "image/mirror.hpp"

namespace slidestream {

StitchAxis stitch_axis(std::int64_t size, std::int64_t tile, std::int64_t overlap, StitchEdge edge, bool nearest) {
  if (size < 1 || tile < 1 || overlap < 0 || overlap > tile / 2) {
    throw std::invalid_argument("tiles can't lie so: sizes are positive, and neighbours share at most half of a tile");
  }
  StitchAxis axis = {size, tile, overlap, 1, 0, nearest};
  const auto steps_to = [&](std::int64_t way) { return way <= 0 ? 0 : (way + axis.step() - 1) / axis.step(); };
  if (edge == StitchEdge::shift) {
    axis.count = steps_to(size - tile) + 1;
    axis.last = std::max<std::int64_t>(0, size - tile);
  } else {
    axis.count = std::max<std::int64_t>(1, steps_to(size - overlap));
    axis.last = (axis.count - 1) * axis.step();
  }
  return axis;
}

std::vector<std::uint16_t> stitch_ramp(StitchWeights weights, std::int64_t overlap) {
  std::vector<std::uint16_t> ramp(static_cast<std::size_t>(overlap));
  for (std::int64_t t = 0; t < overlap; ++t) {
    int weight = 0;
    switch (weights) {
      case StitchWeights::tent:
        weight = tent_weight(t, overlap);
        break;
      case StitchWeights::cosine:
        if (2 * t + 1 == overlap) {
          weight = 128;
        } else if (2 * t < overlap) {
          const double angle = std::numbers::pi * (static_cast<double>(t) + 0.5) / static_cast<double>(overlap);
          weight = static_cast<int>(std::rint(128.0 * (1.0 - std::cos(angle))));
        } else {
          weight = 256 - ramp[static_cast<std::size_t>(overlap - 1 - t)];
        }
        break;
      case StitchWeights::none:
        weight = t < overlap / 2 ? 0 : 256;
        break;
    }
    ramp[static_cast<std::size_t>(t)] = static_cast<std::uint16_t>(weight);
  }
  return ramp;
}

std::pair<std::int64_t, std::int64_t> StitchPlan::input_rows(std::int64_t row) const noexcept {
  const std::int64_t begin = y.begin(row) * scale;
  const std::int64_t beyond = begin + side - input.height;
  if (beyond <= 0) return {begin, begin + side};
  // Mirrored more than once, where the image is small, all of it is wanted.
  return {std::clamp<std::int64_t>(input.height - beyond, 0, begin), input.height};
}

StitchPlan plan_stitching(Size input, std::int64_t side, std::int64_t overlap, std::int64_t scale, StitchEdge edge,
                          bool nearest) {
  if (scale < 1 || side % scale != 0 || overlap % scale != 0) {
    throw std::invalid_argument("a tile's side and overlap must be multiples of the scale");
  }
  StitchPlan plan;
  plan.input = input;
  plan.image = {(input.width + scale - 1) / scale, (input.height + scale - 1) / scale};
  plan.side = side;
  plan.scale = scale;
  plan.x = stitch_axis(plan.image.width, side / scale, overlap / scale, edge, nearest);
  plan.y = stitch_axis(plan.image.height, side / scale, overlap / scale, edge, nearest);
  return plan;
}

void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::host>& rows, const Rect& rect) {
  const Size image = rows.image;
  const auto pixels = static_cast<std::size_t>(rect.width * rect.height);
  if (rows.format != rgb_format || rows.rect.x != 0 || rows.rect.width != image.width || tile.size() != pixels * 3) {
    throw std::invalid_argument("a tile is cut from whole rows of RGB, into memory of its size");
  }
  const std::int64_t left = std::clamp<std::int64_t>(-rect.x, 0, rect.width);
  const std::int64_t inside = std::clamp<std::int64_t>(image.width - rect.x, left, rect.width);
  for (std::int64_t y = 0; y < rect.height; ++y) {
    const std::int64_t from = mirror_symmetric(rect.y + y, image.height);
    if (from < rows.rect.y || from >= rows.rect.bottom()) throw std::invalid_argument("a tile's rows aren't there");
    const std::uint8_t* const row = rows.row<const std::uint8_t>(from);
    std::uint8_t* const to = tile.data() + y * rect.width * 3;
    const auto mirrored = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t x = begin; x < end; ++x) {
        std::memcpy(to + x * 3, row + mirror_symmetric(rect.x + x, image.width) * 3, 3);
      }
    };
    mirrored(0, left);
    if (inside > left)
      std::memcpy(to + left * 3, row + (rect.x + left) * 3, static_cast<std::size_t>(inside - left) * 3);
    mirrored(inside, rect.width);
  }
}

}  // namespace slidestream
