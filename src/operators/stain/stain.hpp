#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "operators/stain/macenko.hpp"

/// \file
/// Stain normalisation of pixels, in integers.

namespace slidestream::operators {

/// ln((v + 1) / 255) in 1/65536, rounded to nearest: what the matrix takes for a sample v.
const std::array<std::int32_t, 256>& log_samples();

/// Steps of the table of exp: its argument in 1/2048.
inline constexpr int exp_steps = 11;

/// Entry i is floor(255 exp(-i / 2048) + 1/2); the last one, and all beyond it, are 0.
const std::vector<std::uint8_t>& exp_samples();

/// Sums of m[c][j] L[v_j], in 1/2^32, are steps of the table of exp when so many bits are dropped.
inline constexpr int stain_shift = 32 - exp_steps;
/// What is added before, so that steps are rounded.
inline constexpr std::int64_t half_stain_step = std::int64_t{1} << (stain_shift - 1);

/// The entry of a table of exp for -t_c + half_stain_step, at most `last`: for kernels on the host and on a GPU.
/// Entries of a matrix are below 2^26, so that steps have 32 bits.
constexpr std::int32_t exp_entry(std::int64_t negated, std::int32_t last) noexcept {
  const auto step = static_cast<std::int32_t>(negated >> stain_shift);
  const std::int32_t entry = step < last ? step : last;
  return entry < 0 ? 0 : entry;
}

/// Takes pixels from a slide's stains to a reference's. Per pixel, with L = log_samples(): t_c = sum over j of
/// m[c][j] L[v_j], exact, in 1/2^32; i = (2^20 - t_c) >> 21, that is -t_c in 1/2048, ties towards the darker; the
/// sample is exp_samples()[i], 255 where i < 0. Integers only: equal to the bit wherever it is computed, and pixel by
/// pixel. Thread-safe; 32 KiB of tables.
class Stain {
 public:
  explicit Stain(const StainMatrix& matrix);

  /// \param out RGB, host memory
  /// \param in RGB; holds `out.rect`
  /// \throws std::invalid_argument when the views don't fit
  void run(const HostView& out, const ConstHostView& in) const;

  const StainMatrix& matrix() const noexcept { return matrix_; }

 private:
  using Products = std::array<std::int64_t, 4>;  ///< with L[v], for each output channel; the last is not used

  StainMatrix matrix_;
  std::vector<Products> products_;  ///< of red, green and blue, 256 each
};

}  // namespace slidestream::operators
