#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <span>
#include <vector>

#include "cuda/pyramid/reduce_task.hpp"
#include "image/pyramid_layout.hpp"

/// \file
/// Which rows of which levels a band of an image completes, and where their values lie. Knows no CUDA, so that the
/// host's tests see all of it.

namespace slidestream::cuda {

/// A row of values that waits for the one below it.
struct CarriedRow {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

/// What a band comes to: tasks and copies in this order, a level's copy after its task.
struct BandWork {
  struct Step {
    ReduceTask reduce;  ///< without rows when the band completes none
    CarriedRow carry;   ///< of the level above; without bytes when there is none
  };
  std::vector<Step> steps;  ///< of level 1, 2, ...
};

/// Makes all smaller levels of an image of 8-bit pixels from bands of its rows, from top to bottom, of any height. A
/// sample is the one that LevelReducer makes, whatever the bands.
class BandReducer {
 public:
  static constexpr int most_levels = 13;  ///< sums fit 32 bits up to there

  /// Memory for values, which are read and written by those who do the work.
  static std::size_t memory_bytes(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows);

  /// \param most_rows  of a band. \param memory  aligned to 256 bytes; nothing in it is touched here.
  /// \throws std::invalid_argument for too many levels or another format; std::length_error for too little memory.
  BandReducer(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows,
              std::span<std::byte> memory);

  /// Takes the next rows of the image; what is to be done for them is valid until the next call.
  /// \param band  whose rectangle is those rows, of the image's width.
  /// \param levels  of level 1, 2, ...: each holds the rows that the band completes, of the level's width.
  /// \throws std::invalid_argument when the band isn't the next one, or too high, or a level doesn't hold its rows.
  const BandWork& add(const ConstPixelView<MemorySpace::device>& band,
                      std::span<const PixelView<MemorySpace::device>> levels);

  /// The image's rows that were taken.
  std::int64_t rows() const noexcept { return rows_; }

 private:
  /// Of a level's values.
  struct Values {
    std::int64_t row_bytes = 0;
    std::byte* carried = nullptr;
    std::byte* sums = nullptr;  ///< not of level 0
  };

  PyramidLayout layout_;
  PixelFormat format_;
  std::int64_t most_rows_;
  std::int64_t rows_ = 0;
  std::vector<Values> values_;
  BandWork work_;
};

}  // namespace slidestream::cuda
