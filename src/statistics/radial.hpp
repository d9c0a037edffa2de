#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <slidestream/config.hpp>

/// \file
/// The radial profile: the mean of the values over rings of |k|. Values are rounded to fixed point one by one, and what
/// follows are integers; so neither order nor cut can change the sums.

namespace slidestream {

inline constexpr std::string_view radial_name = "radial";

/// Values are counted in units of 2^-bits: float32 holds every value in dB so, and 64 bits the sums of |F| over all
/// windows of a batch.
constexpr int radial_fraction_bits(ValueKind value) noexcept { return value == ValueKind::linear ? 8 : 15; }

/// Rings of windows of N x N: |k| rounded to 0 to N/2. What lies beyond N/2, towards the corners, is left out.
constexpr std::size_t radial_rings(int window) noexcept { return static_cast<std::size_t>(window) / 2 + 1; }

/// The ring of a coefficient; at least `radial_rings` where it is beyond them. |k| is the root of a whole number, and
/// so never half-way between two rings.
std::size_t radial_ring_of(int kx, int ky) noexcept;

/// Coefficients of a window by ring, of all N x N.
std::vector<std::uint64_t> radial_ring_counts(int window);

}  // namespace slidestream
