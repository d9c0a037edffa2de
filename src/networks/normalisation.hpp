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

  /// 3 x 256: what each value of red, green and blue becomes, as numbers and as the bits of half floats.
  std::span<const float> table() const noexcept { return table_; }
  std::span<const std::uint16_t> half_table() const noexcept { return half_table_; }

 private:
  std::array<float, 768> table_{};
  std::array<std::uint16_t, 768> half_table_{};
};

}  // namespace slidestream::networks
