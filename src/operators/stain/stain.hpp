#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "operators/stain/macenko.hpp"

/// \file
/// Stain normalisation of pixels, in integers.

namespace slidestream::operators {

/// ln((min(v, white) + 1) / (white + 1)) in 1/65536, rounded to nearest: what the matrix takes for a sample v.
std::array<std::int32_t, 256> log_samples(std::uint8_t white);

/// Steps of a table of exp: its argument in 1/2048.
inline constexpr int exp_steps = 11;

/// Samples for steps i of the argument, i / 2048 = -t: entry i + first is floor((white + 1) exp(-i / 2048) - 1/2), at
/// most 255 and at least 0. What lies in front of the table is 255, what lies behind it 0.
struct ExpTable {
  std::int32_t first = 0;
  std::vector<std::uint8_t> entries;
};
ExpTable exp_samples(std::uint8_t white);

/// Sums of m[c][j] L[v_j], in 1/2^32, are steps of the table of exp when so many bits are dropped.
inline constexpr int stain_shift = 32 - exp_steps;
/// What is added before, so that steps are rounded.
inline constexpr std::int64_t half_stain_step = std::int64_t{1} << (stain_shift - 1);

/// What -t_c begins with, so that its step is an entry of the table.
constexpr std::int64_t stain_start(const ExpTable& table) noexcept {
  return (std::int64_t{table.first} << stain_shift) + half_stain_step;
}

/// The entry of a table of exp for -t_c + `stain_start`, at most `last`: for kernels on the host and on a GPU. Entries
/// of a matrix are below 2^26, so that steps have 32 bits.
constexpr std::int32_t exp_entry(std::int64_t negated, std::int32_t last) noexcept {
  const auto step = static_cast<std::int32_t>(negated >> stain_shift);
  const std::int32_t entry = step < last ? step : last;
  return entry < 0 ? 0 : entry;
}

/// Takes pixels from a slide's stains to a reference's. Per pixel, with L_j = log_samples(white of the slide): t_c =
/// sum over j of m[c][j] L_j[v_j], exact, in 1/2^32; i = (2^20 - t_c) >> 21, that is -t_c in 1/2048, ties towards the
/// darker; the sample is step i of exp_samples(white of the reference). Integers only: equal to the bit wherever it is
/// computed, and pixel by pixel. The slide's white becomes the reference's. Thread-safe; 56 KiB of tables.
class Stain {
 public:
  explicit Stain(const StainMap& map);

  /// \param out RGB, host memory
  /// \param in RGB; holds `out.rect`
  /// \throws std::invalid_argument when the views don't fit
  void run(const HostView& out, const ConstHostView& in) const;

  const StainMap& map() const noexcept { return map_; }

 private:
  using Products = std::array<std::int64_t, 4>;  ///< with L[v], for each output channel; the last is not used

  StainMap map_;
  std::vector<Products> products_;  ///< of red, green and blue, 256 each
  std::array<ExpTable, 3> exponentials_;
};

}  // namespace slidestream::operators
