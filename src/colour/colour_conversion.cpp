#include "colour/colour_conversion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "colour/colour_conversion.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;

/// sRGB's code of linear light.
HWY_INLINE hn::Vec<Ints> CodeOf(hn::Vec<Floats> y, const SrgbCodes& codes) {
  const Floats d;
  const Ints di;
  y = hn::Min(hn::Max(y, hn::Zero(d)), hn::Set(d, 1.0F));
  const auto place = hn::ConvertTo(di, hn::Mul(y, hn::Set(d, static_cast<float>(SrgbCodes::intervals))));
  const auto guess = hn::GatherIndex(di, codes.guesses.data(), place);
  const auto threshold = hn::GatherIndex(d, codes.thresholds.data(), guess);
  // True is -1.
  return hn::Sub(guess, hn::BitCast(di, hn::VecFromMask(d, hn::Ge(y, threshold))));
}

/// Whole vectors of pixels through curves and a matrix; returns how many pixels that were.
std::int64_t ConvertByMatrix(const ColourSteps& steps, const ColourMatrix& matrix, std::uint8_t* HWY_RESTRICT rgb,
                             std::int64_t pixels) {
  const Floats d;
  const Ints di;
  const hn::Rebind<std::uint8_t, Ints> d8;
  const SrgbCodes& codes = srgb_codes();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= pixels; i += lanes) {
    hn::Vec<decltype(d8)> red, green, blue;
    hn::LoadInterleaved3(d8, rgb + 3 * i, red, green, blue);
    const auto r = hn::GatherIndex(d, steps.first[0].data(), hn::PromoteTo(di, red));
    const auto g = hn::GatherIndex(d, steps.first[1].data(), hn::PromoteTo(di, green));
    const auto b = hn::GatherIndex(d, steps.first[2].data(), hn::PromoteTo(di, blue));
    const auto channel = [&](std::size_t c) {
      const float* const factors = matrix.factors.data() + 3 * c;
      const auto sum = hn::Add(hn::Add(hn::Mul(hn::Set(d, factors[0]), r), hn::Mul(hn::Set(d, factors[1]), g)),
                               hn::Mul(hn::Set(d, factors[2]), b));
      return hn::DemoteTo(d8, CodeOf(sum, codes));
    };
    hn::StoreInterleaved3(channel(0), channel(1), channel(2), d8, rgb + 3 * i);
  }
  return i;
}

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(ConvertByMatrix);

namespace {

using Values = std::array<float, 3>;

// Written so that what isn't a number becomes 0.
float clamped(float value) noexcept { return value > 0.0F ? std::min(value, 1.0F) : 0.0F; }

float value_of(const ColourCurve& curve, float at) noexcept {
  if (curve.values.size() == ColourCurve::of_16_bits) {
    return curve.values[static_cast<std::size_t>(std::rint(clamped(at) * 65535.0F))];
  }
  const float scaled = clamped(at) * static_cast<float>(ColourCurve::intervals);
  const int i = std::min(static_cast<int>(scaled), ColourCurve::intervals - 1);
  const float* const values = curve.values.data() + i;
  return values[0] + (scaled - static_cast<float>(i)) * (values[1] - values[0]);
}

Values value_of(const ColourMatrix& matrix, const Values& v) noexcept {
  Values out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const float* const factors = matrix.factors.data() + 3 * c;
    out[c] = ((factors[0] * v[0] + factors[1] * v[1]) + factors[2] * v[2]) + matrix.added[c];
  }
  return out;
}

/// Little CMS' interpolation of 16 bits: the grid's values have no more.
Values value_of(const ColourGrid& grid, const Values& v) noexcept {
  std::array<std::int64_t, 3> rest{};
  std::array<std::size_t, 3> step{};
  std::size_t corner = 0;
  std::size_t stride = 3;
  for (std::size_t c = 3; c-- > 0;) {
    // Nodes, in 65,536ths of the way from one to the next.
    const std::int64_t scaled = static_cast<std::int64_t>(std::rint(clamped(v[c]) * 65535.0F)) * (grid.nodes[c] - 1);
    const std::int64_t place = scaled + (scaled + 0x7fff) / 0xffff;
    const std::int64_t node = std::min<std::int64_t>(place >> 16, grid.nodes[c] - 2);
    rest[c] = place - (node << 16);
    corner += static_cast<std::size_t>(node) * stride;
    step[c] = stride;
    stride *= static_cast<std::size_t>(grid.nodes[c]);
  }
  // From the lowest corner along the channel with the largest rest first.
  std::array<std::size_t, 3> order = {0, 1, 2};
  if (rest[order[0]] < rest[order[1]]) std::swap(order[0], order[1]);
  if (rest[order[1]] < rest[order[2]]) std::swap(order[1], order[2]);
  if (rest[order[0]] < rest[order[1]]) std::swap(order[0], order[1]);
  Values out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint16_t* at = grid.values.data() + corner + c;
    const std::int64_t first = *at;
    std::int64_t sum = 0x8001;
    for (const std::size_t channel : order) {
      const std::int64_t before = *at;
      at += step[channel];
      sum += (*at - before) * rest[channel];
    }
    const std::int64_t value = first + ((sum + (sum >> 16)) >> 16);
    out[c] = static_cast<float>(value) * (1.0F / 65535.0F);
  }
  return out;
}

/// CIE 1976, backwards, of values that ICC's encoding has; D50.
Values xyz_of_lab(const Values& v) noexcept {
  constexpr Values white = {0.9642F, 1.0F, 0.8249F};
  const float y = (v[0] * 100.0F + 16.0F) * (1.0F / 116.0F);
  const Values f = {y + (v[1] * 255.0F - 128.0F) * (1.0F / 500.0F), y, y - (v[2] * 255.0F - 128.0F) * (1.0F / 200.0F)};
  Values out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const float linear = (108.0F / 841.0F) * (f[c] - 16.0F / 116.0F);
    out[c] = (f[c] <= 24.0F / 116.0F ? linear : f[c] * f[c] * f[c]) * white[c];
  }
  return out;
}

std::uint8_t code_of(float y) noexcept {
  const SrgbCodes& codes = srgb_codes();
  y = clamped(y);
  const std::int32_t guess = codes.guesses[static_cast<std::size_t>(y * static_cast<float>(SrgbCodes::intervals))];
  return static_cast<std::uint8_t>(guess + (y >= codes.thresholds[static_cast<std::size_t>(guess)] ? 1 : 0));
}

}  // namespace

void convert_colour(const ColourSteps& steps, std::uint8_t* rgb) noexcept {
  Values values{};
  for (std::size_t c = 0; c < 3; ++c) values[c] = steps.first[c][rgb[c]];
  if (!steps.grid.values.empty()) values = value_of(steps.grid, values);
  for (const auto& step : steps.then) {
    if (const auto* matrix = std::get_if<ColourMatrix>(&step)) {
      values = value_of(*matrix, values);
    } else {
      const ColourCurves& curves = std::get<ColourCurves>(step);
      for (std::size_t c = 0; c < 3; ++c) values[c] = value_of(curves.channels[c], values[c]);
    }
  }
  if (steps.connection == ColourSteps::Connection::lab) values = xyz_of_lab(values);
  if (steps.connection == ColourSteps::Connection::xyz) {
    for (float& value : values) value *= 1.0F + 32767.0F / 32768.0F;
  }
  if (steps.connection != ColourSteps::Connection::none) values = value_of(ColourMatrix{steps.to_srgb, {}}, values);
  for (std::size_t c = 0; c < 3; ++c) rgb[c] = code_of(values[c]);
}

ColourConversion::ColourConversion(std::span<const std::byte> profile) : steps_(read_colour_steps(profile)) {
  if (steps_.connection == ColourSteps::Connection::none && steps_.grid.values.empty() && steps_.then.size() == 1) {
    last_ = std::get<ColourMatrix>(steps_.then.front());
    is_matrix_ = true;
  }
}

void ColourConversion::apply(std::uint8_t* rgb, std::int64_t pixels) const noexcept {
  std::int64_t done = 0;
  if (is_matrix_) done = HWY_DYNAMIC_DISPATCH(ConvertByMatrix)(steps_, last_, rgb, pixels);
  for (std::int64_t i = done; i < pixels; ++i) convert_colour(steps_, rgb + 3 * i);
}

}  // namespace slidestream
#endif
