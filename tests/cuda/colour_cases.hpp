#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "cuda/colour/colour_program.hpp"
#include "cuda/colour/convert_colour.hpp"

namespace slidestream::test {

/// What becomes of every colour, by the CPU, as `DeviceColours::every` has it.
inline std::vector<std::uint32_t> every_colour(const ColourConversion& conversion) {
  std::vector<std::uint32_t> every(cuda::DeviceColours::every_count);
  std::vector<std::uint8_t> row(3 * 256);
  for (std::uint32_t first = 0; first < every.size(); first += 256) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      const Rgb from = cuda::colour_at(first + i);
      row[3 * i] = from.red;
      row[3 * i + 1] = from.green;
      row[3 * i + 2] = from.blue;
    }
    conversion.apply(row.data(), 256);
    for (std::uint32_t i = 0; i < 256; ++i) {
      every[first + i] = row[3 * i] | std::uint32_t{row[3 * i + 1]} << 8 | std::uint32_t{row[3 * i + 2]} << 16;
    }
  }
  return every;
}

/// A conversion as a device has it, in the host's memory.
class HostColours {
 public:
  explicit HostColours(const ColourConversion& conversion)
      : memory_((cuda::colour_program_bytes(conversion) + 63) / 64) {
    cuda::write_colour_program(conversion, std::as_writable_bytes(std::span(memory_)));
    colours_.program = reinterpret_cast<const cuda::ColourProgram*>(memory_.data());
    colours_.is_matrix = conversion.steps().is_matrix_alone();
    if (!colours_.is_matrix) return;
    std::ranges::copy(std::get<ColourMatrix>(conversion.steps().then.front()).factors, colours_.factors);
  }

  /// By what every colour becomes, though a matrix did.
  void use_every(std::span<const std::uint32_t> every) {
    colours_.every = every.data();
    colours_.is_matrix = false;
  }

  const cuda::DeviceColours& colours() const { return colours_; }
  const cuda::ColourProgram& program() const { return *colours_.program; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;
  cuda::DeviceColours colours_;
};

}  // namespace slidestream::test
