#pragma once

#include <array>
#include <cstdint>
#include <slidestream/config.hpp>
#include <span>

/// \file
/// Pixels as networks take them.

namespace slidestream::networks {

/// The nearest number of IEEE 754's binary16, the even one of two; what is too large becomes infinity.
std::uint16_t to_half(float value) noexcept;
float from_half(std::uint16_t half) noexcept;

/// What each sample becomes: (v scale / 255 - mean) / deviation, in float64, rounded once. Immutable.
class Normalisation {
 public:
  explicit Normalisation(const ModelConfig& model);

  /// Tiles with red, green and blue side by side, as planes one behind the other.
  /// \param pixels  tiles x pixels x 3. \param area  pixels of a tile. \param planes  tiles x 3 x pixels, written.
  void run(std::span<const std::uint8_t> pixels, std::size_t area, std::span<float> planes) const noexcept;
  void run(std::span<const std::uint8_t> pixels, std::size_t area, std::span<std::uint16_t> planes) const noexcept;

 private:
  std::array<std::array<float, 256>, 3> table_{};
  std::array<std::array<std::uint16_t, 256>, 3> half_table_{};
};

}  // namespace slidestream::networks
