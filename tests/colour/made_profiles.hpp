#pragma once

#include <lcms2.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace slidestream::test {

struct MadeProfile {
  std::string name;
  std::vector<std::byte> bytes;
  bool has_table = false;
};

inline std::vector<std::byte> saved(cmsHPROFILE profile) {
  cmsUInt32Number size = 0;
  cmsSaveProfileToMem(profile, nullptr, &size);
  std::vector<std::byte> bytes(size);
  cmsSaveProfileToMem(profile, bytes.data(), &size);
  cmsCloseProfile(profile);
  return bytes;
}

inline cmsHPROFILE with_curve(cmsToneCurve* curve, double version, double x = 0.64, double y = 0.33) {
  const cmsCIExyY white = {0.3127, 0.3290, 1.0};
  const cmsCIExyYTRIPLE primaries = {{x, y, 1.0}, {0.21, 0.71, 1.0}, {0.15, 0.06, 1.0}};
  std::array<cmsToneCurve*, 3> curves = {curve, curve, curve};
  cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves.data());
  cmsSetProfileVersion(profile, version);
  cmsFreeToneCurve(curve);
  return profile;
}

inline cmsToneCurve* sampled_curve() {
  std::vector<cmsUInt16Number> samples;
  for (int i = 0; i < 300; ++i) {
    const double at = i / 299.0;
    samples.push_back(static_cast<cmsUInt16Number>(65535.0 * (0.8 * at * at + 0.2 * at)));
  }
  return cmsBuildTabulatedToneCurve16(nullptr, static_cast<cmsUInt32Number>(samples.size()), samples.data());
}

/// Of 256 values, as tables of 8 bits have them.
inline cmsToneCurve* tabulated_gamma(double gamma) {
  std::array<cmsUInt16Number, 256> values{};
  for (std::size_t i = 0; i < 256; ++i) {
    values[i] =
        static_cast<cmsUInt16Number>(257.0 * std::round(255.0 * std::pow(static_cast<double>(i) / 255.0, gamma)));
  }
  return cmsBuildTabulatedToneCurve16(nullptr, 256, values.data());
}

inline cmsToneCurve* parametric_curve() {
  const std::array<double, 5> values = {2.2, 0.95, 0.05, 0.1, 0.03};
  return cmsBuildParametricToneCurve(nullptr, 4, values.data());
}

/// Linear light of a scanner with mixed filters, as Lab or XYZ, by ICC's encoding of 16 bits of version 4.
inline int sample_table(const cmsUInt16Number in[], cmsUInt16Number out[], void* is_lab) {
  const double r = std::pow(in[0] / 65535.0, 2.0), g = std::pow(in[1] / 65535.0, 1.9),
               b = std::pow(in[2] / 65535.0, 2.1);
  const cmsCIEXYZ xyz = {0.4361 * r + 0.3851 * g + 0.1431 * b, 0.2225 * r + 0.7169 * g + 0.0606 * b,
                         0.0139 * r + 0.0971 * g + 0.7141 * b};
  if (*static_cast<const bool*>(is_lab)) {
    cmsCIELab lab;
    cmsXYZ2Lab(nullptr, &lab, &xyz);
    cmsFloat2LabEncoded(out, &lab);
  } else {
    cmsFloat2XYZEncoded(out, &xyz);
  }
  return 1;
}

/// With the tag `tag`. Version 2 has tables of 8 or 16 bits, version 4 curves, a table, curves and a matrix.
inline std::vector<std::byte> with_table(double version, bool is_lab, bool of_8_bits, int nodes, cmsTagSignature tag) {
  cmsHPROFILE profile = cmsCreateProfilePlaceholder(nullptr);
  cmsSetProfileVersion(profile, version);
  cmsSetDeviceClass(profile, cmsSigInputClass);
  cmsSetColorSpace(profile, cmsSigRgbData);
  cmsSetPCS(profile, is_lab ? cmsSigLabData : cmsSigXYZData);
  cmsPipeline* pipeline = cmsPipelineAlloc(nullptr, 3, 3);
  cmsToneCurve* gamma = of_8_bits ? tabulated_gamma(1.2) : cmsBuildGamma(nullptr, 1.2);
  std::array<cmsToneCurve*, 3> curves = {gamma, gamma, gamma};
  cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(nullptr, 3, curves.data()));
  const std::array<cmsUInt32Number, 3> sides = {
      static_cast<cmsUInt32Number>(nodes), static_cast<cmsUInt32Number>(nodes), static_cast<cmsUInt32Number>(nodes)};
  cmsStage* grid = cmsStageAllocCLut16bitGranular(nullptr, sides.data(), 3, 3, nullptr);
  bool lab = is_lab;
  cmsStageSampleCLut16bit(grid, sample_table, &lab, 0);
  cmsPipelineInsertStage(pipeline, cmsAT_END, grid);
  if (version >= 4.0) {
    cmsToneCurve* bent = cmsBuildGamma(nullptr, 1.05);
    std::array<cmsToneCurve*, 3> more = {bent, bent, bent};
    cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(nullptr, 3, more.data()));
    const std::array<double, 9> matrix = {0.98, 0.01, 0.01, 0.0, 0.99, 0.01, 0.01, 0.0, 0.99};
    const std::array<double, 3> added = {0.002, 0.001, 0.003};
    cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocMatrix(nullptr, 3, 3, matrix.data(), added.data()));
    cmsFreeToneCurve(bent);
  }
  cmsToneCurve* last = of_8_bits ? tabulated_gamma(1.0) : cmsBuildGamma(nullptr, version >= 4.0 ? 0.97 : 1.0);
  std::array<cmsToneCurve*, 3> ends = {last, last, last};
  cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(nullptr, 3, ends.data()));
  cmsPipelineSetSaveAs8bitsFlag(pipeline, of_8_bits ? TRUE : FALSE);
  cmsWriteTag(profile, tag, pipeline);
  cmsWriteTag(profile, cmsSigMediaWhitePointTag, cmsD50_XYZ());
  cmsPipelineFree(pipeline);
  cmsFreeToneCurve(gamma);
  cmsFreeToneCurve(last);
  return saved(profile);
}

/// Profiles of every kind.
inline std::vector<MadeProfile> made_profiles() {
  const std::array<double, 5> srgb = {2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045};
  std::vector<MadeProfile> all;
  all.push_back({"gamma 2.2, version 2", saved(with_curve(cmsBuildGamma(nullptr, 2.2), 2.1))});
  all.push_back({"gamma 1.8, version 4", saved(with_curve(cmsBuildGamma(nullptr, 1.8), 4.3, 0.68, 0.32))});
  all.push_back({"linear", saved(with_curve(cmsBuildGamma(nullptr, 1.0), 4.3))});
  all.push_back(
      {"sRGB's curve", saved(with_curve(cmsBuildParametricToneCurve(nullptr, 4, srgb.data()), 4.3, 0.735, 0.265))});
  all.push_back({"a sampled curve", saved(with_curve(sampled_curve(), 2.1))});
  all.push_back({"a parametric curve", saved(with_curve(parametric_curve(), 4.3))});
  all.push_back({"sRGB", saved(cmsCreate_sRGBProfile())});
  all.push_back({"mft1 to Lab", with_table(2.1, true, true, 17, cmsSigAToB0Tag), true});
  all.push_back({"mft2 to Lab", with_table(2.1, true, false, 33, cmsSigAToB0Tag), true});
  all.push_back({"mft2 to XYZ", with_table(2.1, false, false, 33, cmsSigAToB0Tag), true});
  all.push_back({"mAB to Lab", with_table(4.3, true, false, 33, cmsSigAToB0Tag), true});
  all.push_back({"mAB to XYZ as A2B1", with_table(4.3, false, false, 21, cmsSigAToB1Tag), true});
  return all;
}

}  // namespace slidestream::test
