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

#if HWY_TARGET == HWY_SCALAR

/// None of the pixels.
std::int64_t ConvertColours(const ColourSteps&, const ColourLookup&, std::uint8_t*, std::int64_t) { return 0; }

#else

// Looking up takes most of the time. A load per number is quicker than gathering them.

/// Pixels that each step converts before the next one begins.
constexpr std::int64_t block_pixels = 64;

/// A pixel's three values and a fourth one without a meaning.
using Pixel = hn::FixedTag<float, 4>;
using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;

/// What stands between the steps; it fits into the first cache.
struct alignas(64) Block {
  std::array<float, 4 * block_pixels> values;         ///< of each pixel four
  std::array<std::uint32_t, 4 * block_pixels> words;  ///< of `SrgbCodes`, for `values`
  std::array<std::uint8_t, 4 * block_pixels> codes;   ///< for `values`
  std::array<std::array<SamplePlace, block_pixels>, 3> places;
  std::array<std::uint32_t, 4 * block_pixels> corners;           ///< of a pixel's tetrahedron: numbers of nodes
  std::array<std::array<std::uint32_t, block_pixels>, 3> rests;  ///< between them
};

/// A value of each channel for as many pixels as a vector has lanes.
struct Values {
  hn::Vec<Floats> red, green, blue;
};

HWY_INLINE std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  hwy::CopyBytes<sizeof bits>(&value, &bits);
  return bits;
}

HWY_INLINE hn::Vec<Floats> Clamped(hn::Vec<Floats> value) {
  const Floats d;
  return hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, 1.0F));
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

/// What stands in a profile without a grid for the samples of each pixel.
HWY_INLINE void AddSamples(const ColourLookup& lookup, const std::uint8_t* HWY_RESTRICT rgb, std::int64_t pixels,
                           Block& block) {
  const Pixel d;
  const auto of = [&](std::size_t c, std::uint8_t sample) { return hn::Load(d, lookup.added[c][sample].data()); };
  float* to = block.values.data();
  for (std::int64_t i = 0; i < pixels; ++i, rgb += 3, to += 4) {
    hn::Store(hn::Add(hn::Add(of(0, rgb[0]), of(1, rgb[1])), of(2, rgb[2])), d, to);
  }
}

/// The corners of each pixel's tetrahedron in a grid: from the lowest one along the channel with the largest rest
/// first.
HWY_INLINE void FindCorners(const ColourLookup& lookup, const std::uint8_t* HWY_RESTRICT rgb, std::int64_t pixels,
                            Block& block) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) block.places[c][i] = lookup.places[c][rgb[3 * i + c]];
  }
  const Words d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < block_pixels; i += lanes) {
    hn::Vec<Words> node0, node1, node2, red, green, blue;
    hn::LoadInterleaved2(d, &block.places[0][i].node, node0, red);
    hn::LoadInterleaved2(d, &block.places[1][i].node, node1, green);
    hn::LoadInterleaved2(d, &block.places[2][i].node, node2, blue);
    // By the rest, as it is above the step. Of equal rests the order doesn't matter.
    const auto more = hn::Max(red, green), less = hn::Min(red, green);
    const auto between = hn::Max(less, blue), third = hn::Min(less, blue);
    const auto first = hn::Max(more, between), second = hn::Min(more, between);
    const auto step = hn::Set(d, 0xffff);
    const auto corner0 = hn::Add(hn::Add(node0, node1), node2);
    const auto corner1 = hn::Add(corner0, hn::And(first, step));
    const auto corner2 = hn::Add(corner1, hn::And(second, step));
    const auto corner3 = hn::Add(corner2, hn::And(third, step));
    hn::StoreInterleaved4(corner0, corner1, corner2, corner3, d, block.corners.data() + 4 * i);
    hn::Store(hn::ShiftRight<16>(first), d, block.rests[0].data() + i);
    hn::Store(hn::ShiftRight<16>(second), d, block.rests[1].data() + i);
    hn::Store(hn::ShiftRight<16>(third), d, block.rests[2].data() + i);
  }
}

/// As `value_of` for a grid.
HWY_INLINE void InterpolateGrid(const ColourLookup& lookup, std::int64_t pixels, Block& block) {
  const Pixel d;
  const hn::RebindToSigned<Pixel> di;
  const hn::RebindToUnsigned<Pixel> du;
  const hn::Rebind<std::uint16_t, Pixel> d16;
  const std::uint16_t* const nodes = lookup.nodes.data();
  for (std::int64_t i = 0; i < pixels; ++i) {
    const auto value = [&](std::int64_t corner) {
      return hn::PromoteTo(du, hn::Load(d16, nodes + 4 * std::size_t{block.corners[4 * i + corner]}));
    };
    const auto value0 = value(0), value1 = value(1), value2 = value(2), value3 = value(3);
    const auto rest = [&](std::size_t order) { return hn::Set(du, block.rests[order][i]); };
    const auto sum01 = hn::Add(hn::ShiftLeft<16>(value0), hn::Mul(hn::Sub(value1, value0), rest(0)));
    const auto sum23 = hn::Add(hn::Mul(hn::Sub(value2, value1), rest(1)), hn::Mul(hn::Sub(value3, value2), rest(2)));
    const auto sum = hn::Add(hn::Add(sum01, sum23), hn::Set(du, 0x8001));
    const auto whole = hn::ShiftRight<16>(hn::Sub(hn::Add(sum, hn::ShiftRight<16>(sum)), value0));
    const auto out = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, whole)), hn::Set(d, 1.0F / 65535.0F));
    hn::Store(out, d, block.values.data() + 4 * i);
  }
}

/// Whether all three curves are tables of 16 bits.
HWY_INLINE const ColourCurves* TablesOf16Bits(const ColourSteps& steps, std::size_t step) {
  const auto* const curves = std::get_if<ColourCurves>(&steps.then[step]);
  if (curves == nullptr) return nullptr;
  for (const ColourCurve& curve : curves->channels) {
    if (curve.values.size() != ColourCurve::of_16_bits) return nullptr;
  }
  return curves;
}

/// Such curves.
HWY_INLINE void LookUp(const ColourCurves& curves, Block& block) {
  const Floats d;
  const Words dw;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < 4 * block_pixels; i += lanes) {
    const auto value = Clamped(hn::Load(d, block.values.data() + i));
    const auto place = hn::NearestInt(hn::Mul(value, hn::Set(d, 65535.0F)));
    hn::Store(hn::BitCast(dw, place), dw, block.words.data() + i);
  }
  const std::array<const float*, 3> tables = {curves.channels[0].values.data(), curves.channels[1].values.data(),
                                              curves.channels[2].values.data()};
  for (std::int64_t i = 0; i < 4 * block_pixels; i += 4) {
    for (std::size_t c = 0; c < 3; ++c) block.values[i + c] = tables[c][block.words[i + c]];
  }
}

/// Steps `begin` to `end`, and behind the last one what leads to light.
HWY_INLINE void Compute(const ColourSteps& steps, std::size_t begin, std::size_t end, Block& block) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto connection = end == steps.then.size() ? steps.connection : ColourSteps::Connection::none;
  for (std::int64_t i = 0; i < block_pixels; i += lanes) {
    float* const at = block.values.data() + 4 * i;
    Values values;
    hn::Vec<Floats> fourth;
    hn::LoadInterleaved4(d, at, values.red, values.green, values.blue, fourth);
    for (std::size_t step = begin; step < end; ++step) {
      if (const auto* matrix = std::get_if<ColourMatrix>(&steps.then[step])) {
        values = ValueOf(*matrix, values);
      } else {
        const ColourCurves& curves = *std::get_if<ColourCurves>(&steps.then[step]);
        values = {ValueOf(curves.channels[0], values.red), ValueOf(curves.channels[1], values.green),
                  ValueOf(curves.channels[2], values.blue)};
      }
    }
    if (connection == ColourSteps::Connection::lab) values = XyzOfLab(values);
    if (connection == ColourSteps::Connection::xyz) {
      const auto factor = hn::Set(d, lab::xyz_range);
      values = {hn::Mul(values.red, factor), hn::Mul(values.green, factor), hn::Mul(values.blue, factor)};
    }
    if (connection != ColourSteps::Connection::none) values = ValueOf(steps.to_srgb, values);
    hn::StoreInterleaved4(values.red, values.green, values.blue, fourth, d, at);
  }
}

/// The steps behind the first tables and the grid: to light.
HWY_INLINE void FollowSteps(const ColourSteps& steps, Block& block) {
  const std::size_t count = steps.then.size();
  std::size_t begin = 0;
  do {
    const ColourCurves* curves = nullptr;
    while (begin < count && (curves = TablesOf16Bits(steps, begin)) != nullptr) {
      LookUp(*curves, block);
      ++begin;
    }
    std::size_t end = begin;
    while (end < count && TablesOf16Bits(steps, end) == nullptr) ++end;
    Compute(steps, begin, end, block);
    begin = end;
  } while (begin < count);
}

/// sRGB's codes of light.
HWY_INLINE void WriteCodes(Block& block, std::uint8_t* HWY_RESTRICT rgb, std::int64_t pixels) {
  const Floats d;
  const Words dw;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < 4 * block_pixels; i += lanes) {
    const auto light = hn::Load(d, block.values.data() + i);
    hn::Store(hn::Min(hn::Max(light, hn::Set(d, SrgbCodes::least)), hn::Set(d, 1.0F)), d, block.values.data() + i);
  }
  const std::uint32_t* const words = srgb_codes().words.data();
  const float* light = block.values.data();
  std::uint32_t* found = block.words.data();
  for (std::int64_t i = 0; i < block_pixels; ++i, light += 4, found += 4) {
    for (std::size_t c = 0; c < 3; ++c) found[c] = words[(BitsOf(light[c]) >> 16) - SrgbCodes::first_interval];
  }
  const hn::Rebind<std::uint8_t, Floats> d8;
  const Ints di;
  for (std::int64_t i = 0; i < 4 * block_pixels; i += lanes) {
    const auto bits = hn::BitCast(dw, hn::Load(d, block.values.data() + i));
    const auto codes = hn::ShiftRight<24>(hn::Add(bits, hn::Load(dw, block.words.data() + i)));
    hn::Store(hn::DemoteTo(d8, hn::BitCast(di, codes)), d8, block.codes.data() + i);
  }
  // Four pixels at a time, of which a vector has room for a third more.
  const hn::FixedTag<std::uint8_t, 16> d16;
  alignas(16) static constexpr std::array<std::uint8_t, 16> places = {0,  1,  2,  4,  5,   6,   8,   9,
                                                                      10, 12, 13, 14, 128, 128, 128, 128};
  const auto of_three = hn::Load(d16, places.data());
  std::int64_t i = 0;
  for (; i + 6 <= pixels; i += 4) {
    hn::StoreU(hn::TableLookupBytesOr0(hn::Load(d16, block.codes.data() + 4 * i), of_three), d16, rgb + 3 * i);
  }
  for (; i < pixels; ++i) std::copy_n(block.codes.data() + 4 * i, 3, rgb + 3 * i);
}

/// All pixels; returns how many that were.
std::int64_t ConvertColours(const ColourSteps& steps, const ColourLookup& lookup, std::uint8_t* rgb,
                            std::int64_t pixels) {
  Block block{};
  for (std::int64_t i = 0; i < pixels; i += block_pixels) {
    std::uint8_t* const at = rgb + 3 * i;
    const std::int64_t count = std::min(block_pixels, pixels - i);
    if (lookup.nodes.empty()) {
      AddSamples(lookup, at, count, block);
    } else {
      FindCorners(lookup, at, count, block);
      InterpolateGrid(lookup, count, block);
    }
    if (!lookup.ends) FollowSteps(steps, block);
    WriteCodes(block, at, count);
  }
  return pixels;
}

#endif

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

/// Little CMS' interpolation of 16 bits: the grid's values have no more.
Values value_of(const ColourGrid& grid, const Values& v) noexcept {
  std::array<std::int64_t, 3> rest{};
  std::array<std::size_t, 3> step{};
  std::size_t corner = 0;
  std::size_t stride = 3;
  for (std::size_t c = 3; c-- > 0;) {
    const GridPlace place = place_in_grid(v[c], grid.nodes[c]);
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
  const auto& thresholds = srgb_codes().thresholds;
  return static_cast<std::uint8_t>(std::ranges::upper_bound(thresholds, clamped(y)) - thresholds.begin());
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

ColourConversion::ColourConversion(std::span<const std::byte> profile)
    : steps_(read_colour_steps(profile)), lookup_(steps_) {}

void ColourConversion::apply(std::uint8_t* rgb, std::int64_t pixels) const noexcept {
  const std::int64_t done = HWY_DYNAMIC_DISPATCH(ConvertColours)(steps_, lookup_, rgb, pixels);
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
