#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/ycbcr.hpp"
#include "colour/colour_conversion.hpp"
#include "cuda/colour/host_device.hpp"

/// \file
/// A conversion of colours as the device knows it: its steps and tables in one piece of memory.

namespace slidestream::cuda {

/// Intervals of linear light in which sRGB's code grows once at most. The upper half of the bits of light times
/// `factor` plus `added` numbers them: they are the narrower the steeper sRGB's curve is.
struct CodeIntervals {
  static constexpr float factor = 207.0F / 128.0F;
  static constexpr float added = 29.0F / 256.0F;
  static constexpr std::uint32_t first = 0x3DE8;  ///< the upper half of `added`'s bits
  static constexpr std::uint32_t count = 502;     ///< up to that of 1
};

/// What a profile of curves and a matrix takes: these tables, and nine factors.
struct ColourTables {
  float first[3][256];  ///< of each channel's samples
  /// Of each of `CodeIntervals`: what `add_code` adds to a value's bits.
  std::uint32_t codes[CodeIntervals::count];
  std::uint32_t unused[2];  ///< so that vectors fit
};

/// A step behind the grid.
struct ColourProgramStep {
  std::uint32_t is_matrix;  ///< else curves
  std::uint32_t sizes[3];   ///< of the curves' tables
  std::uint32_t tables[3];  ///< bytes from the program's begin to them: floats
  float factors[9];         ///< of the matrix, row by row
  float added[3];
};

/// A conversion's steps. Tables follow behind it.
struct ColourProgram {
  static constexpr std::uint32_t most_steps = 8;
  /// Of the program with all that follows. Tables of 65 nodes a side, and curves for each number of 16 bits before and
  /// behind a matrix, take 3.3 MB.
  static constexpr std::size_t most_bytes = std::size_t{4} << 20;

  ColourTables tables;
  std::int32_t corner[3][256];  ///< as `GridPlaces` has them
  std::int32_t rest[3][256];
  std::int32_t step[3][256];
  std::uint32_t grid;   ///< bytes from the program's begin to the grid's values, 16 bits each; 0: there is no grid
  std::uint32_t steps;  ///< behind the grid
  ColourProgramStep then[most_steps];
  std::uint32_t connection;  ///< a `ColourSteps::Connection`
  float to_srgb[9];
};

/// What kernels are given of a conversion. Memory is the device's.
struct DeviceColours {
  const ColourProgram* program = nullptr;  ///< null: colours stay as they are
  /// What each colour becomes, red in the lowest byte, at its `number_of`. Null: not made.
  const std::uint32_t* every = nullptr;
  /// Of linear light, where a matrix is all that there is behind the first tables.
  float factors[9] = {};
  bool is_matrix = false;

  static constexpr std::size_t every_count = std::size_t{1} << 24;
};

/// What a conversion in use takes.
struct ConversionMemory {
  static constexpr std::size_t pinned_bytes = ColourProgram::most_bytes;
  /// Aligned to 256.
  static constexpr std::size_t device_bytes =
      ColourProgram::most_bytes + DeviceColours::every_count * sizeof(std::uint32_t);
};

/// Bytes of a conversion's program; more than `ColourProgram::most_bytes`, or 0: it is none for devices.
std::size_t colour_program_bytes(const ColourConversion& conversion) noexcept;

/// Whether devices convert by it.
bool is_for_devices(const ColourConversion& conversion) noexcept;

/// Writes a conversion that is for devices. \param to  `colour_program_bytes` of it, aligned to 16 bytes.
void write_colour_program(const ColourConversion& conversion, std::span<std::byte> to);

}  // namespace slidestream::cuda
