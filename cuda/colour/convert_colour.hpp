#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "colour/lab.hpp"
#include "cuda/colour/colour_program.hpp"

/// \file
/// A pixel from a profile's colours to sRGB: `convert_colour` to the bit. One source for device and host.

namespace slidestream::cuda {

/// Light of each channel.
struct ColourValues {
  float red;
  float green;
  float blue;
};

SLIDESTREAM_HOST_DEVICE std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
#endif
}

/// From `low` to `high`; what isn't a number becomes `low`.
SLIDESTREAM_HOST_DEVICE float limited(float value, float low, float high) {
#if defined(__CUDA_ARCH__)
  return fminf(fmaxf(value, low), high);
#else
  return value > low ? std::min(value, high) : low;
#endif
}

/// Bits whose upper half numbers one of `CodeIntervals`.
SLIDESTREAM_HOST_DEVICE std::uint32_t interval_bits(float light) {
#if defined(__CUDA_ARCH__)
  return bits_of(__fmaf_rn(light, CodeIntervals::factor, CodeIntervals::added));
#else
  return bits_of(std::fma(light, CodeIntervals::factor, CodeIntervals::added));
#endif
}

/// Light that has a code.
SLIDESTREAM_HOST_DEVICE float light_in_range(float light) {
#if defined(__CUDA_ARCH__)
  return __saturatef(light);
#else
  return limited(light, 0.0F, 1.0F);
#endif
}

/// Bits from number `code_shift` on of what `add_code` returns are the code.
inline constexpr unsigned code_shift = 23;

/// Adds the bits of light in range to the word of its interval. Below half of the first interval's least light sums are
/// negative: their code is 0.
SLIDESTREAM_HOST_DEVICE std::uint32_t add_code(std::uint32_t word, float light) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__viaddmax_s32(static_cast<int>(word), static_cast<int>(bits_of(light)), 0));
#else
  const auto sum = static_cast<std::int32_t>(word + bits_of(light));
  return static_cast<std::uint32_t>(std::max(sum, 0));
#endif
}

/// sRGB's code of linear light.
SLIDESTREAM_HOST_DEVICE std::uint32_t code_of_light(const std::uint32_t* codes, float light) {
  light = light_in_range(light);
  return add_code(codes[(interval_bits(light) >> 16) - CodeIntervals::first], light) >> code_shift;
}

/// A row of a matrix.
SLIDESTREAM_HOST_DEVICE float row_of(const float* factors, const ColourValues& v) {
  return sum(sum(product(factors[0], v.red), product(factors[1], v.green)), product(factors[2], v.blue));
}

SLIDESTREAM_HOST_DEVICE Rgb coded(const std::uint32_t* codes, const ColourValues& light) {
  return {static_cast<std::uint8_t>(code_of_light(codes, light.red)),
          static_cast<std::uint8_t>(code_of_light(codes, light.green)),
          static_cast<std::uint8_t>(code_of_light(codes, light.blue))};
}

template <class T>
SLIDESTREAM_HOST_DEVICE const T* table_at(const ColourProgram& program, std::uint32_t offset) {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::uint8_t*>(&program) + offset);
}

SLIDESTREAM_HOST_DEVICE float value_of_curve(const float* table, std::uint32_t size, float at) {
  at = limited(at, 0.0F, 1.0F);
  if (size == ColourCurve::of_16_bits) return table[nearest(product(at, 65535.0F))];
  const float scaled = product(at, static_cast<float>(ColourCurve::intervals));
  const int whole = static_cast<int>(scaled);
  const int i = whole < ColourCurve::intervals ? whole : ColourCurve::intervals - 1;
  return sum(table[i], product(sum(scaled, -static_cast<float>(i)), sum(table[i + 1], -table[i])));
}

SLIDESTREAM_HOST_DEVICE ColourValues value_of_step(const ColourProgram& program, const ColourProgramStep& step,
                                                   const ColourValues& v) {
  if (step.is_matrix != 0) {
    return {sum(row_of(step.factors, v), step.added[0]), sum(row_of(step.factors + 3, v), step.added[1]),
            sum(row_of(step.factors + 6, v), step.added[2])};
  }
  return {value_of_curve(table_at<float>(program, step.tables[0]), step.sizes[0], v.red),
          value_of_curve(table_at<float>(program, step.tables[1]), step.sizes[1], v.green),
          value_of_curve(table_at<float>(program, step.tables[2]), step.sizes[2], v.blue)};
}

/// A channel of a grid: from its lowest corner along the channel with the largest rest first.
SLIDESTREAM_HOST_DEVICE float value_of_grid(const std::uint16_t* values, const std::int32_t* places,
                                            const std::uint32_t* weights) {
  const std::uint32_t first = values[places[0]];
  const std::uint32_t all = first * weights[0] + values[places[1]] * weights[1] + values[places[2]] * weights[2] +
                            values[places[3]] * weights[3] + 0x8001U;
  const std::uint32_t value = (all + (all >> 16) - first) >> 16;
  return product(static_cast<float>(static_cast<std::int32_t>(value)), 1.0F / 65535.0F);
}

SLIDESTREAM_HOST_DEVICE ColourValues value_of_grid(const ColourProgram& program, const Rgb& from) {
  std::int32_t rest[3] = {program.rest[0][from.red], program.rest[1][from.green], program.rest[2][from.blue]};
  std::int32_t step[3] = {program.step[0][from.red], program.step[1][from.green], program.step[2][from.blue]};
  const auto exchange = [&rest, &step](int a, int b) {
    if (rest[a] >= rest[b]) return;
    const std::int32_t other_rest = rest[a], other_step = step[a];
    rest[a] = rest[b];
    step[a] = step[b];
    rest[b] = other_rest;
    step[b] = other_step;
  };
  exchange(0, 1);
  exchange(1, 2);
  exchange(0, 1);
  std::int32_t places[4];
  places[0] = program.corner[0][from.red] + program.corner[1][from.green] + program.corner[2][from.blue];
  for (int i = 0; i < 3; ++i) places[i + 1] = places[i] + step[i];
  const std::uint32_t weights[4] = {static_cast<std::uint32_t>(65536 - rest[0]),
                                    static_cast<std::uint32_t>(rest[0] - rest[1]),
                                    static_cast<std::uint32_t>(rest[1] - rest[2]), static_cast<std::uint32_t>(rest[2])};
  const auto* const values = table_at<std::uint16_t>(program, program.grid);
  return {value_of_grid(values, places, weights), value_of_grid(values + 1, places, weights),
          value_of_grid(values + 2, places, weights)};
}

SLIDESTREAM_HOST_DEVICE float light_of(float f, float white) {
  const float linear = product(lab::slope, sum(f, -lab::offset));
  const float cube = product(product(f, f), f);
  return product(f <= lab::limit ? linear : cube, white);
}

/// CIE 1976, backwards, of values that ICC's encoding has; D50.
SLIDESTREAM_HOST_DEVICE ColourValues xyz_of_lab(const ColourValues& v) {
  constexpr float white_x = lab::white[0], white_y = lab::white[1], white_z = lab::white[2];
  const float y = product(sum(product(v.red, 100.0F), 16.0F), 1.0F / 116.0F);
  const float a = product(sum(product(v.green, 255.0F), -128.0F), 1.0F / 500.0F);
  const float b = product(sum(product(v.blue, 255.0F), -128.0F), 1.0F / 200.0F);
  return {light_of(sum(y, a), white_x), light_of(y, white_y), light_of(sum(y, -b), white_z)};
}

/// By all steps of a program.
SLIDESTREAM_HOST_DEVICE Rgb converted_by_steps(const ColourProgram& program, const Rgb& from) {
  using Connection = ColourSteps::Connection;
  ColourValues v = {program.tables.first[0][from.red], program.tables.first[1][from.green],
                    program.tables.first[2][from.blue]};
  if (program.grid != 0) v = value_of_grid(program, from);
  for (std::uint32_t i = 0; i < program.steps; ++i) v = value_of_step(program, program.then[i], v);
  const auto connection = static_cast<Connection>(program.connection);
  if (connection == Connection::lab) v = xyz_of_lab(v);
  if (connection == Connection::xyz) {
    v = {product(v.red, lab::xyz_range), product(v.green, lab::xyz_range), product(v.blue, lab::xyz_range)};
  }
  if (connection != Connection::none) {
    v = {row_of(program.to_srgb, v), row_of(program.to_srgb + 3, v), row_of(program.to_srgb + 6, v)};
  }
  return coded(program.tables.codes, v);
}

/// Where a colour stands among `DeviceColours::every`: by red and blue less green, and by green. Neighbours in a slide
/// differ in brightness more than in hue. So colours of eight greens share a sector of 32 bytes, and four of these,
/// whose differences are next to each other, a line of the cache.
SLIDESTREAM_HOST_DEVICE std::uint32_t number_of(const Rgb& rgb) {
  const std::uint32_t green = rgb.green;
  const std::uint32_t red_over = (rgb.red - green) & 255U, blue_over = (rgb.blue - green) & 255U;
  return red_over >> 1 << 17 | blue_over >> 1 << 10 | green >> 3 << 5 | (red_over & 1U) << 4 | (blue_over & 1U) << 3 |
         (green & 7U);
}

/// The colour that stands there.
SLIDESTREAM_HOST_DEVICE Rgb colour_at(std::uint32_t number) {
  const std::uint32_t green = (number >> 5 & 31U) << 3 | (number & 7U);
  const std::uint32_t red = green + (number >> 17 << 1 | (number >> 4 & 1U));
  const std::uint32_t blue = green + ((number >> 10 & 127U) << 1 | (number >> 3 & 1U));
  return {static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green), static_cast<std::uint8_t>(blue)};
}

SLIDESTREAM_HOST_DEVICE std::uint32_t packed(const Rgb& rgb) {
  return std::uint32_t{rgb.blue} << 16 | std::uint32_t{rgb.green} << 8 | rgb.red;
}

SLIDESTREAM_HOST_DEVICE Rgb unpacked(std::uint32_t word) {
  return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word >> 16)};
}

}  // namespace slidestream::cuda
