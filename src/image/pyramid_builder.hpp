#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <slidestream/image.hpp>
#include <vector>

#include "image/level_reducer.hpp"
#include "image/pyramid_layout.hpp"
#include "image/value_range.hpp"

/// \file
/// Rows of an image in, tiles of all its levels out.

namespace slidestream {

/// A tile to be encoded: pixels that stay as they are while `owner` or a copy of it lives.
struct PyramidTile {
  int level = 0;
  TileIndex index;
  ConstPixelView<MemorySpace::host> pixels;  ///< `rect` is the tile's part inside the level, `image` the level's size
  std::shared_ptr<const void> owner;
};

/// Cuts an image into the tiles of its pyramid while it passes by in bands of rows, top to bottom.
///
/// A band goes three ways: `begin` on one thread, `reduce` of all its pieces on any threads, `finish` on one thread;
/// the next band begins after that. `finish` gives the tiles that have become whole in the order of publishing; any
/// thread may encode them at any time later. Tiles of level 0 are views of the band where it holds whole rows of tiles,
/// and of a copy where it doesn't.
///
/// Memory: a row of tiles of every level that is being filled, and those of tiles that are still to be encoded. Their
/// buffers are used again. It doesn't depend on the image's height.
class PyramidBuilder {
 public:
  PyramidBuilder(const PyramidLayout& layout, PixelFormat format, bool labels);
  ~PyramidBuilder();
  PyramidBuilder(const PyramidBuilder&) = delete;
  PyramidBuilder& operator=(const PyramidBuilder&) = delete;

  /// \param rows  the image's next rows, of full width; any number of them.
  /// \param owner  keeps them: copies are held by tiles of level 0.
  void begin(const ConstPixelView<MemorySpace::host>& rows, std::shared_ptr<const void> owner);

  /// Ranges of columns that a band is reduced in.
  int pieces() const noexcept { return static_cast<int>(reducers_.size()); }

  /// Reduces one piece of the band. Once for each of [0, pieces()), at the same time if need be.
  void reduce(int piece);

  std::vector<PyramidTile> finish();

  /// All of it on this thread.
  std::vector<PyramidTile> add(const ConstPixelView<MemorySpace::host>& rows, std::shared_ptr<const void> owner);

  /// The range of each channel of level 0, of the bands that were finished. Values that aren't finite don't count.
  /// Empty but for float32: other samples have the range of their type. Empty as well while there is no finite value.
  std::vector<ValueRange> values() const;

  /// Rows taken, up to the band that was finished last.
  std::int64_t rows() const noexcept { return known_rows_; }

 private:
  class Buffers;
  /// A row of tiles of a level.
  struct TileRow {
    std::int64_t row = 0;
    std::shared_ptr<std::byte> pixels;
  };
  struct Level {
    std::ptrdiff_t pitch = 0;
    std::shared_ptr<Buffers> buffers;
    std::deque<TileRow> filling;
    std::int64_t whole = 0;  ///< rows of tiles that have been given out
  };
  struct Rows;

  bool is_copied(std::int64_t y) const noexcept;
  void measure(int piece, const std::byte* first, std::int64_t columns);
  std::byte* pixel_row(int level, std::int64_t y) const noexcept;
  void give_out(int level, std::vector<PyramidTile>& jobs);

  PyramidLayout layout_;
  PixelFormat format_;
  std::int64_t piece_width_;
  bool is_measured_;
  std::vector<LevelReducer> reducers_;             ///< one a piece
  std::vector<std::vector<ValueRange>> measured_;  ///< one a piece, of its channels; nothing seen: least > greatest
  std::vector<Level> levels_;
  std::int64_t known_rows_ = 0;  ///< before the band
  ConstPixelView<MemorySpace::host> band_;
  std::shared_ptr<const void> band_owner_;
};

/// The most bytes that a builder's rows of tiles take, of all levels: one that is being filled, and those that `bands`
/// bands of `rows` rows each complete.
std::uint64_t most_builder_bytes(const PyramidLayout& layout, const PixelFormat& format, std::int64_t rows,
                                 std::int64_t bands);

}  // namespace slidestream
