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

namespace {

using namespace slidestream;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t pixels = std::int64_t{1} << 20;

std::vector<std::byte> saved(cmsHPROFILE profile) {
  cmsUInt32Number size = 0;
  cmsSaveProfileToMem(profile, nullptr, &size);
  std::vector<std::byte> bytes(size);
  cmsSaveProfileToMem(profile, bytes.data(), &size);
  cmsCloseProfile(profile);
  return bytes;
}

/// Curves of gamma 2.2 and wide primaries.
cmsHPROFILE with_matrix() {
  const cmsCIExyY white = {0.3127, 0.3290, 1.0};
  const cmsCIExyYTRIPLE primaries = {{0.64, 0.33, 1.0}, {0.21, 0.71, 1.0}, {0.15, 0.06, 1.0}};
  cmsToneCurve* gamma = cmsBuildGamma(nullptr, 2.2);
  std::array<cmsToneCurve*, 3> curves = {gamma, gamma, gamma};
  cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves.data());
  cmsFreeToneCurve(gamma);
  return profile;
}

int sample(const cmsUInt16Number in[], cmsUInt16Number out[], void*) {
  const double r = in[0] / 65535.0, g = in[1] / 65535.0, b = in[2] / 65535.0;
  const cmsCIEXYZ xyz = {0.4361 * r * r + 0.3851 * g * g + 0.1431 * b * b,
                         0.2225 * r * r + 0.7169 * g * g + 0.0606 * b * b,
                         0.0139 * r * r + 0.0971 * g * g + 0.7141 * b * b};
  cmsCIELab lab;
  cmsXYZ2Lab(nullptr, &lab, &xyz);
  cmsFloat2LabEncoded(out, &lab);
  return 1;
}

/// A table of 33 nodes a side to Lab.
cmsHPROFILE with_table() {
  cmsHPROFILE profile = cmsCreateProfilePlaceholder(nullptr);
  cmsSetProfileVersion(profile, 2.1);
  cmsSetDeviceClass(profile, cmsSigInputClass);
  cmsSetColorSpace(profile, cmsSigRgbData);
  cmsSetPCS(profile, cmsSigLabData);
  cmsPipeline* pipeline = cmsPipelineAlloc(nullptr, 3, 3);
  cmsStage* grid = cmsStageAllocCLut16bit(nullptr, 33, 3, 3, nullptr);
  cmsStageSampleCLut16bit(grid, sample, nullptr, 0);
  cmsPipelineInsertStage(pipeline, cmsAT_END, grid);
  cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
  cmsPipelineFree(pipeline);
  return profile;
}

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

void beside_little_cms(benchmark::State& state, cmsHPROFILE (*make)()) {
  const std::vector<std::byte> bytes = saved(make());
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
