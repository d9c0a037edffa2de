#include "synth/noise.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace slidestream::synth {

namespace {

constexpr std::int64_t floor_divide(std::int64_t value, std::int64_t by) noexcept {
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

constexpr float fade(float t) noexcept { return t * t * (3.0F - 2.0F * t); }

/// Which nodes a pixel lies between, along one axis, and how far it is from the first to the second.
struct Axis {
  std::int64_t first_node = 0;
  int nodes = 0;
  std::vector<int> left;
  std::vector<float> fraction;
  std::vector<float> weight;  ///< fade(fraction)

  Axis(std::int64_t begin, int size, int wavelength) : left(size), fraction(size), weight(size) {
    first_node = floor_divide(begin, wavelength);
    for (int i = 0; i < size; ++i) {
      const std::int64_t node = floor_divide(begin + i, wavelength);
      left[i] = static_cast<int>(node - first_node);
      fraction[i] = static_cast<float>(begin + i - node * wavelength) / static_cast<float>(wavelength);
      weight[i] = fade(fraction[i]);
    }
    nodes = left.back() + 2;
  }

  /// `cells` equal cells over the side, whether or not they are whole pixels.
  static Axis dividing(int size, int cells) {
    Axis axis(0, size, size);
    for (int i = 0; i < size; ++i) {
      axis.left[i] = i * cells / size;
      axis.fraction[i] = static_cast<float>(i * cells - axis.left[i] * size) / static_cast<float>(size);
      axis.weight[i] = fade(axis.fraction[i]);
    }
    axis.nodes = cells + 1;
    return axis;
  }
};

/// The hash of a lattice node of a repeatable patch: on the border it doesn't depend on the patch, nor on the side.
std::uint64_t repeatable_node(std::uint64_t salt, std::uint64_t own, int column, int row, int cells) noexcept {
  const bool on_side = column == 0 || column == cells;
  const bool on_top = row == 0 || row == cells;
  if (!on_side && !on_top) return hash(salt ^ mix(own), column, row);
  return hash(salt, on_side ? 0 : column, on_top ? 0 : row);
}

/// A node's slope, each part from -1 to 1.
struct Slope {
  float across;
  float down;
};

Slope slope(std::uint64_t bits) noexcept { return {2.0F * unit(bits) - 1.0F, 2.0F * unit(bits << 24) - 1.0F}; }

}  // namespace

void add_noise(const Patch& patch, std::uint64_t salt, int wavelength, NoiseShape shape, float amplitude,
               std::span<float> out, int minimum_cells) {
  const int size = patch.size;
  const int cells = std::clamp((size + wavelength / 2) / wavelength, std::min(minimum_cells, size), size);
  const Axis across = patch.repeatable ? Axis::dividing(size, cells) : Axis(patch.x, size, wavelength);
  const Axis down = patch.repeatable ? across : Axis(patch.y, size, wavelength);

  std::vector<Slope> node(static_cast<std::size_t>(across.nodes) * down.nodes);
  for (int row = 0; row < down.nodes; ++row) {
    for (int column = 0; column < across.nodes; ++column) {
      node[static_cast<std::size_t>(row) * across.nodes + column] =
          slope(patch.repeatable ? repeatable_node(salt, patch.salt, column, row, cells)
                                 : hash(salt, across.first_node + column, down.first_node + row));
    }
  }

  // Gradient noise: every node is 0 and slopes its own way. Along a row of pixels a node contributes
  // tilt * (distance across) + height.
  constexpr float spread = 1.3F;
  std::vector<float> tilt(across.nodes);
  std::vector<float> height(across.nodes);
  for (int y = 0; y < size; ++y) {
    const Slope* above = node.data() + static_cast<std::size_t>(down.left[y]) * across.nodes;
    const Slope* below = above + across.nodes;
    const float from_above = down.fraction[y];
    const float to_below = from_above - 1.0F;
    const float weight = fade(from_above);
    for (int column = 0; column < across.nodes; ++column) {
      tilt[column] = above[column].across + (below[column].across - above[column].across) * weight;
      const float top = above[column].down * from_above;
      height[column] = top + (below[column].down * to_below - top) * weight;
    }
    float* row = out.data() + static_cast<std::size_t>(y) * size;
    for (int x = 0; x < size; ++x) {
      const int node_left = across.left[x];
      const float from_left = across.fraction[x];
      const float left = height[node_left] + tilt[node_left] * from_left;
      const float right = height[node_left + 1] + tilt[node_left + 1] * (from_left - 1.0F);
      const float hill = spread * (left + (right - left) * across.weight[x]);
      row[x] += amplitude * (shape == NoiseShape::plain ? 0.5F + hill : 1.0F - 2.0F * (hill < 0.0F ? -hill : hill));
    }
  }
}

float noise_at(std::uint64_t salt, std::int64_t wavelength, std::int64_t x, std::int64_t y) noexcept {
  const std::int64_t column = floor_divide(x, wavelength);
  const std::int64_t row = floor_divide(y, wavelength);
  const float across = fade(static_cast<float>(x - column * wavelength) / static_cast<float>(wavelength));
  const float down = fade(static_cast<float>(y - row * wavelength) / static_cast<float>(wavelength));
  const float above_left = unit(hash(salt, column, row));
  const float below_left = unit(hash(salt, column, row + 1));
  const float above = above_left + (unit(hash(salt, column + 1, row)) - above_left) * across;
  const float below = below_left + (unit(hash(salt, column + 1, row + 1)) - below_left) * across;
  return above + (below - above) * down;
}

}  // namespace slidestream::synth
