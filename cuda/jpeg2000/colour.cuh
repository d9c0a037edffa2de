#pragma once

#include "cuda/colour/convert_colour.hpp"
#include "cuda/jpeg2000/transform.cuh"

/// \file
/// From bit planes to pixels that are made of three components, or to RGB: a thread block makes a tile's third and
/// second component first, and keeps their values in memory of its own; as the first one's come, pixels leave.

namespace slidestream::cuda {
namespace {

/// Four neighbouring values of a row, the first in a column that four divides.
template <class Value>
struct alignas(16) Four {
  Value at[4];
};

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
        first_column_(tile.first_column),
        columns_(tile.columns),
        luminance_of_(tile.luminance_of),
        rgb_of_(tile.rgb_of),
        every_colour_(tile.converted != 0 ? batch.every_colour : nullptr),
        three_(coding.components == 3),
        transformed_(coding.colour_transform != 0),
        words_((reinterpret_cast<std::uintptr_t>(luminance_) | reinterpret_cast<std::uintptr_t>(rgb_) |
                luminance_pitch_ | rgb_pitch_) %
                   4 ==
               0) {}

  __device__ __forceinline__ bool three() const { return three_; }
  __device__ __forceinline__ bool wants_row(std::uint32_t row) const { return row - first_row_ < rows_; }
  __device__ __forceinline__ bool wants_column(std::uint32_t x) const { return x - first_column_ < columns_; }

  /// A pixel of the components' values, if it is wanted; `second` and `third` count where there are three.
  __device__ __forceinline__ void write(std::uint32_t x, std::uint32_t row, Value first, Value second,
                                        Value third) const {
    if (!wants_row(row) || !wants_column(x)) return;
    const Value firsts[1] = {first}, seconds[1] = {second}, thirds[1] = {third};
    Rgb rgb[1];
    std::uint8_t grey[1];
    make<1>(firsts, seconds, thirds, rgb, grey);
    convert<1>(rgb, grey);
    store(x, row, rgb[0], grey[0]);
  }

  /// The same of four pixels from `x` on, in a row that is wanted.
  __device__ __forceinline__ void write_four(std::uint32_t x, std::uint32_t row, const Four<Value>& first,
                                             const Four<Value>& second, const Four<Value>& third) const {
    Rgb rgb[4];
    std::uint8_t grey[4];
    make<4>(first.at, second.at, third.at, rgb, grey);
    convert<4>(rgb, grey);
    if (words_ && wants_column(x) && wants_column(x + 3)) {
      const auto word = [](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
        return a | b << 8 | c << 16 | d << 24;
      };
      if (rgb_pitch_ > 0) {
        auto* const to = reinterpret_cast<std::uint32_t*>(rgb_ + static_cast<std::size_t>(row) * rgb_pitch_ + 3 * x);
        to[0] = word(rgb[0].red, rgb[0].green, rgb[0].blue, rgb[1].red);
        to[1] = word(rgb[1].green, rgb[1].blue, rgb[2].red, rgb[2].green);
        to[2] = word(rgb[2].blue, rgb[3].red, rgb[3].green, rgb[3].blue);
      }
      if (luminance_pitch_ > 0) {
        *reinterpret_cast<std::uint32_t*>(luminance_ + static_cast<std::size_t>(row) * luminance_pitch_ + x) =
            word(grey[0], grey[1], grey[2], grey[3]);
      }
      return;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (wants_column(x + i)) store(x + i, row, rgb[i], grey[i]);
    }
  }

 private:
  /// What is the same for all of a tile's pixels is asked once for `count` of them.
  template <std::uint32_t count>
  __device__ __forceinline__ void make(const Value* first, const Value* second, const Value* third, Rgb* rgb,
                                       std::uint8_t* grey) const {
    if (!three_ || luminance_of_ != PixelsOf::rgb) {
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) {
        grey[i] = first_of(Wavelet::rounded(first[i]), luminance_of_);
        rgb[i] = {grey[i], grey[i], grey[i]};
      }
    }
    if (!three_) return;
    const auto make_samples = [&](bool transformed) {
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) {
        const ColourSamples samples = undo_colour_transform(transformed, first[i], second[i], third[i]);
        rgb[i] = {samples.first, samples.second, samples.third};
      }
    };
    if (transformed_) {
      make_samples(true);
    } else {
      make_samples(false);
    }
    if (luminance_of_ == PixelsOf::rgb) {
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) grey[i] = luminance(rgb[i].red, rgb[i].green, rgb[i].blue);
    }
    if (rgb_of_ == PixelsOf::ycbcr) {
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) rgb[i] = ycbcr_to_rgb(rgb[i].red, rgb[i].green, rgb[i].blue);
    }
  }

  /// To sRGB, where that is asked for.
  template <std::uint32_t count>
  __device__ __forceinline__ void convert(Rgb* rgb, std::uint8_t* grey) const {
    if (every_colour_ == nullptr) return;
#pragma unroll
    for (std::uint32_t i = 0; i < count; ++i) {
      rgb[i] = unpacked(every_colour_[number_of(rgb[i])]);
      grey[i] = luminance(rgb[i].red, rgb[i].green, rgb[i].blue);
    }
  }

  __device__ __forceinline__ void store(std::uint32_t x, std::uint32_t row, const Rgb& rgb, std::uint8_t grey) const {
    if (rgb_pitch_ > 0) {
      std::uint8_t* const to = rgb_ + static_cast<std::size_t>(row) * rgb_pitch_ + 3 * x;
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
    if (luminance_pitch_ > 0) luminance_[static_cast<std::size_t>(row) * luminance_pitch_ + x] = grey;
  }

  std::uint8_t* luminance_;  ///< the tile's own pixel (0, 0)
  std::uint8_t* rgb_;
  std::uint32_t luminance_pitch_, rgb_pitch_, first_row_, rows_, first_column_, columns_;
  PixelsOf luminance_of_, rgb_of_;
  const std::uint32_t* every_colour_;  ///< null: colours stay
  bool three_, transformed_;
  bool words_;  ///< four pixels' bytes are whole words
};

/// A component's values in memory, beside the first one's. Without values all are zero.
template <class Value>
struct ValuesBeside {
  const Value* values;
  std::uint32_t pitch;
  std::uint32_t dx;
  std::uint32_t dy;

  __device__ __forceinline__ Value at(std::uint32_t x, std::uint32_t row) const {
    if (values == nullptr) return Value{};
    return values[static_cast<std::size_t>(row / dy) * pitch + x / dx];
  }
  /// Of columns `x` to x + 3, those left of `end`.
  __device__ __forceinline__ Four<Value> four_at(std::uint32_t x, std::uint32_t row, std::uint32_t end) const {
    Four<Value> four{};
    if (values == nullptr) return four;
    if (dx == 1 && dy == 1) {
      return *reinterpret_cast<const Four<Value>*>(values + static_cast<std::size_t>(row) * pitch + x);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (x + i < end) four.at[i] = at(x + i, row);
    }
    return four;
  }
};

/// Rows of one component, four columns a thread: the values of the second and third are kept, those of the first become
/// pixels.
template <class Wavelet>
class ColourRows {
 public:
  using Value = typename Wavelet::Value;
  static constexpr bool by_rows = true;

  /// \param kept  the components whose values are in memory, a bit each; of others all are zero.
  __device__ __forceinline__ ColourRows(const Jpeg2000DeviceBatch& batch, const Jpeg2000DeviceTile& tile,
                                        const Jpeg2000Coding& coding, std::uint32_t c, std::uint32_t kept)
      : writer_(batch, tile, coding), width_(coding.decoded[c].width), height_(coding.decoded[c].height) {
    auto* const values = reinterpret_cast<Value*>(batch.colour) + blockIdx.x * colour_floats;
    kept_ = c > 0 ? values + (c - 1) * side * side : nullptr;
    if (c > 0 || !writer_.three()) return;
    const DecodedComponent second = coding.decoded[1], third = coding.decoded[2];
    if ((kept & 2U) != 0) second_ = {values, side, second.dx, second.dy};
    if ((kept & 4U) != 0) third_ = {values + side * side, side, third.dx, third.dy};
  }

  /// Fetches the first of what the strip's rows need of the other components.
  __device__ __forceinline__ void begin(std::uint32_t first_row) {
    if (kept_ == nullptr) fetch(first_row + threadIdx.x / across);
  }
  /// One loop for all cases, so that it stays in the instruction cache; what the next turn needs is under way.
  __device__ __forceinline__ void finish(std::uint32_t first_row, std::uint32_t end_row, const Value* strip) {
    if (x() >= width_) return;
    const Value* from = strip + threadIdx.x / across * side + x();
#pragma unroll 1
    for (std::uint32_t row = first_row + threadIdx.x / across; static_cast<std::int32_t>(row - end_row) < 0;
         row += step, from += step * side) {
      const Four<Value> second = seconds_, third = thirds_;
      if (kept_ == nullptr) fetch(row + step);
      if (row >= height_) continue;  // above the first
      const auto first = *reinterpret_cast<const Four<Value>*>(from);
      if (kept_ != nullptr) {
        *reinterpret_cast<Four<Value>*>(kept_ + row * side + x()) = first;
      } else if (writer_.wants_row(row)) {
        writer_.write_four(x(), row, first, second, third);
      }
    }
  }

 private:
  static constexpr std::uint32_t side = small_jpeg2000_side;
  static constexpr std::uint32_t across = side / 4;  ///< threads a row
  static constexpr std::uint32_t step = TransformShape::threads / across;

  static __device__ __forceinline__ std::uint32_t x() { return threadIdx.x % across * 4; }
  __device__ __forceinline__ void fetch(std::uint32_t row) {
    if (x() >= width_ || row >= height_ || !writer_.wants_row(row)) return;
    seconds_ = second_.four_at(x(), row, width_);
    thirds_ = third_.four_at(x(), row, width_);
  }

  PixelWriter<Wavelet> writer_;
  std::uint32_t width_, height_;  ///< of the component
  Value* kept_;                   ///< null: of the first component
  ValuesBeside<Value> second_{}, third_{};
  Four<Value> seconds_{}, thirds_{};
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
      ColourRows<Wavelet> pixels(batch, tile, coding, c, kept);
      transform_last_level<Wavelet>(component, batch.planes, memory, pixels);
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
