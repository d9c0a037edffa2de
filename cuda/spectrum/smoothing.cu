#include "cuda/spectrum/smoothing.hpp"

#include <algorithm>

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

/// A plane as the kernels see it: coordinates of pixels relative to its first, the image's edges too.
struct Pixels {
  const std::uint8_t* data;
  std::ptrdiff_t pitch;
  int width;
  int height;
  int left;    ///< the image's first column, at most 0
  int right;   ///< one beyond the image's last column
  int top;     ///< the image's first row, at most 0
  int bottom;  ///< one beyond the image's last row
};

/// Where `out` begins, relative to the plane.
struct Origin {
  int x;
  int y;
};

/// The place within [first, end) that a mirror at both ends puts `i` at, kept within the `size` that are there: places
/// beyond are asked for with weight 0 only.
__device__ int mirrored_place(int i, int first, int end, int size) {
  const int place = first + static_cast<int>(mirrored(i - first, end - first));
  return min(max(place, 0), size - 1);
}

/// The sum that both directions form, nearest first. `pair(i)` is the sum of the two samples at distance i.
template <class Pair>
__device__ float weighted_sum(float centre, Pair pair, const float* taps, int radius) {
  float sum = taps[0] * centre;
  for (int i = 1; i <= radius; ++i) sum = fmaf(taps[i], pair(i), sum);
  return sum;
}

// Radius 3 and less: a thread takes 4 columns and walks down, the newest rows in its registers.

constexpr int narrow_radius = 3;

struct NarrowShape {
  static constexpr int threads = 128;
  static constexpr int columns = 4;  ///< of a thread
  static constexpr int step = 8;     ///< rows between loads: those of the next step are on their way meanwhile
  static constexpr int rows = 128;   ///< of a thread; a multiple of `step`
  static constexpr int blocks = 4;   ///< on a multiprocessor: keeps registers below 128
};

struct NarrowTaps {
  float along_x[narrow_radius + 1];
  float along_y[narrow_radius + 1];
};

/// The 12 pixels around 4 columns: 4 before, the 4, 4 after; one byte each, the first lowest.
struct Neighbourhood {
  std::uint32_t before;
  std::uint32_t own;
  std::uint32_t after;
};

/// Reads neighbourhoods of one thread's 4 columns.
template <bool aligned>
class NeighbourhoodReader {
 public:
  __device__ NeighbourhoodReader(const Pixels& pixels, int x) : pixels_(pixels), x_(x) {
    at_edge_ = x - narrow_radius < pixels.left || x + NarrowShape::columns + narrow_radius > pixels.right;
    // Whole words are read. Those without a pixel that counts may lie beyond the plane: others stand for them.
    misaligned_ = aligned ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(pixels.data + x) & 3);
    const int start = static_cast<int>(reinterpret_cast<std::uintptr_t>(pixels.data) & 3);
    const int last = ((pixels.width - 1 + start) & ~3) - start;
    for (int i = 0; i < words; ++i) offsets_[i] = min(max(x - misaligned_ + 4 * (i - 1), -start), last);
  }

  __device__ Neighbourhood read(int y) const {
    const std::uint8_t* row = pixels_.data + mirrored_row(y) * pixels_.pitch;
    if (at_edge_) return read_edge(row);
    std::uint32_t word[words];
#pragma unroll
    for (int i = 0; i < words; ++i) word[i] = __ldg(reinterpret_cast<const std::uint32_t*>(row + offsets_[i]));
    if constexpr (aligned) {
      return {word[0], word[1], word[2]};
    } else {
      const int bits = 8 * misaligned_;
      return {__funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits),
              __funnelshift_r(word[2], word[3], bits)};
    }
  }

 private:
  static constexpr int words = aligned ? 3 : 4;

  /// One reflection is enough: images are higher than the radius. Rows beyond are loaded ahead and never used.
  __device__ int mirrored_row(int y) const {
    if (y < pixels_.top) y = 2 * pixels_.top - y;
    if (y >= pixels_.bottom) y = 2 * (pixels_.bottom - 1) - y;
    return min(max(y, 0), pixels_.height - 1);
  }

  __device__ Neighbourhood read_edge(const std::uint8_t* row) const {
    std::uint32_t word[3] = {};
    for (int i = 0; i < 12; ++i) {
      const std::uint32_t pixel = row[mirrored_place(x_ - 4 + i, pixels_.left, pixels_.right, pixels_.width)];
      word[i / 4] |= pixel << (8 * (i % 4));
    }
    return {word[0], word[1], word[2]};
  }

  const Pixels& pixels_;
  int x_;
  int misaligned_;
  bool at_edge_;
  int offsets_[words];
};

/// Byte `i` of a word, less the offset: 2^23 + byte is put together as bits, and exact.
template <int i>
__device__ float pixel_of(std::uint32_t word) {
  constexpr std::uint32_t two_to_23 = 0x4B000000U;
  return __uint_as_float(__byte_perm(word, two_to_23, 0x7440U + i)) - (8388608.0F + luminance_offset);
}

__device__ float4 smoothed_along_x(const Neighbourhood& at, const NarrowTaps& taps) {
  const float p[10] = {pixel_of<1>(at.before), pixel_of<2>(at.before), pixel_of<3>(at.before), pixel_of<0>(at.own),
                       pixel_of<1>(at.own),    pixel_of<2>(at.own),    pixel_of<3>(at.own),    pixel_of<0>(at.after),
                       pixel_of<1>(at.after),  pixel_of<2>(at.after)};
  const auto sum = [&](int c) {
    return weighted_sum(
        p[c], [&](int i) { return p[c - i] + p[c + i]; }, taps.along_x, narrow_radius);
  };
  return {sum(3), sum(4), sum(5), sum(6)};
}

template <bool aligned>
__global__ void __launch_bounds__(NarrowShape::threads, NarrowShape::blocks)
    smooth_narrow(float* out, std::ptrdiff_t out_pitch, int out_width, int out_height, Pixels pixels, Origin origin,
                  NarrowTaps taps) {
  constexpr int step = NarrowShape::step;
  constexpr int above = 2 * narrow_radius;  // rows that a step takes over from the one before
  const int out_x = (blockIdx.x * NarrowShape::threads + threadIdx.x) * NarrowShape::columns;
  if (out_x >= out_width) return;
  const int first = blockIdx.y * NarrowShape::rows;
  const int end = min(first + NarrowShape::rows, out_height);
  const NeighbourhoodReader<aligned> reader(pixels, origin.x + out_x);

  float4 row[above + step];  // smoothed along x; row[i] is 3 rows above the step's i-th
#pragma unroll
  for (int i = 0; i < above; ++i) row[i] = smoothed_along_x(reader.read(origin.y + first + i - narrow_radius), taps);
  Neighbourhood next[step];
#pragma unroll
  for (int i = 0; i < step; ++i) next[i] = reader.read(origin.y + first + i + narrow_radius);

  for (int y = first; y < end; y += step) {
#pragma unroll
    for (int i = 0; i < step; ++i) {
      row[above + i] = smoothed_along_x(next[i], taps);
      if (y + step < end) next[i] = reader.read(origin.y + y + step + i + narrow_radius);
      const auto sum = [&](float float4::*c) {
        return weighted_sum(
            row[i + 3].*c, [&](int j) { return row[i + 3 - j].*c + row[i + 3 + j].*c; }, taps.along_y, narrow_radius);
      };
      const float4 value = {sum(&float4::x), sum(&float4::y), sum(&float4::z), sum(&float4::w)};
      // Streaming: nothing reads it before the pass is over.
      if (y + i < end) __stcs(reinterpret_cast<float4*>(out + (y + i) * out_pitch + out_x), value);
    }
#pragma unroll
    for (int i = 0; i < above; ++i) row[i] = row[step + i];
  }
}

// Any radius: a block smooths a tile and the rows around it along x into shared memory, then along y.

struct WideShape {
  static constexpr int columns = 32;
  static constexpr int rows = 64;
  static constexpr int threads_y = 8;
};

__global__ void __launch_bounds__(WideShape::columns* WideShape::threads_y)
    smooth_wide(float* out, std::ptrdiff_t out_pitch, int out_width, int out_height, Pixels pixels, Origin origin,
                SmoothingTaps taps) {
  __shared__ float row[WideShape::rows + 2 * max_smoothing_radius][WideShape::columns];
  const int out_x = blockIdx.x * WideShape::columns + threadIdx.x;
  const int first = blockIdx.y * WideShape::rows;
  const int radius = taps.radius;
  const auto at = [&](const std::uint8_t* line, int x) {
    const int column = mirrored_place(origin.x + x, pixels.left, pixels.right, pixels.width);
    return static_cast<float>(static_cast<int>(line[column]) - luminance_offset);
  };
  for (int y = threadIdx.y; y < WideShape::rows + 2 * radius; y += WideShape::threads_y) {
    const int from = mirrored_place(origin.y + first + y - radius, pixels.top, pixels.bottom, pixels.height);
    const std::uint8_t* line = pixels.data + from * pixels.pitch;
    row[y][threadIdx.x] = weighted_sum(
        at(line, out_x), [&](int i) { return at(line, out_x - i) + at(line, out_x + i); }, taps.along_x, radius);
  }
  __syncthreads();
  if (out_x >= out_width) return;
  for (int y = threadIdx.y; y < WideShape::rows && first + y < out_height; y += WideShape::threads_y) {
    const auto pair = [&](int i) { return row[y + radius - i][threadIdx.x] + row[y + radius + i][threadIdx.x]; };
    out[(first + y) * out_pitch + out_x] = weighted_sum(row[y + radius][threadIdx.x], pair, taps.along_y, radius);
  }
}

unsigned blocks_for(std::int64_t count, int per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

SmoothingTaps smoothing_taps(const AnalysisConfig& config, float scale) {
  const GaussianTaps gaussian = gaussian_taps(config.smoothing_radius, config.smoothing_sigma);
  SmoothingTaps taps;
  taps.radius = config.smoothing_radius;
  for (int i = 0; i <= config.smoothing_radius; ++i) {
    taps.along_x[i] = static_cast<float>(gaussian[i]);
    taps.along_y[i] = static_cast<float>(gaussian[i]) * scale;
  }
  return taps;
}

void smooth(const SmoothedPlane& out, const DevicePlane& in, const SmoothingTaps& taps, cudaStream_t stream) {
  if (out.width <= 0 || out.height <= 0) return;
  // An edge so far away that nothing mirrors there may as well be nearer.
  const auto edge = [](std::int64_t at) {
    constexpr std::int64_t far = 1 << 29;
    return static_cast<int>(std::clamp(at, -far, far));
  };
  const Pixels pixels = {in.data,
                         in.pitch,
                         static_cast<int>(in.width),
                         static_cast<int>(in.height),
                         edge(-in.x0),
                         edge(in.image_width - in.x0),
                         edge(-in.y0),
                         edge(in.image_height - in.y0)};
  const Origin origin = {static_cast<int>(out.x0 - in.x0), static_cast<int>(out.y0 - in.y0)};
  const int width = static_cast<int>(out.width);
  const int height = static_cast<int>(out.height);
  if (taps.radius > narrow_radius) {
    const dim3 grid(blocks_for(width, WideShape::columns), blocks_for(height, WideShape::rows));
    const dim3 block(WideShape::columns, WideShape::threads_y);
    smooth_wide<<<grid, block, 0, stream>>>(out.data, out.pitch, width, height, pixels, origin, taps);
  } else {
    NarrowTaps narrow{};
    std::copy_n(taps.along_x, narrow_radius + 1, narrow.along_x);
    std::copy_n(taps.along_y, narrow_radius + 1, narrow.along_y);
    const dim3 grid(blocks_for(width, NarrowShape::threads * NarrowShape::columns),
                    blocks_for(height, NarrowShape::rows));
    const bool aligned = reinterpret_cast<std::uintptr_t>(in.data + origin.x) % 4 == 0;
    const auto kernel = aligned ? smooth_narrow<true> : smooth_narrow<false>;
    kernel<<<grid, NarrowShape::threads, 0, stream>>>(out.data, out.pitch, width, height, pixels, origin, narrow);
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
