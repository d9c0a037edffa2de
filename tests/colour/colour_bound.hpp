#pragma once

#include <doctest/doctest.h>
#include <lcms2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "colour/colour_conversion.hpp"

namespace slidestream::test {

struct Difference {
  std::int64_t colours = 0;
  std::int64_t differ = 0;
  int most = 0;
};

/// A conversion beside Little CMS' transform of float32, rounded to 8 bits, over every `step`-th value of each channel.
inline Difference difference(std::span<const std::byte> profile, int step) {
  const ColourConversion conversion(profile);
  cmsHPROFILE from = cmsOpenProfileFromMem(profile.data(), static_cast<cmsUInt32Number>(profile.size()));
  // With numbers as exact as Little CMS has them: a file would round the curve.
  cmsHPROFILE to = cmsCreate_sRGBProfile();
  cmsHTRANSFORM transform = cmsCreateTransform(from, TYPE_RGB_FLT, to, TYPE_RGB_FLT, INTENT_RELATIVE_COLORIMETRIC,
                                               cmsFLAGS_NOOPTIMIZE | cmsFLAGS_NOCACHE);
  REQUIRE(transform != nullptr);
  std::vector<std::uint8_t> values;
  for (int value = 0; value < 255; value += step) values.push_back(static_cast<std::uint8_t>(value));
  values.push_back(255);
  const std::size_t count = values.size();
  Difference found;
  std::vector<std::uint8_t> pixels(3 * count);
  std::vector<float> in(3 * count);
  std::vector<float> out(3 * count);
  for (const std::uint8_t red : values) {
    for (const std::uint8_t green : values) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::array<std::uint8_t, 3> pixel = {red, green, values[i]};
        for (std::size_t c = 0; c < 3; ++c) {
          pixels[3 * i + c] = pixel[c];
          in[3 * i + c] = static_cast<float>(pixel[c]) / 255.0F;
        }
      }
      cmsDoTransform(transform, in.data(), out.data(), static_cast<cmsUInt32Number>(count));
      conversion.apply(pixels.data(), static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) {
        int worst = 0;
        for (std::size_t c = 0; c < 3; ++c) {
          const float code = std::clamp(std::floor(out[3 * i + c] * 255.0F + 0.5F), 0.0F, 255.0F);
          worst = std::max(worst, std::abs(pixels[3 * i + c] - static_cast<int>(code)));
        }
        found.differ += worst > 0 ? 1 : 0;
        found.most = std::max(found.most, worst);
      }
      found.colours += static_cast<std::int64_t>(count);
    }
  }
  cmsDeleteTransform(transform);
  cmsCloseProfile(from);
  cmsCloseProfile(to);
  return found;
}

}  // namespace slidestream::test
