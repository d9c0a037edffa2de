#pragma once

#include <cstdint>
#include <utility>

#include "cuda/device/primitives.cuh"
#include "cuda/spectrum/dft16.cuh"
#include "cuda/spectrum/fused_counters.cuh"
#include "cuda/spectrum/fused_windows.hpp"
#include "runtime/cuda/check.hpp"

/// \file
/// What both builds of the fused kernel share.
///
/// The rows of the plane are taken in *strips* of 128. At a stride of 128 a window is two strips, one above the other,
/// and its DFT is P + (-1)^ky Q, where P and Q are the DFTs of 256 of the two strips padded with zeros. So each strip
/// is transformed once for both windows that it is part of: threads walk down a column of windows and keep the last
/// strip's DFT in their registers. A window's bits depend on its two strips alone, never on where a walk began.
///
/// A window's columns kx are divided by parity between two thread blocks, a *team*: one computes the even, one the odd
/// ones. Each transforms only what it needs: a DFT along x in two steps of 16 gives the outputs of one parity from half
/// of the first step's outputs. So both blocks do half the work, without exchanging anything.
///
/// Along x, two rows y and y + 64 of a strip are transformed as one complex row: 64 *pairs*, of which each block makes
/// 128 outputs, j = 0 to 127, kx = 2 j + parity. The rows' own outputs follow from j and the mirrored 256 - kx; they
/// are separated when the columns are transformed, so only 64 of the 128 columns are: the others are their conjugates.

namespace slidestream::cuda {

namespace {

constexpr int side = 256;
constexpr int strip_rows = 128;
constexpr int pairs = strip_rows / 2;
constexpr int outputs = side / 2;           ///< of a pair, in one block
constexpr int block_columns = outputs / 2;  ///< that one block transforms along y

/// Outputs of a strip's pairs, one row a pair. Within a row the place of output j is j ^ (row % 16): threads that read
/// a column of 16 neighbouring rows find them in different banks.
struct RowBuffer {
  float2 at[pairs][outputs];
};

/// Team of this thread block, and the parity of its columns.
__device__ int block_team() { return static_cast<int>(blockIdx.x / 2); }
__device__ int block_parity() { return static_cast<int>(blockIdx.x % 2); }
__device__ int team_count() { return static_cast<int>(gridDim.x / 2); }

constexpr int no_window = -1;
constexpr int no_more = -2;  ///< in a window's place: there is no strip any more

/// The strips that a team works on, in order: down one column of windows after the other. Whole columns first, teams
/// side by side so that they share what they read; what is left over is divided evenly, so that all end together.
class Walk {
 public:
  __device__ explicit Walk(const FusedTask& task) : columns_(task.columns), rows_(task.rows) {
    const int team = block_team();
    const int teams = team_count();
    whole_ = columns_ / teams;
    const long long left = static_cast<long long>(columns_ - whole_ * teams) * rows_;
    at_ = static_cast<int>(left * team / teams);
    end_ = static_cast<int>(left * (team + 1) / teams);
    begin_piece();
  }

  __device__ bool done() const { return column_ < 0; }
  /// The strip's first pixel.
  __device__ const float* pixels(const FusedTask& task) const {
    return task.plane + static_cast<std::int64_t>(strip_) * strip_rows * task.pitch +
           static_cast<std::int64_t>(column_) * (side / 2);
  }
  /// The window that this strip completes, or no_window.
  __device__ int window() const { return strip_ > first_ ? (strip_ - 1) * columns_ + column_ : no_window; }
  __device__ void next() {
    if (++strip_ > last_) begin_piece();
  }

 private:
  __device__ void begin_piece() {
    first_ = 0;
    last_ = rows_;
    if (round_ < whole_) {
      column_ = round_ * team_count() + block_team();
      ++round_;
    } else if (at_ < end_) {
      const int column = at_ / rows_;
      column_ = whole_ * team_count() + column;
      first_ = at_ - column * rows_;
      const int count = min(rows_ - first_, end_ - at_);
      last_ = first_ + count;
      at_ += count;
    } else {
      column_ = -1;
    }
    strip_ = first_;
  }

  int columns_;
  int rows_;
  int whole_;  ///< columns that every team has for itself
  int round_ = 0;
  int at_;  ///< windows left over, counted down the columns
  int end_;
  int column_ = 0;
  int strip_ = 0;
  int first_ = 0;  ///< strips of the present piece
  int last_ = 0;
};

// Along x. 8 lanes transform a pair; lane t of them brings the inputs 16 n + 2 t and 16 n + 2 t + 1.

constexpr int row_lanes = 8;

/// The two sequences of a lane, folded to the parity's 8 inputs each.
struct RowInputs {
  float2 v[2][8];
};

/// `upper` and `lower` are the pair's rows, moved to the lane's first input.
template <int parity>
__device__ __forceinline__ RowInputs fold_pair(const float2* upper, const float2* lower) {
  RowInputs in;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 a = upper[8 * n];
    const float2 b = upper[8 * (n + 8)];
    const float2 c = lower[8 * n];
    const float2 d = lower[8 * (n + 8)];
    const float2 real = parity == 0 ? a + b : a - b;
    const float2 imaginary = parity == 0 ? c + d : c - d;
    in.v[0][n] = {real.x, imaginary.x};
    in.v[1][n] = {real.y, imaginary.y};
    // Folded before the next are read: there are no registers for all.
    compute_here(in.v[0][n]);
    compute_here(in.v[1][n]);
  }
  return in;
}

/// Multiplies input n of a lane's second step by root^n, n from 0 to 15, from a few powers kept in registers.
class RowTwiddles {
 public:
  /// For root = e^(-2 pi i exponent / 256); `roots` has all of them.
  __device__ RowTwiddles(const float2* roots, int exponent) {
#pragma unroll
    for (int i = 1; i < 4; ++i) {
      ones_[i] = roots[exponent * i];
      fours_[i] = roots[exponent * 4 * i % side];
    }
  }
  template <int n>
  __device__ __forceinline__ float2 apply(float2 v) const {
    if constexpr (n % 4 != 0) v = times(v, ones_[n % 4]);
    if constexpr (n / 4 != 0) v = times(v, fours_[n / 4]);
    return v;
  }

 private:
  float2 ones_[4];
  float2 fours_[4];
};

/// Transforms a pair and leaves its outputs in `row` of a buffer, which the lanes use for their exchange first.
/// `row_in_16` is the row's number modulo 16.
template <int parity>
__device__ __forceinline__ void transform_pair(RowInputs& in, float2* row, int row_in_16, int lane,
                                               const RowTwiddles& twiddles) {
  half_dft16<parity>(in.v[0]);
  half_dft16<parity>(in.v[1]);
  // Line k of the exchange is for lane k: 8 chunks of two, each where no other of its kind uses the same banks.
  const unsigned lines = shared_address(row);
  const unsigned chunk = lines + 16 * static_cast<unsigned>(lane);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) store_shared((chunk ^ (16 * k)) + 128 * k, in.v[0][k], in.v[1][k]);
  __syncwarp();
  float2 v[16];
  const unsigned own = chunk + 128 * static_cast<unsigned>(lane);
#pragma unroll
  for (unsigned i = 0; i < 8; ++i) load_shared(v[2 * i], v[2 * i + 1], own ^ (16 * i));
  __syncwarp();
  [&]<int... n>(std::integer_sequence<int, n...>) { ((v[n] = twiddles.template apply<n>(v[n])), ...); }
  (std::make_integer_sequence<int, 16>());
  dft16(v);
  // Output 8 d + lane goes to place (8 d + lane) ^ row_in_16.
  const unsigned place = lines + 8 * static_cast<unsigned>(lane ^ (row_in_16 & 7));
  const unsigned high = 8 * static_cast<unsigned>(row_in_16 & 8);
#pragma unroll
  for (unsigned d = 0; d < 16; ++d) store_shared((d % 2 == 0 ? place + high : place - high) + 64 * d, v[d]);
}

// Along y. 16 lanes transform a column; group g of 16 takes the columns j = g, g + 16, g + 32, g + 48.

constexpr int column_threads = 256;
constexpr int column_lanes = 16;
constexpr int column_groups = column_threads / column_lanes;
constexpr int columns_per_group = block_columns / column_groups;

/// log2(1 + |f|), with the hardware's approximations: good to about 1e-6.
__device__ __forceinline__ float octaves_of(float2 f) {
  return approximate_log2(approximate_sqrt(fmaf(f.x, f.x, f.y * f.y)) + 1.0F);
}

struct ValueSums {
  float values = 0.0F;
  float squares = 0.0F;

  __device__ __forceinline__ void add(float value) {
    values += value;
    squares = fmaf(value, value, squares);
  }
};

/// Columns 0 and N/2 of a window are DFTs of real columns. They go through as one complex column C, and C(ky) and
/// C(-ky) give both: `f` holds C(t + 16 d) before, column 0's ky = t + 16 d in f[d] and column N/2's in f[15 - d]
/// after, d from 0 to 7. Those are ky = 0 to 127, and stand for 129 to 255 as well, like all others here stand for two.
/// What is left are the four values that are their own mirror images: `own` has them in lanes 0 to 3 of the warp: of
/// ky = 0, which were counted twice, and of ky = 128, which weren't counted. Called by a whole warp; lanes 16 to 31
/// work on another column, which stays as it is.
__device__ __forceinline__ void separate_real_columns(float2* f, float2& own, float f00_offset) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int t = lane % column_lanes;
  const bool packed = lane < column_lanes;
  const int mirror = (lane & 16) | ((16 - t) & 15);
  const float2 at_0 = f[0];
  const float2 at_128 = f[8];
  float2 before{};
#pragma unroll
  for (int d = 0; d < 8; ++d) {
    const float2 mine = f[15 - d];
    float2 other = {__shfl_sync(all_lanes, mine.x, mirror), __shfl_sync(all_lanes, mine.y, mirror)};
    if (t == 0) other = before;  // ky = 16 d: the mirror image is this lane's own f[16 - d]
    before = mine;
    if (packed) {
      const float2 c = f[d];
      f[d] = {0.5F * (c.x + other.x), 0.5F * (c.y - other.y)};
      f[15 - d] = {0.5F * (c.y + other.y), 0.5F * (other.x - c.x)};
    }
  }
  if (lane == 0) {
    f[0] = {at_0.x + f00_offset, 0.0F};
    f[15] = {at_0.y, 0.0F};
  }
  const float values[4] = {__shfl_sync(all_lanes, f[0].x, 0), __shfl_sync(all_lanes, at_0.y, 0),
                           __shfl_sync(all_lanes, at_128.x, 0), __shfl_sync(all_lanes, at_128.y, 0)};
  own = {lane == 0 ? values[0] : lane == 1 ? values[1] : lane == 2 ? values[2] : values[3], 0.0F};
}

/// The exchange between the two steps of a column, 16 lanes among themselves: lane t gives v[c] for lane c.
struct WideExchange {               // complex numbers at once
  static constexpr int pitch = 18;  ///< lines begin 16 bytes aligned, and in different banks
  float2 at[column_lanes * pitch];

  __device__ __forceinline__ void transpose(float2* v, int t) {
#pragma unroll
    for (int c = 0; c < 16; ++c) at[c * pitch + t] = v[c];
    __syncwarp();
    const float4* line = reinterpret_cast<const float4*>(at + t * pitch);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float4 two = line[i];
      v[2 * i] = {two.x, two.y};
      v[2 * i + 1] = {two.z, two.w};
    }
    __syncwarp();
  }
};

struct NarrowExchange {  // one component after the other, in half the memory
  static constexpr int pitch = 17;
  float at[column_lanes * pitch];

  __device__ __forceinline__ void transpose(float2* v, int t) {
#pragma unroll
    for (int c = 0; c < 16; ++c) at[c * pitch + t] = v[c].x;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i].x = at[t * pitch + i];
    __syncwarp();
#pragma unroll
    for (int c = 0; c < 16; ++c) at[c * pitch + t] = v[c].y;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i].y = at[t * pitch + i];
    __syncwarp();
  }
};

/// What a column's thread keeps for the other statistics; nothing in the build without them, whose code stays as it is.
template <bool more>
struct FurtherCounting {
  __device__ FurtherCounting(const FusedTask&, const unsigned*, int, int) {}
};
template <>
struct FurtherCounting<true> {
  /// `rings` begin the rings' sums in shared memory; `thread` counts the threads that transform columns.
  __device__ FurtherCounting(const FusedTask& task, const unsigned* rings, int thread, int parity)
      : rings_(rings, task, thread % column_lanes), thread_(thread), first_kx_(2 * (thread / column_lanes) + parity) {}

  RingCounter rings_;
  int thread_;
  int first_kx_;  ///< of the columns that the thread's group takes
  int windows_ = 0;
};

/// One thread's share of a block's columns. With `more` it makes the task's other statistics as well.
template <class Exchange, int copies, bool more>
class ColumnWorker : private FurtherCounting<more> {
 public:
  /// `thread` counts the threads that transform columns; `roots` is e^(-2 pi i k / 256) in shared memory.
  __device__ ColumnWorker(const FusedTask& task, const unsigned* counts, Exchange* exchanges, int thread, int parity,
                          const float2* roots)
      : FurtherCounting<more>(task, counts + histogram_words<more>(task, copies), thread, parity),
        counter_(counts, task),
        exchange_(exchanges[thread / column_lanes]),
        t_(thread % column_lanes) {
    const int group = thread / column_lanes;
    real_columns_ = parity == 0 && thread < 32;
    packed_ = parity == 0 && group == 0;
    sign_ = t_ % 2 == 0 ? 1.0F : -1.0F;
    place_ = group ^ t_;
    // The mirror image of j is 127 - j in odd blocks, 128 - j in even ones; packed with j = 0 is 64.
    const int mirror = (parity == 0 ? 128 : 127) - group;
    mirror_place_ = ((mirror & 15) ^ t_) + (mirror & ~15);
    first_mirror_place_ = packed_ ? t_ + 64 : mirror_place_;
#pragma unroll
    for (int c = 1; c < 16; ++c) twiddles_[c] = roots[t_ * c];
#pragma unroll
    for (int q = 0; q < columns_per_group; ++q) {
#pragma unroll
      for (int d = 0; d < 16; ++d) above_[q][d] = {0.0F, 0.0F};
    }
  }

  /// Transforms the columns of one strip, and where `window` isn't negative adds up the window that it completes.
  /// `taken()` is called when the buffer was read.
  template <class Taken>
  __device__ __forceinline__ void run(const FusedTask& task, const RowBuffer& buffer, int window, Taken taken) {
    ValueSums sums;
    [[maybe_unused]] bool is_tissue = false;
    if constexpr (more) is_tissue = window >= 0 && task.more.tissue != nullptr && task.more.tissue[window] != 0;
#pragma unroll
    for (int q = 0; q < columns_per_group; ++q) {
      float2 f[16];
      read_column(f, buffer, q);
      if (q == columns_per_group - 1) taken();
      dft16_of_8(f);
#pragma unroll
      for (int c = 1; c < 16; ++c) f[c] = times(f[c], twiddles_[c]);
      exchange_.transpose(f, t_);
      dft16(f);
#pragma unroll
      for (int d = 0; d < 16; ++d) {
        const float2 strip = f[d];
        f[d] = scaled_sum(above_[q][d], sign_, strip);  // (-1)^ky: ky is t + 16 d
        above_[q][d] = strip;
      }
      if (window < 0) continue;
      if (q == 0 && real_columns_) count_real_columns(f, sums, task, is_tissue);
#pragma unroll
      for (int d = 0; d < 16; ++d) {
        const float octaves = octaves_of(f[d]);
        if constexpr (more) {
          counter_.count(octaves, is_tissue ? static_cast<unsigned>(task.bins) : 0);
          if (task.more.rings != nullptr) this->rings_.add(octaves, square_of(q, d));
        } else {
          counter_.count(octaves);
        }
        sums.add(octaves);
      }
    }
    if (window >= 0) add_to_window(task.moments + 2 * window, sums);
    if constexpr (more) {
      if (task.more.rings != nullptr && window >= 0 && ++this->windows_ % RingCounter::most_windows == 0) {
        this->rings_.flush(task, this->thread_, column_threads);
      }
    }
  }

 private:
  /// |k|^2 of what stands at f[d] of column q when it is counted.
  __device__ __forceinline__ int square_of(int q, int d) const {
    if (q == 0 && packed_) {
      const int kx = d < 8 ? 0 : side / 2;
      const int ky = t_ + 16 * (d < 8 ? d : 15 - d);
      return kx * kx + ky * ky;
    }
    const int kx = this->first_kx_ + 32 * q;
    const int ky = d < 8 ? t_ + 16 * d : side - t_ - 16 * d;
    return kx * kx + ky * ky;
  }

  /// Rows t + 16 a, a from 0 to 7, of column j = group + 16 q, from the pairs' outputs at j and its mirror image.
  __device__ __forceinline__ void read_column(float2* f, const RowBuffer& buffer, int q) const {
    const float2* const own = &buffer.at[t_][place_ + 16 * q];
    const float2* const other = &buffer.at[t_][q == 0 ? first_mirror_place_ : mirror_place_ - 16 * q];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
      const float2 z = own[16 * a * outputs];
      const float2 m = other[16 * a * outputs];
      f[a] = {z.x + m.x, z.y - m.y};
      f[a + 4] = {z.y + m.y, m.x - z.x};
      if (q == 0 && packed_) {
        f[a] = {z.x + z.x, m.x + m.x};
        f[a + 4] = {z.y + z.y, m.y + m.y};
      }
    }
  }

  __device__ __forceinline__ void count_real_columns(float2* f, ValueSums& sums, const FusedTask& task,
                                                     bool is_tissue) {
    constexpr float f00_offset = static_cast<float>(luminance_offset) * side * side;
    float2 own;
    separate_real_columns(f, own, f00_offset);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (lane < 4) {
      const float octaves = octaves_of(own);
      const bool counted_twice = lane < 2;
      const unsigned long long correction = counted_twice ? ~0ULL : 1ULL;
      atomicAdd(reinterpret_cast<unsigned long long*>(task.histogram) + counter_.bin_of(octaves), correction);
      if constexpr (more) {
        if (is_tissue) {
          auto* const cells = reinterpret_cast<unsigned long long*>(task.more.tissue_histogram);
          atomicAdd(cells + counter_.bin_of(octaves), correction);
        }
        // Lane 3's, (N/2, N/2), lies beyond all rings.
        if (task.more.rings != nullptr && lane < 3) {
          const auto value = static_cast<unsigned long long>(this->rings_.whole(octaves));
          const int ring = lane == 0 ? 0 : side / 2;
          atomicAdd(reinterpret_cast<unsigned long long*>(task.more.rings) + ring, counted_twice ? 0 - value : value);
        }
      }
      const float weight = counted_twice ? -0.5F : 0.5F;
      sums.values = weight * octaves;
      sums.squares = sums.values * octaves;
    }
  }

  /// Each thread rounds its sums once: from there on all is integers, and order doesn't matter.
  __device__ __forceinline__ void add_to_window(std::int64_t* moments, const ValueSums& sums) const {
    const int values = __reduce_add_sync(all_lanes, __float2int_rn(sums.values * (1 << fused_sum_bits)));
    const int squares = __reduce_add_sync(all_lanes, __float2int_rn(sums.squares * (1 << fused_square_bits)));
    if (threadIdx.x % 32 == 0) {
      auto* const cells = reinterpret_cast<unsigned long long*>(moments);
      atomicAdd(cells, static_cast<unsigned long long>(static_cast<long long>(values)));
      atomicAdd(cells + 1, static_cast<unsigned long long>(static_cast<long long>(squares)));
    }
  }

  BinCounter<copies> counter_;
  Exchange& exchange_;
  int t_;
  bool real_columns_;
  bool packed_;
  float sign_;
  int place_;
  int mirror_place_;
  int first_mirror_place_;
  float2 twiddles_[16];
  float2 above_[columns_per_group][16];
};

/// e^(-2 pi i k / 256)
__device__ __forceinline__ float2 root256(int k) {
  float2 root;
  sincospif(static_cast<float>(k) / -128.0F, &root.y, &root.x);
  return root;
}

/// Teams that the current device runs at a time: a multiprocessor holds one thread block.
inline int resident_teams() {
  int device = 0;
  int multiprocessors = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return multiprocessors < 4 ? 1 : multiprocessors / 2;
}

/// Thread blocks for a task: no more teams than windows.
inline unsigned blocks_for(const FusedTask& task, int teams) {
  const std::int64_t windows = static_cast<std::int64_t>(task.columns) * task.rows;
  return static_cast<unsigned>(2 * (windows < teams ? windows : teams));
}

}  // namespace

}  // namespace slidestream::cuda
