#pragma once

#include <cstdint>
#include <vector>

#include <slidestream/image.hpp>

/// \file
/// An image reduced by a power of two while its rows come.

namespace slidestream {

/// What the pixels of an axis count in means.
struct PixelWeights {
  std::int64_t pixel = 1;  ///< each but the last, 1 to `BlockMeans::most_weight`
  std::int64_t last = 1;   ///< the last, 1 to `pixel`
};

/// Means of blocks of 2^halvings x 2^halvings pixels of RGB, as far as these are inside the image: floor((2 sum + n) /
/// (2 n)), rounded once, which is what levels of images are; n is the sum of the weights. Used by one thread.
class BlockMeans {
 public:
  static constexpr int most_halvings = 8;              ///< a row's sums fit 32 bits
  static constexpr std::int64_t most_weight = 65'536;  ///< sums fit 64 bits

  /// \param halvings  0 to `most_halvings` \param across  of columns \param down  of rows
  /// \throws std::invalid_argument
  BlockMeans(Size input, int halvings, PixelWeights across = {}, PixelWeights down = {});

  static Size size_of(Size input, int halvings) noexcept;

  /// Takes the next row, and writes one of ceil(width / 2^halvings) pixels to `out` if it is the last of its blocks.
  /// \return whether it is
  bool add(std::uint8_t* out, const std::uint8_t* row);

 private:
  Size input_;
  int halvings_;
  PixelWeights across_;
  PixelWeights down_;
  std::int64_t next_ = 0;            ///< row
  std::vector<std::uint64_t> sums_;  ///< of the blocks that the rows since the last one written lie in
};

}  // namespace slidestream
