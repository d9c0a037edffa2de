// What devices convert colours with, on the host, against the CPU's definition.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "colour/made_profiles.hpp"
#include "cuda/colour/convert_colour.hpp"
#include "cuda/colour_cases.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// By the thresholds alone.
std::uint32_t defined_code(float light) {
  std::uint32_t code = 0;
  while (code < 255 && light >= srgb_codes().thresholds[code]) ++code;
  return code;
}

/// By tables, a matrix and nothing else: the definition of what `SharedColours` does.
Rgb converted_by_matrix(const cuda::ColourTables& tables, const float* factors, const Rgb& from) {
  const cuda::ColourValues v = {tables.first[0][from.red], tables.first[1][from.green], tables.first[2][from.blue]};
  return cuda::coded(tables.codes,
                     {cuda::row_of(factors, v), cuda::row_of(factors + 3, v), cuda::row_of(factors + 6, v)});
}

}  // namespace

TEST_CASE("each colour has a number of its own") {
  std::uint32_t wrong = 0;
  for (std::uint32_t number = 0; number < cuda::DeviceColours::every_count; ++number) {
    wrong += cuda::number_of(cuda::colour_at(number)) == number ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(cuda::number_of({255, 254, 0}) < cuda::DeviceColours::every_count);
}

TEST_CASE("devices convert by a profile's steps as the definition does") {
  int matrices = 0;
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const ColourConversion conversion(profile.bytes);
    REQUIRE(cuda::is_for_devices(conversion));
    const HostColours host(conversion);
    CHECK(host.colours().is_matrix != profile.has_table);
    matrices += host.colours().is_matrix ? 1 : 0;
    std::int64_t differ = 0;
    // Every value of each channel, beside many of the others.
    const int reds = wide_or_few(3, 1), greens = wide_or_few(5, 25), blues = wide_or_few(3, 51);
    for (int red = 0; red < 256; red += reds) {
      for (int green = red % greens; green < 256; green += greens) {
        for (int blue = (red + green) % blues; blue < 256; blue += blues) {
          std::uint8_t expected[] = {static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green),
                                     static_cast<std::uint8_t>(blue)};
          const Rgb from = {expected[0], expected[1], expected[2]};
          convert_colour(conversion.steps(), expected);
          const std::uint32_t packed = expected[0] | std::uint32_t{expected[1]} << 8 | std::uint32_t{expected[2]} << 16;
          const auto differs = [packed](const Rgb& found) { return cuda::packed(found) != packed; };
          differ += differs(cuda::converted_by_steps(host.program(), from)) ? 1 : 0;
          if (!host.colours().is_matrix) continue;
          differ += differs(converted_by_matrix(host.program().tables, host.colours().factors, from)) ? 1 : 0;
        }
      }
    }
    CHECK(differ == 0);
  }
  CHECK(matrices > 0);
}

TEST_CASE("a code of light is that of the thresholds, at each of them and where intervals begin") {
  const HostColours host(ColourConversion(made_profiles().front().bytes));
  const auto check = [&](float light) {
    CAPTURE(light);
    REQUIRE(cuda::code_of_light(host.program().tables.codes, light) == defined_code(light));
  };
  const auto check_around = [&](float light) {
    check(light);
    check(std::nextafter(light, -1.0F));
    check(std::nextafter(light, 2.0F));
  };
  for (const float threshold : srgb_codes().thresholds) {
    if (std::isfinite(threshold)) check_around(threshold);
  }
  std::uint32_t interval = 0;
  for (std::uint32_t i = 0x30000000U; i < 0x40000000U; i += 8191) {
    const auto light = std::bit_cast<float>(i);
    check(light);
    // Where intervals begin.
    const std::uint32_t here = cuda::interval_bits(light) >> 16;
    if (here == interval) continue;
    interval = here;
    check_around((std::bit_cast<float>(here << 16) - cuda::CodeIntervals::added) / cuda::CodeIntervals::factor);
  }
  const auto interval_of = [](float light) { return (cuda::interval_bits(light) >> 16) - cuda::CodeIntervals::first; };
  CHECK(interval_of(0.0F) == 0);
  CHECK(interval_of(1.0F) == cuda::CodeIntervals::count - 1);
  check_around(0.0F);
  check_around(std::numeric_limits<float>::min());
  // Half of the least light whose code is 1.
  check_around(srgb_codes().thresholds[0] / 2);
  check_around(1.0F);
  check(std::numeric_limits<float>::infinity());
  check(-std::numeric_limits<float>::infinity());
  check(std::numeric_limits<float>::quiet_NaN());
  check(-0.0F);
}

TEST_CASE("a conversion with too large a table is none for devices") {
  // 91 nodes a side are 4.5 MB.
  const ColourConversion large(with_table(4.3, true, false, 91, cmsSigAToB0Tag));
  CHECK(cuda::colour_program_bytes(large) > cuda::ColourProgram::most_bytes);
  CHECK_FALSE(cuda::is_for_devices(large));
  std::vector<std::byte> room(cuda::colour_program_bytes(large));
  CHECK_THROWS_AS(cuda::write_colour_program(large, room), std::length_error);
  const ColourConversion small(made_profiles().front().bytes);
  room.resize(cuda::colour_program_bytes(small) - 1);
  CHECK_THROWS_AS(cuda::write_colour_program(small, room), std::length_error);
}

TEST_CASE("conversions are equal by their steps (long)") {
  const std::vector<MadeProfile> profiles = made_profiles();
  for (const MadeProfile& a : profiles) {
    for (const MadeProfile& b : profiles) {
      CHECK((ColourConversion(a.bytes) == ColourConversion(b.bytes)) == (a.name == b.name));
    }
  }
}
