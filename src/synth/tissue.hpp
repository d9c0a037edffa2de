#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "synth/noise.hpp"

/// \file
/// What a synthetic slide shows: islands of stained tissue on glass, and the pixels of its tiles.

namespace slidestream::synth {

/// What lies at a point.
enum class Ground { glass, epithelium, stroma };

/// Where tissue lies on a slide.
class Islands {
 public:
  Islands(std::int64_t width, std::int64_t height, std::uint64_t seed) noexcept;

  /// Above 0: tissue. Grows by about 1 in `border()` pixels across an island's edge.
  float at(std::int64_t x, std::int64_t y) const noexcept;

  Ground ground_at(std::int64_t x, std::int64_t y) const noexcept;

  /// Large-scale variation inside the tissue, 0 to 1.
  float character_at(std::int64_t x, std::int64_t y) const noexcept;

 private:
  std::int64_t width_;
  std::int64_t height_;
  std::int64_t wavelength_;
  std::uint64_t seed_;
};

/// A tile that repeats: what lies at its corners, top left, top right, bottom left, bottom right.
using Corners = std::array<Ground, 4>;

/// Fills tiles with pixels. One object per thread; it keeps its planes between tiles.
class TissuePainter {
 public:
  TissuePainter(int tile, std::uint64_t seed);

  /// The tile whose top left pixel is (x, y), as interleaved RGB.
  void paint(const Islands& islands, std::int64_t x, std::int64_t y, std::span<std::uint8_t> rgb);

  /// A tile for any place: number `variant` of those with these `corners`.
  void paint_repeatable(const Corners& corners, int variant, std::span<std::uint8_t> rgb);

 private:
  bool cover_from_islands(const Islands& islands, const Patch& patch);
  bool cover_from_corners(const Corners& corners, const Patch& patch);
  void paint_tissue(const Patch& patch);
  void paint_stroma(const Patch& patch, const Corners* corners);
  void paint_nuclei(const Patch& patch);
  void colour(const Patch& patch, bool any_tissue, std::span<std::uint8_t> rgb) const;

  int tile_;
  std::uint64_t seed_;
  std::vector<float> cover_;   ///< 0 glass, 1 tissue
  std::vector<float> stroma_;  ///< 0 epithelium, 1 connective tissue
  std::vector<float> fibre_;   ///< threads, 0 to 1
  std::vector<float> gap_;     ///< clefts between fibres
  std::vector<float> grain_;   ///< the finest structure
  std::vector<float> shade_;   ///< thickness of the section
  std::vector<float> nucleus_;
  std::vector<float> halo_;  ///< clearing around nuclei
  std::vector<float> transmission_;
};

}  // namespace slidestream::synth
