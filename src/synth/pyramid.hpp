#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "synth/associated.hpp"
#include "synth/temporary_file.hpp"
#include "synth/tile_encoder.hpp"

/// \file
/// The lower levels of a slide, made while level 0 passes by.

namespace slidestream::synth {

/// A tile's quarter-size picture, (tile / 4) x (tile / 4) of interleaved RGB: means of 4 x 4 pixels.
Bytes reduce_tile(std::span<const std::uint8_t> rgb, int tile);

/// Size of the levels below level 0, each a quarter of the one above, rounded down.
struct LevelSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};
std::vector<LevelSize> lower_levels(const SynthOptions& options);

/// Takes level 0's tile rows in order, each tile reduced to a quarter. Holds one tile row of each lower level; their
/// compressed tiles wait in a temporary file until level 0 is written.
class Pyramid {
 public:
  /// Compresses with one thread for each of `encoders`, which it borrows.
  Pyramid(const std::filesystem::path& file, const SynthOptions& options, std::vector<TileEncoder>& encoders);

  /// `quarters` holds a row of reduced tiles, left to right.
  void add_row(const std::vector<const Bytes*>& quarters);

  /// After the last row.
  void finish();

  const std::vector<LevelSize>& levels() const noexcept { return sizes_; }
  std::int64_t tiles(std::size_t level) const noexcept;
  Bytes tile(std::size_t level, std::int64_t index);
  Picture thumbnail() const { return thumbnail_.finish(); }
  std::uint64_t size() const noexcept { return spilled_.size(); }

 private:
  /// One tile row of a level that is being filled, in as many parts as tile rows of the level above fit.
  struct Band {
    std::int64_t width = 0;  ///< pixels from a row to the next: whole tiles, and whole tiles above
    std::int64_t columns = 0;
    std::int64_t rows = 0;
    std::int64_t row = 0;  ///< tile row that the band is
    int parts = 0;         ///< quarters that are filled
    std::vector<std::uint8_t> rgb;
  };
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  void next_part(std::size_t level);
  void flush(std::size_t level);
  void encode(std::size_t level);

  int tile_;
  std::vector<LevelSize> sizes_;
  std::vector<TileEncoder>& encoders_;
  LevelSize quarter_;  ///< level 0's size / 4, whether or not that is a level
  ThumbnailMaker thumbnail_;
  std::vector<Band> bands_;
  std::vector<std::vector<Range>> ranges_;
  TemporaryFile spilled_;
};

}  // namespace slidestream::synth
