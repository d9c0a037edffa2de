#include "colour/colour_steps.hpp"

#include <lcms2.h>
#include <lcms2_plugin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <slidestream/error.hpp>
#include <string_view>

#include "colour/profile_head.hpp"
#include "colour/profile_memory.hpp"

namespace slidestream {

namespace {

using Matrix = std::array<double, 9>;

struct CloseProfile {
  void operator()(void* profile) const noexcept { cmsCloseProfile(profile); }
};
using Profile = std::unique_ptr<void, CloseProfile>;

/// Null where it can't be read.
Profile open_profile(const ProfileMemory& memory, std::span<const std::byte> bytes) {
  return Profile(cmsOpenProfileFromMemTHR(memory.context(), bytes.data(), static_cast<cmsUInt32Number>(bytes.size())));
}

[[noreturn]] void refuse(const std::string& why) { throw Error("the ICC profile " + why); }

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) out[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    }
  }
  return out;
}

Matrix inverse(const Matrix& m) {
  const Matrix cofactors = {m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                            m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                            m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  const double determinant = m[0] * cofactors[0] + m[1] * cofactors[3] + m[2] * cofactors[6];
  Matrix out{};
  for (std::size_t i = 0; i < 9; ++i) out[i] = cofactors[i] / determinant;
  return out;
}

/// XYZ (D50) to linear light of sRGB. The primaries and white of IEC 61966-2-1, brought to D50 by Bradford's matrix:
/// what Little CMS 2.14 makes of them.
const Matrix& xyz_to_srgb() {
  static const Matrix matrix = inverse({0.43604125161605084, 0.38511291079815568, 0.14304583758579362,   //
                                        0.22248454022947742, 0.71690507860845787, 0.060610381162065304,  //
                                        0.013920187471375375, 0.097067238697124067, 0.71391257383150097});
  return matrix;
}

std::array<float, 9> rounded(const Matrix& matrix) {
  std::array<float, 9> out{};
  std::ranges::transform(matrix, out.begin(), [](double value) { return static_cast<float>(value); });
  return out;
}

std::array<float, 256> first_table(const cmsToneCurve* curve) {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = cmsEvalToneCurveFloat(curve, static_cast<float>(i) / 255.0F);
  return table;
}

void check_finite(std::span<const float> values) {
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    refuse("has values that are no numbers");
  }
}

std::string text_of(cmsHPROFILE profile) {
  std::array<char, 256> text{};
  cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", text.data(), text.size() - 1);
  std::string out = text.data();
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

/// Curves and a matrix.
void read_shaper(cmsHPROFILE profile, ColourSteps& steps) {
  constexpr std::array<cmsTagSignature, 3> curves = {cmsSigRedTRCTag, cmsSigGreenTRCTag, cmsSigBlueTRCTag};
  constexpr std::array<cmsTagSignature, 3> colorants = {cmsSigRedColorantTag, cmsSigGreenColorantTag,
                                                        cmsSigBlueColorantTag};
  if (cmsGetPCS(profile) != cmsSigXYZData) refuse("has a matrix to Lab");
  Matrix to_xyz{};
  for (std::size_t c = 0; c < 3; ++c) {
    const auto* curve = static_cast<const cmsToneCurve*>(cmsReadTag(profile, curves[c]));
    const auto* colorant = static_cast<const cmsCIEXYZ*>(cmsReadTag(profile, colorants[c]));
    if (curve == nullptr || colorant == nullptr) refuse("has neither a table nor curves and a matrix that can be read");
    steps.first[c] = first_table(curve);
    to_xyz[c] = colorant->X;
    to_xyz[3 + c] = colorant->Y;
    to_xyz[6 + c] = colorant->Z;
  }
  ColourMatrix matrix;
  matrix.factors = rounded(product(xyz_to_srgb(), to_xyz));
  check_finite(matrix.factors);
  steps.then.emplace_back(matrix);
}

ColourCurves curves_of(const _cmsStageToneCurvesData& data) {
  ColourCurves out;
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<float>& values = out.channels[c].values;
    const cmsToneCurve* const curve = data.TheCurves[c];
    const int last = cmsGetToneCurveParametricType(curve) != 0 ? ColourCurve::intervals : ColourCurve::of_16_bits - 1;
    values.reserve(static_cast<std::size_t>(last) + 1);
    for (int i = 0; i <= last; ++i) {
      values.push_back(cmsEvalToneCurveFloat(curve, static_cast<float>(i) / static_cast<float>(last)));
    }
    check_finite(values);
  }
  return out;
}

ColourMatrix matrix_of(const _cmsStageMatrixData& data) {
  ColourMatrix out;
  for (std::size_t i = 0; i < 9; ++i) out.factors[i] = static_cast<float>(data.Double[i]);
  for (std::size_t i = 0; i < 3 && data.Offset != nullptr; ++i) out.added[i] = static_cast<float>(data.Offset[i]);
  check_finite(out.factors);
  check_finite(out.added);
  return out;
}

ColourGrid grid_of(const _cmsStageCLutData& data) {
  const cmsInterpParams& about = *data.Params;
  ColourGrid grid;
  std::size_t values = 3;
  for (std::size_t c = 0; c < 3; ++c) {
    grid.nodes[c] = static_cast<int>(about.nSamples[c]);
    if (grid.nodes[c] < 2) refuse("has a table with a side of one node");
    values *= about.nSamples[c];
  }
  if (about.nOutputs != 3 || values != data.nEntries)
    refuse("has a table of another shape than three channels to three");
  if (data.HasFloatValues != 0) refuse("has a table of floating-point numbers");
  grid.values.assign(data.Tab.T, data.Tab.T + values);
  return grid;
}

/// A tag of stages, as Little CMS reads it.
void read_stages(cmsHPROFILE profile, cmsTagSignature tag, ColourSteps& steps) {
  std::array<char, 4> type{};
  cmsReadRawTag(profile, tag, type.data(), type.size());
  const auto* pipeline = static_cast<const cmsPipeline*>(cmsReadTag(profile, tag));
  if (pipeline == nullptr) refuse("has a table that can't be read");
  if (cmsPipelineInputChannels(pipeline) != 3 || cmsPipelineOutputChannels(pipeline) != 3) {
    refuse("has a table that isn't of three channels to three");
  }
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 256; ++i) steps.first[c][i] = static_cast<float>(i) / 255.0F;
  }
  bool begins = true;
  for (const cmsStage* stage = cmsPipelineGetPtrToFirstStage(pipeline); stage != nullptr; stage = cmsStageNext(stage)) {
    if (cmsStageInputChannels(stage) != 3 || cmsStageOutputChannels(stage) != 3) {
      refuse("has a step that isn't of three channels to three");
    }
    const void* data = cmsStageData(stage);
    switch (cmsStageType(stage)) {
      case cmsSigCurveSetElemType: {
        const auto& curves = *static_cast<const _cmsStageToneCurvesData*>(data);
        if (begins) {
          for (std::size_t c = 0; c < 3; ++c) steps.first[c] = first_table(curves.TheCurves[c]);
        } else {
          steps.then.emplace_back(curves_of(curves));
        }
        break;
      }
      case cmsSigCLutElemType:
        if (!steps.grid.values.empty() || !steps.then.empty()) refuse("has a table behind other steps");
        steps.grid = grid_of(*static_cast<const _cmsStageCLutData*>(data));
        break;
      case cmsSigMatrixElemType:
        steps.then.emplace_back(matrix_of(*static_cast<const _cmsStageMatrixData*>(data)));
        break;
      case cmsSigIdentityElemType:
        continue;
      default:
        refuse("has a step of a kind that isn't known");
    }
    begins = false;
  }
  const bool is_lab = cmsGetPCS(profile) == cmsSigLabData;
  steps.connection = is_lab ? ColourSteps::Connection::lab : ColourSteps::Connection::xyz;
  if (is_lab && std::string_view(type.data(), type.size()) == "mft2") {
    // Its 16 bits have 100 and 255 at 0xFF00: ICC.1:2010, section 6.3.4.2.
    constexpr float wider = 65535.0F / 65280.0F;
    ColourMatrix scale;
    scale.factors = {wider, 0, 0, 0, wider, 0, 0, 0, wider};
    steps.then.emplace_back(scale);
  }
  steps.to_srgb.factors = rounded(xyz_to_srgb());
}

void check_kind(cmsHPROFILE profile) {
  const cmsProfileClassSignature kind = cmsGetDeviceClass(profile);
  if (kind != cmsSigInputClass && kind != cmsSigDisplayClass && kind != cmsSigColorSpaceClass) {
    refuse("is neither a scanner's, a display's nor a colour space's");
  }
  if (cmsGetColorSpace(profile) != cmsSigRgbData) refuse("isn't of RGB");
  if (cmsGetPCS(profile) != cmsSigXYZData && cmsGetPCS(profile) != cmsSigLabData)
    refuse("leads neither to XYZ nor to Lab");
}

}  // namespace

std::string profile_name(std::span<const std::byte> bytes) {
  // A description that fills the profile would take nine times as much as text.
  constexpr std::uint64_t besides = std::uint64_t{1} << 20;
  ProfileMemory memory(bytes.size() + besides);
  const Profile profile = open_profile(memory, bytes);
  return profile ? text_of(profile.get()) : std::string();
}

ColourSteps read_colour_steps(std::span<const std::byte> bytes) {
  constexpr std::size_t most = std::size_t{16} << 20;
  if (bytes.empty() || bytes.size() > most) refuse("has " + std::to_string(bytes.size()) + " bytes");
  ProfileMemory memory(most_library_bytes(bytes));
  const Profile profile = open_profile(memory, bytes);
  if (!profile) refuse("is damaged");
  check_kind(profile.get());
  ColourSteps steps;
  if (cmsIsTag(profile.get(), cmsSigDToB1Tag) != 0) {
    refuse("has a table of multi-process elements (D2B1), which isn't supported");
  } else if (cmsIsTag(profile.get(), cmsSigAToB1Tag) != 0) {
    read_stages(profile.get(), cmsSigAToB1Tag, steps);
  } else if (cmsIsTag(profile.get(), cmsSigAToB0Tag) != 0) {
    read_stages(profile.get(), cmsSigAToB0Tag, steps);
  } else {
    read_shaper(profile.get(), steps);
  }
  for (const auto& table : steps.first) check_finite(table);
  return steps;
}

bool ColourSteps::is_matrix_alone() const noexcept {
  if (!grid.values.empty() || then.size() != 1 || connection != Connection::none) return false;
  const auto* const matrix = std::get_if<ColourMatrix>(&then.front());
  return matrix != nullptr && matrix->added == std::array<float, 3>{};
}

std::uint64_t ColourSteps::table_bytes() const noexcept {
  std::uint64_t bytes = grid.values.capacity() * sizeof(grid.values.front());
  for (const auto& step : then) {
    bytes += sizeof(step);
    const auto* curves = std::get_if<ColourCurves>(&step);
    if (curves == nullptr) continue;
    for (const ColourCurve& curve : curves->channels) bytes += curve.values.capacity() * sizeof(float);
  }
  return bytes;
}

const SrgbCodes& srgb_codes() {
  static const SrgbCodes codes = [] {
    SrgbCodes made;
    // Linear light whose code lies between two whole ones: IEC 61966-2-1, backwards.
    const auto linear = [](double code) {
      return code <= 0.04045 ? code / 12.92 : std::pow((code + 0.055) / 1.055, 2.4);
    };
    for (int i = 0; i < 255; ++i) {
      const double exact = linear((i + 0.5) / 255.0);
      auto threshold = static_cast<float>(exact);
      if (threshold < exact) threshold = std::nextafter(threshold, 2.0F);
      made.thresholds[static_cast<std::size_t>(i)] = threshold;
    }
    made.thresholds[255] = std::numeric_limits<float>::infinity();
    std::uint32_t code = 0;
    for (std::uint32_t i = 0; i < SrgbCodes::intervals; ++i) {
      const std::uint32_t begin = (SrgbCodes::first_interval + i) << 16;
      while (std::bit_cast<std::uint32_t>(made.thresholds[code]) <= begin) ++code;
      const auto next = std::bit_cast<std::uint32_t>(made.thresholds[code]);
      made.words[i] = next - begin < 0x10000 ? ((code + 1) << 24) - next : (code << 24) - begin;
    }
    return made;
  }();
  return codes;
}

}  // namespace slidestream
