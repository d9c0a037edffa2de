#include "colour/colour_conversion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <variant>

#include "colour/lab.hpp"

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
using UnsignedInts = hn::RebindToUnsigned<Floats>;

/// A value of each channel for as many pixels as a vector has lanes.
struct Values {
  hn::Vec<Floats> red, green, blue;
};

HWY_INLINE hn::Vec<Floats> Clamped(hn::Vec<Floats> value) {
  const Floats d;
  return hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, 1.0F));
}

/// sRGB's code of linear light.
HWY_INLINE hn::Vec<Ints> CodeOf(hn::Vec<Floats> y, const SrgbCodes& codes) {
  const Floats d;
  const Ints di;
  y = Clamped(y);
  const auto place = hn::ConvertTo(di, hn::Mul(y, hn::Set(d, static_cast<float>(SrgbCodes::intervals))));
#if HWY_TARGET == HWY_SCALAR
  const auto guess = hn::GatherIndex(di, codes.guesses.data(), place);
  const auto threshold = hn::GatherIndex(d, codes.thresholds.data(), guess);
#else
  // Both numbers of a place at once: gathering takes most of the time.
  const hn::Repartition<std::int64_t, Ints> pairs;
  const hn::Half<Ints> half;
  const auto low = hn::GatherIndex(pairs, codes.pairs.data(), hn::PromoteTo(pairs, hn::LowerHalf(half, place)));
  const auto high = hn::GatherIndex(pairs, codes.pairs.data(), hn::PromoteTo(pairs, hn::UpperHalf(half, place)));
  const auto guess = hn::ConcatEven(di, hn::BitCast(di, high), hn::BitCast(di, low));
  const auto threshold = hn::BitCast(d, hn::ConcatOdd(di, hn::BitCast(di, high), hn::BitCast(di, low)));
#endif
  // True is -1.
  return hn::Sub(guess, hn::BitCast(di, hn::VecFromMask(d, hn::Ge(y, threshold))));
}

HWY_INLINE hn::Vec<Floats> ValueOf(const ColourCurve& curve, hn::Vec<Floats> at) {
  const Floats d;
  const Ints di;
  const float* const table = curve.values.data();
  if (curve.values.size() == ColourCurve::of_16_bits) {
    return hn::GatherIndex(d, table, hn::NearestInt(hn::Mul(Clamped(at), hn::Set(d, 65535.0F))));
  }
  const auto scaled = hn::Mul(Clamped(at), hn::Set(d, static_cast<float>(ColourCurve::intervals)));
  const auto i = hn::Min(hn::ConvertTo(di, scaled), hn::Set(di, ColourCurve::intervals - 1));
  const auto low = hn::GatherIndex(d, table, i);
  const auto high = hn::GatherIndex(d, table + 1, i);
  return hn::Add(low, hn::Mul(hn::Sub(scaled, hn::ConvertTo(d, i)), hn::Sub(high, low)));
}

HWY_INLINE Values ValueOf(const ColourMatrix& matrix, const Values& v) {
  const Floats d;
  const auto row = [&](std::size_t c) {
    const float* const factors = matrix.factors.data() + 3 * c;
    const auto sum = hn::Add(hn::Add(hn::Mul(hn::Set(d, factors[0]), v.red), hn::Mul(hn::Set(d, factors[1]), v.green)),
                             hn::Mul(hn::Set(d, factors[2]), v.blue));
    return hn::Add(sum, hn::Set(d, matrix.added[c]));
  };
  return {row(0), row(1), row(2)};
}

/// As `value_of` for a grid, whose nodes and rests stand in tables for each sample.
HWY_INLINE Values ValueOf(const ColourGrid& grid, const std::array<GridPlaces, 3>& places, hn::Vec<Ints> red,
                          hn::Vec<Ints> green, hn::Vec<Ints> blue) {
  const Floats d;
  const Ints di;
  const UnsignedInts du;
  const auto of = [&](const std::array<std::int32_t, 256>& table, hn::Vec<Ints> sample) {
    return hn::GatherIndex(di, table.data(), sample);
  };
  auto rest0 = of(places[0].rest, red), rest1 = of(places[1].rest, green), rest2 = of(places[2].rest, blue);
  auto step0 = of(places[0].step, red), step1 = of(places[1].step, green), step2 = of(places[2].step, blue);
  const auto exchange = [](auto& rest_a, auto& step_a, auto& rest_b, auto& step_b) {
    const auto less = hn::Lt(rest_a, rest_b);
    const auto rest = hn::IfThenElse(less, rest_b, rest_a);
    rest_b = hn::IfThenElse(less, rest_a, rest_b);
    rest_a = rest;
    const auto step = hn::IfThenElse(less, step_b, step_a);
    step_b = hn::IfThenElse(less, step_a, step_b);
    step_a = step;
  };
  exchange(rest0, step0, rest1, step1);
  exchange(rest1, step1, rest2, step2);
  exchange(rest0, step0, rest1, step1);
  const auto corner =
      hn::Add(hn::Add(of(places[0].corner, red), of(places[1].corner, green)), of(places[2].corner, blue));
  const auto at1 = hn::Add(corner, step0);
  const auto at2 = hn::Add(at1, step1);
  const auto at3 = hn::Add(at2, step2);
  const auto weight0 = hn::BitCast(du, hn::Sub(hn::Set(di, 65536), rest0));
  const auto weight1 = hn::BitCast(du, hn::Sub(rest0, rest1));
  const auto weight2 = hn::BitCast(du, hn::Sub(rest1, rest2));
  const auto weight3 = hn::BitCast(du, rest2);
  const auto channel = [&](std::size_t c) {
    const std::uint32_t* const values = grid.values.data() + c;
    const auto first = hn::GatherIndex(du, values, corner);
    const auto sum01 = hn::Add(hn::Mul(first, weight0), hn::Mul(hn::GatherIndex(du, values, at1), weight1));
    const auto sum23 =
        hn::Add(hn::Mul(hn::GatherIndex(du, values, at2), weight2), hn::Mul(hn::GatherIndex(du, values, at3), weight3));
    const auto sum = hn::Add(hn::Add(sum01, sum23), hn::Set(du, 0x8001));
    const auto value = hn::ShiftRight<16>(hn::Sub(hn::Add(sum, hn::ShiftRight<16>(sum)), first));
    return hn::Mul(hn::ConvertTo(d, hn::BitCast(di, value)), hn::Set(d, 1.0F / 65535.0F));
  };
  return {channel(0), channel(1), channel(2)};
}

HWY_INLINE Values XyzOfLab(const Values& v) {
  const Floats d;
  const auto set = [](float value) { return hn::Set(Floats(), value); };
  const auto y = hn::Mul(hn::Add(hn::Mul(v.red, set(100.0F)), set(16.0F)), set(1.0F / 116.0F));
  const auto apart = [&](hn::Vec<Floats> value, float factor) {
    return hn::Mul(hn::Sub(hn::Mul(value, set(255.0F)), set(128.0F)), set(factor));
  };
  const auto light = [&](hn::Vec<Floats> f, std::size_t c) {
    const auto linear = hn::Mul(set(lab::slope), hn::Sub(f, set(lab::offset)));
    const auto cube = hn::Mul(hn::Mul(f, f), f);
    return hn::Mul(hn::IfThenElse(hn::Le(f, set(lab::limit)), linear, cube), hn::Set(d, lab::white[c]));
  };
  return {light(hn::Add(y, apart(v.green, 1.0F / 500.0F)), 0), light(y, 1),
          light(hn::Sub(y, apart(v.blue, 1.0F / 200.0F)), 2)};
}

/// Whole vectors of pixels; returns how many pixels that were.
std::int64_t ConvertColours(const ColourSteps& steps, const std::array<GridPlaces, 3>& places,
                            std::uint8_t* HWY_RESTRICT rgb, std::int64_t pixels) {
  const Floats d;
  const Ints di;
  const hn::Rebind<std::uint8_t, Ints> d8;
  const SrgbCodes& codes = srgb_codes();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= pixels; i += lanes) {
    hn::Vec<decltype(d8)> red8, green8, blue8;
    hn::LoadInterleaved3(d8, rgb + 3 * i, red8, green8, blue8);
    const auto red = hn::PromoteTo(di, red8), green = hn::PromoteTo(di, green8), blue = hn::PromoteTo(di, blue8);
    Values values;
    if (steps.grid.values.empty()) {
      values = {hn::GatherIndex(d, steps.first[0].data(), red), hn::GatherIndex(d, steps.first[1].data(), green),
                hn::GatherIndex(d, steps.first[2].data(), blue)};
    } else {
      values = ValueOf(steps.grid, places, red, green, blue);
    }
    for (const auto& step : steps.then) {
      if (const auto* matrix = std::get_if<ColourMatrix>(&step)) {
        values = ValueOf(*matrix, values);
      } else {
        const ColourCurves& curves = *std::get_if<ColourCurves>(&step);
        values = {ValueOf(curves.channels[0], values.red), ValueOf(curves.channels[1], values.green),
                  ValueOf(curves.channels[2], values.blue)};
      }
    }
    if (steps.connection == ColourSteps::Connection::lab) values = XyzOfLab(values);
    if (steps.connection == ColourSteps::Connection::xyz) {
      const auto factor = hn::Set(d, lab::xyz_range);
      values = {hn::Mul(values.red, factor), hn::Mul(values.green, factor), hn::Mul(values.blue, factor)};
    }
    if (steps.connection != ColourSteps::Connection::none) values = ValueOf(steps.to_srgb, values);
    hn::StoreInterleaved3(hn::DemoteTo(d8, CodeOf(values.red, codes)), hn::DemoteTo(d8, CodeOf(values.green, codes)),
                          hn::DemoteTo(d8, CodeOf(values.blue, codes)), d8, rgb + 3 * i);
  }
  return i;
}

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(ConvertColours);

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

/// The node below a value along a channel of a grid, and how far it is to the next, in 65,536ths.
struct GridPlace {
  std::int64_t node;
  std::int64_t rest;
};

/// As Little CMS has it: from 16 bits, and at the end the last node itself.
GridPlace place_of(float value, int nodes) noexcept {
  const std::int64_t scaled = static_cast<std::int64_t>(std::rint(clamped(value) * 65535.0F)) * (nodes - 1);
  const std::int64_t place = scaled + (scaled + 0x7fff) / 0xffff;
  return {place >> 16, place & 0xffff};
}

/// Little CMS' interpolation of 16 bits: the grid's values have no more.
Values value_of(const ColourGrid& grid, const Values& v) noexcept {
  std::array<std::int64_t, 3> rest{};
  std::array<std::size_t, 3> step{};
  std::size_t corner = 0;
  std::size_t stride = 3;
  for (std::size_t c = 3; c-- > 0;) {
    const GridPlace place = place_of(v[c], grid.nodes[c]);
    rest[c] = place.rest;
    corner += static_cast<std::size_t>(place.node) * stride;
    step[c] = place.rest == 0 ? 0 : stride;
    stride *= static_cast<std::size_t>(grid.nodes[c]);
  }
  // From the lowest corner along the channel with the largest rest first.
  std::array<std::size_t, 3> order = {0, 1, 2};
  if (rest[order[0]] < rest[order[1]]) std::swap(order[0], order[1]);
  if (rest[order[1]] < rest[order[2]]) std::swap(order[1], order[2]);
  if (rest[order[0]] < rest[order[1]]) std::swap(order[0], order[1]);
  Values out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint32_t* at = grid.values.data() + corner + c;
    const std::int64_t first = *at;
    std::int64_t sum = 0x8001;
    for (const std::size_t channel : order) {
      const std::int64_t before = *at;
      at += step[channel];
      sum += (static_cast<std::int64_t>(*at) - before) * rest[channel];
    }
    const std::int64_t value = first + ((sum + (sum >> 16)) >> 16);
    out[c] = static_cast<float>(value) * (1.0F / 65535.0F);
  }
  return out;
}

/// CIE 1976, backwards, of values that ICC's encoding has; D50.
Values xyz_of_lab(const Values& v) noexcept {
  const float y = (v[0] * 100.0F + 16.0F) * (1.0F / 116.0F);
  const Values f = {y + (v[1] * 255.0F - 128.0F) * (1.0F / 500.0F), y, y - (v[2] * 255.0F - 128.0F) * (1.0F / 200.0F)};
  Values out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const float linear = lab::slope * (f[c] - lab::offset);
    out[c] = (f[c] <= lab::limit ? linear : f[c] * f[c] * f[c]) * lab::white[c];
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
    for (float& value : values) value *= lab::xyz_range;
  }
  if (steps.connection != ColourSteps::Connection::none) values = value_of(steps.to_srgb, values);
  for (std::size_t c = 0; c < 3; ++c) rgb[c] = code_of(values[c]);
}

ColourConversion::ColourConversion(std::span<const std::byte> profile) : steps_(read_colour_steps(profile)) {
  if (steps_.grid.values.empty()) return;
  std::int32_t stride = 3;
  for (std::size_t c = 3; c-- > 0;) {
    for (std::size_t sample = 0; sample < 256; ++sample) {
      const GridPlace place = place_of(steps_.first[c][sample], steps_.grid.nodes[c]);
      places_[c].corner[sample] = static_cast<std::int32_t>(place.node) * stride;
      places_[c].rest[sample] = static_cast<std::int32_t>(place.rest);
      places_[c].step[sample] = place.rest == 0 ? 0 : stride;
    }
    stride *= steps_.grid.nodes[c];
  }
}

void ColourConversion::apply(std::uint8_t* rgb, std::int64_t pixels) const noexcept {
  const std::int64_t done = HWY_DYNAMIC_DISPATCH(ConvertColours)(steps_, places_, rgb, pixels);
  for (std::int64_t i = done; i < pixels; ++i) convert_colour(steps_, rgb + 3 * i);
}

bool ColourConversion::keeps_colours() const noexcept {
  const auto keeps = [this](int red, int green, int blue) {
    const std::array<int, 3> from = {red, green, blue};
    std::array<std::uint8_t, 3> to{};
    std::ranges::copy(from, to.begin());
    convert_colour(steps_, to.data());
    return std::ranges::equal(from, to, [](int before, int after) { return std::abs(before - after) <= 1; });
  };
  constexpr int step = 17;  // 255 is a multiple of it
  for (int red = 0; red < 256; red += step) {
    for (int green = 0; green < 256; green += step) {
      for (int blue = 0; blue < 256; blue += step) {
        if (!keeps(red, green, blue)) return false;
      }
    }
  }
  return true;
}

}  // namespace slidestream
#endif
