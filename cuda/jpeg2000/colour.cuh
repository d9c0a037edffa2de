#pragma once

#include "cuda/jpeg2000/transform.cuh"

/// \file
/// From bit planes to pixels that are made of three components, or to RGB: a thread block makes a tile's third and
/// second component first, and keeps their values in memory of its own; as the first one's come, pixels leave.

namespace slidestream::cuda {
namespace {

/// Writes pixels of a tile.
template <class Wavelet>
class PixelWriter {
 public:
  using Value = typename Wavelet::Value;

  __device__ __forceinline__ PixelWriter(const Jpeg2000DeviceBatch& batch, const Jpeg2000DeviceTile& tile,
                                         const Jpeg2000Coding& coding)
      : luminance_(batch.plane + tile.luminance_origin),
        rgb_(batch.plane + tile.rgb_origin),
        luminance_pitch_(tile.luminance_pitch),
        rgb_pitch_(tile.rgb_pitch),
        first_row_(tile.first_row),
        rows_(tile.rows),
        luminance_of_(tile.luminance_of),
        rgb_of_(tile.rgb_of),
        three_(coding.components == 3),
        transformed_(coding.colour_transform != 0) {}

  __device__ __forceinline__ bool three() const { return three_; }

  /// A pixel of the components' values, in a column that is wanted; `second` and `third` count where there are three.
  __device__ __forceinline__ void write(std::uint32_t x, std::uint32_t row, Value first, Value second,
                                        Value third) const {
    if (row - first_row_ >= rows_) return;
    std::uint8_t grey = first_of(Wavelet::rounded(first), luminance_of_);
    Rgb rgb{grey, grey, grey};
    if (three_) {
      const ColourSamples samples = undo_colour_transform(transformed_, first, second, third);
      rgb = rgb_of(samples, rgb_of_);
      if (luminance_of_ == PixelsOf::rgb) grey = luminance(samples.first, samples.second, samples.third);
    }
    if (rgb_pitch_ > 0) {
      std::uint8_t* const to = rgb_ + static_cast<std::size_t>(row) * rgb_pitch_ + 3 * x;
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
    if (luminance_pitch_ > 0) luminance_[static_cast<std::size_t>(row) * luminance_pitch_ + x] = grey;
  }

 private:
  std::uint8_t* luminance_;  ///< the tile's own pixel (0, 0)
  std::uint8_t* rgb_;
  std::uint32_t luminance_pitch_, rgb_pitch_, first_row_, rows_;
  PixelsOf luminance_of_, rgb_of_;
  bool three_, transformed_;
};

/// A component's values in memory, beside a column of the first one's. Without a column all are zero.
template <class Value>
struct ColumnBeside {
  const Value* column;
  std::uint32_t pitch;
  std::uint32_t dy;

  __device__ __forceinline__ Value at(std::uint32_t row) const {
    if (column == nullptr) return Value{};
    return column[static_cast<std::size_t>(dy == 1 ? row : row / dy) * pitch];
  }
};

/// A thread's column of one component: the values of the second and third are kept, those of the first become pixels.
template <class Wavelet>
class ColourColumn {
 public:
  using Value = typename Wavelet::Value;

  /// \param kept  the components whose values are in memory, a bit each; of others all are zero.
  __device__ __forceinline__ ColourColumn(const Jpeg2000DeviceBatch& batch, const Jpeg2000DeviceTile& tile,
                                          const Jpeg2000Coding& coding, std::uint32_t c, std::uint32_t kept)
      : writer_(batch, tile, coding), wanted_(threadIdx.x - tile.first_column < tile.columns) {
    constexpr std::uint32_t side = small_jpeg2000_side;
    auto* const values = reinterpret_cast<Value*>(batch.colour) + blockIdx.x * colour_floats;
    kept_ = c > 0 ? values + (c - 1) * side * side + threadIdx.x : nullptr;
    if (c > 0 || !writer_.three()) return;
    const DecodedComponent second = coding.decoded[1], third = coding.decoded[2];
    if ((kept & 2U) != 0) second_ = {values + threadIdx.x / second.dx, side, second.dy};
    if ((kept & 4U) != 0) third_ = {values + side * side + threadIdx.x / third.dx, side, third.dy};
  }

  /// Fetches what the strip's rows need of the other components, all at once.
  __device__ __forceinline__ void begin(std::uint32_t first) {
    if (kept_ != nullptr || !writer_.three()) return;
#pragma unroll
    for (std::uint32_t k = 0; k < strip_rows; ++k) {
      seconds_[k] = second_.at(first + k);
      thirds_[k] = third_.at(first + k);
    }
  }
  __device__ __forceinline__ void put_inner(std::uint32_t k, std::uint32_t row, Value value) const {
    if (kept_ != nullptr) {
      kept_[row * small_jpeg2000_side] = value;
    } else if (wanted_) {
      writer_.write(threadIdx.x, row, value, seconds_[k], thirds_[k]);
    }
  }
  __device__ __forceinline__ void put(std::uint32_t row, Value value) const {
    if (kept_ != nullptr) {
      kept_[row * small_jpeg2000_side] = value;
    } else if (wanted_ && writer_.three()) {
      writer_.write(threadIdx.x, row, value, second_.at(row), third_.at(row));
    } else if (wanted_) {
      writer_.write(threadIdx.x, row, value, Value{}, Value{});
    }
  }

 private:
  static constexpr std::uint32_t strip_rows = 2 * TransformShape::strip_pairs;

  PixelWriter<Wavelet> writer_;
  bool wanted_;
  Value* kept_;  ///< null: of the first component
  ColumnBeside<Value> second_{}, third_{};
  Value seconds_[strip_rows] = {}, thirds_[strip_rows] = {};
};

/// Blocks take tiles by turns, so that there is memory for as many as run.
template <class Wavelet>
__global__ void __launch_bounds__(TransformShape::threads, TransformShape::blocks_per_multiprocessor)
    transform_colour(const Jpeg2000DeviceBatch batch) {
  auto& memory = *reinterpret_cast<TransformMemory*>(block_memory());
  for (std::uint32_t number = blockIdx.x; number < batch.tile_count; number += gridDim.x) {
    const Jpeg2000DeviceTile tile = batch.tiles[number];
    const Jpeg2000Coding& coding = batch.codings[tile.coding];
    if (batch.verdicts[number] != 0 || (coding.reversible != 0) != Wavelet::reversible) continue;
    if (way_of(tile, coding) != Jpeg2000Way::colour) continue;
    std::uint32_t kept = 0;
    for (std::uint32_t c = coding.components; c-- > 0;) {
      const DecodedComponent component = coding.decoded[c];
      place_blocks(batch, coding, component, tile.first_block, memory);
      // Of glass there is often no colour at all.
      if (c > 0 && memory.used == 0) {
        __syncthreads();
        continue;
      }
      kept |= 1U << c;
      transform_small_levels<Wavelet>(component, batch.planes, memory);
      ColourColumn<Wavelet> pixels(batch, tile, coding, c, kept);
      transform_last_level<Wavelet>(component, batch.planes, memory, pixels);
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
