#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace slidestream {

/// A curve as a table. One that the profile has as a formula: the value at i / `intervals` for each i, and straight
/// lines between. One that the profile has as a table: the value for each number of 16 bits, as Little CMS rounds to
/// these.
struct ColourCurve {
  static constexpr int intervals = 4096;
  static constexpr int of_16_bits = 65536;
  std::vector<float> values;
  bool operator==(const ColourCurve&) const = default;
};

/// A curve for each channel.
struct ColourCurves {
  std::array<ColourCurve, 3> channels;
  bool operator==(const ColourCurves&) const = default;
};

/// A matrix, row by row, and what is added behind it.
struct ColourMatrix {
  std::array<float, 9> factors{};
  std::array<float, 3> added{};
  bool operator==(const ColourMatrix&) const = default;
};

/// A grid of three values a node, the third channel varying fastest, which is interpolated by tetrahedra in integers.
struct ColourGrid {
  std::array<int, 3> nodes{};         ///< along each channel, 2 or more; empty `values`: there is no grid
  std::vector<std::uint32_t> values;  ///< of 16 bits
  bool operator==(const ColourGrid&) const = default;
};

/// What a profile does to a pixel until it is linear light of sRGB's primaries, as tables and numbers. In this order:
/// `first`, then `grid` where there is one, then `then`, then `connection`.
struct ColourSteps {
  /// How the last values stand for colours.
  enum class Connection : std::uint8_t {
    none,  ///< they are linear light already
    xyz,   ///< XYZ over 1 + 32767/32768
    lab,   ///< L over 100, a and b plus 128 over 255
  };

  std::array<std::array<float, 256>, 3> first{};  ///< of each channel's 256 samples
  ColourGrid grid;
  std::vector<std::variant<ColourCurves, ColourMatrix>> then;
  Connection connection = Connection::none;
  ColourMatrix to_srgb;  ///< XYZ (D50) to linear light, unless `connection` is none

  /// Whether `first` and a matrix without anything added are all of it.
  bool is_matrix_alone() const noexcept;
  /// Memory of its tables, in bytes, besides the object itself.
  std::uint64_t table_bytes() const noexcept;
  bool operator==(const ColourSteps&) const = default;
};

/// What a profile calls itself: one line of printable ASCII, empty where it doesn't say, is damaged, or has texts that
/// take more than 1 MiB to read. Takes as many bytes as the profile, and up to 1 MiB. Thread-safe.
std::string profile_name(std::span<const std::byte> bytes);

/// Reads the steps of a profile: of its tag for relative colorimetric rendering where there is one (A2B1, else A2B0),
/// else of its curves and matrix. Takes up to `reading_bytes`, or a few MiB besides a copy of a profile without a
/// table. Thread-safe.
/// \throws Error in one line without a path: damaged; no scanner's, display's or colour space's; not of RGB to XYZ or
/// Lab; or with steps that aren't known
ColourSteps read_colour_steps(std::span<const std::byte> bytes);

/// sRGB's codes of linear light y, from 0 to 1: as many as there are thresholds that y is not below.
struct SrgbCodes {
  /// Its code is 0: less light counts as this.
  static constexpr float least = 0x1p-13F;
  /// The upper 16 bits of light number an interval that has at most one threshold.
  static constexpr std::uint32_t first_interval = 0x3900;  ///< that of `least`
  static constexpr std::uint32_t intervals = 0x3f80 - first_interval + 1;
  std::array<float, 256> thresholds{};  ///< the least value with a higher code; of 255: infinity
  /// Of each interval: what is added to the bits of its light, so that the upper 8 bits of the sum are the code.
  std::array<std::uint32_t, intervals> words{};
};
const SrgbCodes& srgb_codes();

}  // namespace slidestream
