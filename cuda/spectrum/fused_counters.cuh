#pragma once

#include "cuda/device/primitives.cuh"
#include "cuda/spectrum/fused_layout.hpp"
#include "cuda/spectrum/fused_windows.hpp"

/// \file
/// What the fused kernel counts in shared memory: bins of the histogram, and in the build with more statistics the
/// histogram of tissue and sums over rings.

namespace slidestream::cuda {

namespace {

/// Counts in shared memory, `copies` interleaved: neighbouring values often fall into one bin.
template <int copies>
class BinCounter {
 public:
  /// For this thread's copy.
  __device__ BinCounter(const unsigned* counts, const FusedTask& task)
      : bins_per_octave_(task.bins_per_octave), bin_of_zero_(magic + task.bin_of_zero) {
    base_ = shared_address(counts) + 4 * (threadIdx.x % copies) - magic_bits * bytes_per_bin;
  }
  __device__ __forceinline__ void count(float octaves) const {
    increment_shared(base_ + bits_of(octaves) * bytes_per_bin);
  }
  /// The same in the histogram that begins `bins` behind.
  __device__ __forceinline__ void count(float octaves, unsigned bins) const {
    increment_shared(base_ + (bits_of(octaves) + bins) * bytes_per_bin);
  }
  __device__ int bin_of(float octaves) const { return static_cast<int>(bits_of(octaves) - magic_bits); }

 private:
  // Adding 1.5 x 2^23 leaves the whole part of a sum in the low bits, rounded down.
  static constexpr float magic = 12582912.0F;
  static constexpr unsigned magic_bits = 0x4B400000U;
  static constexpr unsigned bytes_per_bin = 4 * copies;

  __device__ __forceinline__ unsigned bits_of(float octaves) const {
    return __float_as_uint(__fmaf_rd(octaves, bins_per_octave_, bin_of_zero_));
  }

  unsigned base_;
  float bins_per_octave_;
  float bin_of_zero_;
};

/// Sums over rings of |k| in shared memory: `copies` interleaved, as lanes often meet in a ring. Values are whole
/// numbers of up to 23 bits, and their sums longer than 32: the lower bits are summed apart.
class RingCounter {
 public:
  static constexpr int low_bits = 12;
  /// After so many windows the sums are taken out: then 32 bits hold them, even if a window's whole ring met in one.
  static constexpr int most_windows = 4096;

  __device__ RingCounter(const unsigned* sums, const FusedTask& task, int lane)
      : base_(shared_address(sums)), scale_(task.more.ring_scale), copies_(task.more.ring_copies) {
    own_ = base_ + 4 * static_cast<unsigned>(lane & (copies_ - 1));
  }

  __device__ __forceinline__ int whole(float octaves) const { return __float2int_rn(octaves * scale_); }
  /// The ring of `square` = |k|^2, which no float32 has half-way to the next.
  static __device__ __forceinline__ int ring_of(int square) {
    return __float2int_rn(approximate_sqrt(static_cast<float>(square)));
  }
  __device__ __forceinline__ void add(float octaves, int square) const {
    const int ring = ring_of(square);
    if (ring >= fused_rings) return;
    const unsigned value = static_cast<unsigned>(whole(octaves));
    const unsigned at = own_ + 4 * static_cast<unsigned>(ring * copies_);
    add_shared(at, value & ((1U << low_bits) - 1));
    add_shared(at + high_part(), value >> low_bits);
  }
  /// Takes some of the sums out: thread `first` of `step`. Every one stands for a coefficient and its mirror image.
  __device__ void flush(const FusedTask& task, int first, int step) const {
    for (int i = first; i < fused_rings * copies_; i += step) {
      const unsigned at = base_ + 4 * static_cast<unsigned>(i);
      const unsigned long long low = take_shared(at);
      const unsigned long long high = take_shared(at + high_part());
      const unsigned long long sum = low + (high << low_bits);
      if (sum > 0) atomicAdd(reinterpret_cast<unsigned long long*>(task.more.rings) + i / copies_, 2 * sum);
    }
  }

 private:
  __device__ __forceinline__ unsigned high_part() const { return 4 * static_cast<unsigned>(fused_rings * copies_); }

  unsigned base_;
  unsigned own_;
  float scale_;
  int copies_;
};

/// Words of shared memory that a block counts in: histograms, then the rings' sums.
template <bool more>
__device__ __host__ constexpr int histogram_words(const FusedTask& task, int copies) {
  return (more && task.more.tissue != nullptr ? 2 : 1) * task.bins * copies;
}
__device__ __host__ constexpr int counter_words(const FusedTask& task) {
  return histogram_words<true>(task, task.copies) + 2 * fused_rings * task.more.ring_copies;
}

template <int threads, int copies, bool more>
__device__ void clear_counts(unsigned* counts, const FusedTask& task) {
  const int words = more ? counter_words(task) : task.bins * copies;
  for (int i = threadIdx.x; i < words; i += threads) counts[i] = 0;
}

/// Adds a block's counts to the task's. Every one stands for a coefficient and its mirror image.
template <int threads, int copies, bool more>
__device__ void merge_counts(const unsigned* counts, const FusedTask& task) {
  if constexpr (more) {
    if (task.more.rings != nullptr) {
      const unsigned* const rings = counts + histogram_words<true>(task, copies);
      RingCounter(rings, task, 0).flush(task, static_cast<int>(threadIdx.x), threads);
    }
  }
  for (int bin = threadIdx.x; bin < task.bins; bin += threads) {
    unsigned long long sum = 0;
    for (int i = 0; i < copies; ++i) sum += counts[bin * copies + i];
    if constexpr (more) {
      if (task.more.tissue != nullptr) {
        unsigned long long tissue = 0;
        for (int i = 0; i < copies; ++i) tissue += counts[(task.bins + bin) * copies + i];
        if (tissue > 0) {
          atomicAdd(reinterpret_cast<unsigned long long*>(task.more.tissue_histogram) + bin, 2 * tissue);
        }
        sum += tissue;
      }
    }
    if (sum > 0) atomicAdd(reinterpret_cast<unsigned long long*>(task.histogram) + bin, 2 * sum);
  }
}

}  // namespace

}  // namespace slidestream::cuda
