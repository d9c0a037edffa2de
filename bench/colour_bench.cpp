// Conversion of colours to sRGB beside Little CMS' transform of 8 bits, one thread, taking turns: items are pixels.
#include <benchmark/benchmark.h>
#include <lcms2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "tests/colour/made_profiles.hpp"

namespace {

using namespace slidestream;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t pixels = std::int64_t{1} << 20;

/// Pink and violet with noise, as stained tissue has it.
std::vector<std::uint8_t> picture() {
  std::mt19937 random(3);
  std::vector<std::uint8_t> rgb;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::array<int, 3> colour = (i >> 6) % 3 == 0 ? std::array{214, 120, 170} : std::array{150, 90, 160};
    for (const int value : colour)
      rgb.push_back(static_cast<std::uint8_t>(value + static_cast<int>(random() % 41) - 20));
  }
  return rgb;
}

std::vector<std::byte> with_matrix() { return test::saved(test::with_curve(cmsBuildGamma(nullptr, 2.2), 4.3)); }
/// Of 33 nodes a side to Lab.
std::vector<std::byte> with_table() { return test::with_table(2.1, true, false, 33, cmsSigAToB0Tag); }

void beside_little_cms(benchmark::State& state, std::vector<std::byte> (*make)()) {
  const std::vector<std::byte> bytes = make();
  const ColourConversion conversion(bytes);
  cmsHPROFILE from = cmsOpenProfileFromMem(bytes.data(), static_cast<cmsUInt32Number>(bytes.size()));
  cmsHPROFILE to = cmsCreate_sRGBProfile();
  cmsHTRANSFORM transform = cmsCreateTransform(from, TYPE_RGB_8, to, TYPE_RGB_8, INTENT_RELATIVE_COLORIMETRIC, 0);
  const std::vector<std::uint8_t> in = picture();
  std::vector<std::uint8_t> out(in.size());
  double own = 0.0;
  double others = 0.0;
  for (auto _ : state) {
    const auto begin = Clock::now();
    std::copy(in.begin(), in.end(), out.begin());
    conversion.apply(out.data(), pixels);
    benchmark::DoNotOptimize(out.data());
    const auto middle = Clock::now();
    cmsDoTransform(transform, in.data(), out.data(), static_cast<cmsUInt32Number>(pixels));
    benchmark::DoNotOptimize(out.data());
    own += std::chrono::duration<double>(middle - begin).count();
    others += std::chrono::duration<double>(Clock::now() - middle).count();
  }
  const double megapixels = static_cast<double>(state.iterations() * pixels) * 1e-6;
  state.counters["Mpx/s"] = megapixels / own;
  state.counters["little_cms_Mpx/s"] = megapixels / others;
  state.counters["ratio"] = others / own;
  cmsDeleteTransform(transform);
  cmsCloseProfile(from);
  cmsCloseProfile(to);
}

BENCHMARK_CAPTURE(beside_little_cms, matrix, with_matrix)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(beside_little_cms, table, with_table)->Unit(benchmark::kMillisecond);

}  // namespace
