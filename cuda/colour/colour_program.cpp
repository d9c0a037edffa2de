#include "cuda/colour/colour_program.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <variant>

#include "cuda/colour/convert_colour.hpp"

namespace slidestream::cuda {
namespace {

/// Words of all intervals: by the last code that grows in one or before it. Light there is less than twice that code's
/// least, and more than half of it; in the first interval it may be any less.
void write_code_words(std::uint32_t* words) {
  const SrgbCodes& codes = srgb_codes();
  std::uint32_t code = 1;
  for (std::uint32_t i = 0; i < CodeIntervals::count; ++i) {
    while (code < 255 && (interval_bits(codes.thresholds[code]) >> 16) - CodeIntervals::first <= i) ++code;
    words[i] = (code << code_shift) - bits_of(codes.thresholds[code - 1]);
  }
}

/// Bytes behind the program, as they are taken.
class Tail {
 public:
  std::uint32_t take(std::size_t bytes) {
    const std::size_t begin = size_;
    size_ += (bytes + 15) / 16 * 16;
    return static_cast<std::uint32_t>(begin);
  }
  std::size_t size() const noexcept { return size_; }

 private:
  std::size_t size_ = (sizeof(ColourProgram) + 15) / 16 * 16;
};

template <class From, class To = From>
void write_values(std::span<std::byte> to, std::uint32_t at, const std::vector<From>& values) {
  std::transform(values.begin(), values.end(), reinterpret_cast<To*>(to.data() + at),
                 [](From value) { return static_cast<To>(value); });
}

/// In values of a grid, which has three per node.
void write_places(const ColourLookup& lookup, ColourProgram& program) {
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t sample = 0; sample < 256; ++sample) {
      const SamplePlace& place = lookup.places[c][sample];
      program.corner[c][sample] = static_cast<std::int32_t>(3 * place.node);
      program.rest[c][sample] = static_cast<std::int32_t>(place.rest_and_step >> 16);
      program.step[c][sample] = static_cast<std::int32_t>(3 * (place.rest_and_step & 0xffff));
    }
  }
}

}  // namespace

std::size_t colour_program_bytes(const ColourConversion& conversion) noexcept {
  const ColourSteps& steps = conversion.steps();
  if (steps.then.size() > ColourProgram::most_steps) return 0;
  std::size_t bytes = sizeof(ColourProgram) + 16 + 2 * steps.grid.values.size() + 16;
  for (const auto& step : steps.then) {
    const auto* const curves = std::get_if<ColourCurves>(&step);
    if (curves == nullptr) continue;
    for (const ColourCurve& curve : curves->channels) bytes += sizeof(float) * curve.values.size() + 16;
  }
  return bytes;
}

bool is_for_devices(const ColourConversion& conversion) noexcept {
  const std::size_t bytes = colour_program_bytes(conversion);
  return bytes > 0 && bytes <= ColourProgram::most_bytes;
}

void write_colour_program(const ColourConversion& conversion, std::span<std::byte> to) {
  if (!is_for_devices(conversion) || to.size() < colour_program_bytes(conversion)) {
    throw std::length_error("too little memory for a conversion of colours");
  }
  const ColourSteps& steps = conversion.steps();
  ColourProgram& program = *new (to.data()) ColourProgram{};
  for (std::size_t c = 0; c < 3; ++c) std::ranges::copy(steps.first[c], program.tables.first[c]);
  write_code_words(program.tables.codes);
  write_places(conversion.lookup(), program);
  program.connection = static_cast<std::uint32_t>(steps.connection);
  std::ranges::copy(steps.to_srgb.factors, program.to_srgb);
  Tail tail;
  if (!steps.grid.values.empty()) {
    program.grid = tail.take(sizeof(std::uint16_t) * steps.grid.values.size());
    write_values<std::uint32_t, std::uint16_t>(to, program.grid, steps.grid.values);
  }
  for (const auto& step : steps.then) {
    ColourProgramStep& out = program.then[program.steps++];
    if (const auto* const matrix = std::get_if<ColourMatrix>(&step)) {
      out.is_matrix = 1;
      std::ranges::copy(matrix->factors, out.factors);
      std::ranges::copy(matrix->added, out.added);
      continue;
    }
    const ColourCurves& curves = std::get<ColourCurves>(step);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::vector<float>& values = curves.channels[c].values;
      out.sizes[c] = static_cast<std::uint32_t>(values.size());
      out.tables[c] = tail.take(sizeof(float) * values.size());
      write_values(to, out.tables[c], values);
    }
  }
}

}  // namespace slidestream::cuda
