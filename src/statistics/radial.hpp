#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <slidestream/config.hpp>

/// \file
/// The radial profile: the mean of a spectrum's values over rings of |k|. Each value is rounded to fixed point, and
/// sums are of integers. So neither the order of windows nor the cut into batches changes the sums.
///
/// The CPU's collectors use all of this. GPUs take `radial_fraction_bits` and the number of rings. Kernels compute
/// the rings of coefficients themselves (fused_counters.cuh, ring_sums.cuh). Tests compare these with `radial_ring_of`.

namespace slidestream {

inline constexpr std::string_view radial_name = "radial";

/// Values are rounded to multiples of 2^-bits. With these bits float32 holds every rounded value in dB exactly, and 64
/// bits hold the sums of |F| over all windows of a batch.
constexpr int radial_fraction_bits(ValueKind value) noexcept { return value == ValueKind::linear ? 8 : 15; }

/// Rings of windows of N x N: |k|, rounded, is 0 to N/2. Coefficients with |k| above N/2 + 0.5, towards the corners,
/// are left out.
constexpr std::size_t radial_rings(int window) noexcept { return static_cast<std::size_t>(window) / 2 + 1; }

/// The ring of a coefficient: |k|, rounded. It is `radial_rings` or more for a coefficient that is left out. |k| is the
/// root of a whole number, so it never lies half-way between two rings.
std::size_t radial_ring_of(int kx, int ky) noexcept;

/// For each ring, how many of a window's N x N coefficients lie in it.
std::vector<std::uint64_t> radial_ring_counts(int window);

}  // namespace slidestream
