#include "sink/srgb_profile.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace slidestream {

namespace {

namespace icc {

using Bytes = std::vector<std::byte>;

void append_icc(Bytes& to, std::string_view text) {
  for (const char each : text) to.push_back(static_cast<std::byte>(each));
}

/// The highest byte first.
void append_icc(Bytes& to, std::uint32_t number, int bytes = 4) {
  for (int i = bytes; i-- > 0;) to.push_back(static_cast<std::byte>(number >> 8 * i));
}

/// s15Fixed16Number.
void append_fixed(Bytes& to, double number) {
  append_icc(to, static_cast<std::uint32_t>(static_cast<std::int32_t>(std::lround(number * 65536.0))));
}

Bytes numbers(std::string_view type, std::initializer_list<double> values) {
  Bytes made;
  append_icc(made, type);
  append_icc(made, 0);
  for (const double value : values) append_fixed(made, value);
  return made;
}

/// multiLocalizedUnicodeType with one text of ASCII.
Bytes text(std::string_view value) {
  constexpr std::uint32_t head = 28;
  Bytes made;
  append_icc(made, "mluc");
  for (const std::uint32_t number : {0U, 1U, 12U}) append_icc(made, number);
  append_icc(made, "enUS");
  append_icc(made, static_cast<std::uint32_t>(2 * value.size()));
  append_icc(made, head);
  for (const char each : value) append_icc(made, static_cast<unsigned char>(each), 2);
  return made;
}

/// parametricCurveType, function 3: the curve of IEC 61966-2-1.
Bytes curve() {
  Bytes made;
  append_icc(made, "para");
  append_icc(made, 0);
  append_icc(made, 3, 2);
  append_icc(made, 0, 2);
  for (const double value : {2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045}) append_fixed(made, value);
  return made;
}

Bytes make_profile() {
  constexpr std::size_t header = 128;
  // The primaries of sRGB and its white D65, adapted to D50 by Bradford's matrix, which is `chad`.
  const std::vector<std::pair<std::string_view, Bytes>> tags = {
      {"desc", text("sRGB")},
      {"cprt", text("No copyright, use freely")},
      {"wtpt", numbers("XYZ ", {0.9642, 1.0, 0.8249})},
      {"chad",
       numbers("sf32", {1.047882, 0.022919, -0.050201, 0.029587, 0.990479, -0.017059, -0.009232, 0.015076, 0.751678})},
      {"rXYZ", numbers("XYZ ", {0.436066, 0.222488, 0.013916})},
      {"gXYZ", numbers("XYZ ", {0.385147, 0.716873, 0.097076})},
      {"bXYZ", numbers("XYZ ", {0.143066, 0.060608, 0.714096})},
      {"rTRC", curve()},
      {"gTRC", curve()},
      {"bTRC", curve()},
  };
  Bytes table;
  Bytes data;
  append_icc(table, static_cast<std::uint32_t>(tags.size()));
  const std::size_t data_at = header + 4 + 12 * tags.size();
  for (const auto& [name, value] : tags) {
    append_icc(table, name);
    append_icc(table, static_cast<std::uint32_t>(data_at + data.size()));
    append_icc(table, static_cast<std::uint32_t>(value.size()));
    data.insert(data.end(), value.begin(), value.end());
    data.resize((data.size() + 3) / 4 * 4);
  }
  Bytes profile;
  append_icc(profile, static_cast<std::uint32_t>(data_at + data.size()));
  append_icc(profile, 0);
  append_icc(profile, 0x04300000);
  append_icc(profile, "mntrRGB XYZ ");
  for (const std::uint32_t part : {2000U, 1U, 1U, 0U, 0U, 0U}) append_icc(profile, part, 2);
  append_icc(profile, "acsp");
  profile.resize(68);  // no platform, maker or model; perceptual
  for (const double value : {0.9642, 1.0, 0.8249}) append_fixed(profile, value);
  profile.resize(header);
  profile.insert(profile.end(), table.begin(), table.end());
  profile.insert(profile.end(), data.begin(), data.end());
  return profile;
}

}  // namespace icc

}  // namespace

std::span<const std::byte> srgb_profile() {
  static const icc::Bytes profile = icc::make_profile();
  return profile;
}

}  // namespace slidestream
