#include "colour/colour_conversion.hpp"

#include <doctest/doctest.h>
#include <lcms2_plugin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "colour/colour_bound.hpp"
#include "colour/made_profiles.hpp"
#include "colour/profile_head.hpp"
#include "colour/profile_memory.hpp"
#include "support/vector_units.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::string refusal(const std::vector<std::byte>& profile) {
  try {
    read_colour_steps(profile);
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "none";
}

std::vector<std::byte> with_text_at(std::vector<std::byte> profile, std::size_t at, const char* text) {
  std::memcpy(profile.data() + at, text, 4);
  return profile;
}

}  // namespace

TEST_CASE("every vector unit converts as the definition does, whatever the number of pixels") {
#ifdef SLIDESTREAM_SANITIZED
  constexpr int many = 20'000;
#else
  constexpr int many = 500'000;
#endif
  std::mt19937_64 random(7);
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const ColourConversion conversion(profile.bytes);
    // So many that a product rounded otherwise shows: one colour of a million at least becomes another one then.
    for (const std::int64_t pixels : {0, 1, 2, 7, 16, 63, 64, 65, 1000, many}) {
      std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * pixels) + 8);
      for (std::uint8_t& sample : rgb) sample = static_cast<std::uint8_t>(random());
      std::vector<std::uint8_t> expected = rgb;
      for (std::int64_t i = 0; i < pixels; ++i) convert_colour(conversion.steps(), expected.data() + 3 * i);
      for (const std::int64_t unit : vector_units()) {
        const ForcedTarget forced(unit);
        CAPTURE(unit);
        std::vector<std::uint8_t> converted = rgb;
        conversion.apply(converted.data(), pixels);
        CHECK(converted == expected);
      }
    }
  }
}

TEST_CASE("a sixth of the values of each channel is as Little CMS has it") {
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const Difference found = difference(profile.bytes, 6);
    CHECK(found.most <= 1);
    CHECK(found.differ <= found.colours / (profile.has_table ? 1'000 : 2'000));
  }
}

TEST_CASE("sRGB stays as it is, and white stays white") {
  const ColourConversion srgb(saved(cmsCreate_sRGBProfile()));
  for (int value = 0; value < 256; ++value) {
    std::array<std::uint8_t, 6> pixels{};
    pixels.fill(static_cast<std::uint8_t>(value));
    pixels[4] = 17;
    const auto before = pixels;
    srgb.apply(pixels.data(), 2);
    CHECK(pixels == before);
  }
  for (const MadeProfile& profile : made_profiles()) {
    if (profile.has_table) continue;
    std::array<std::uint8_t, 3> white = {255, 255, 255};
    ColourConversion(profile.bytes).apply(white.data(), 1);
    CHECK(white == std::array<std::uint8_t, 3>{255, 255, 255});
  }
}

TEST_CASE("sRGB's own profiles keep colours, others don't") {
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    CHECK(ColourConversion(profile.bytes).keeps_colours() == (std::string_view(profile.name) == "sRGB"));
  }
}

TEST_CASE("what each code of linear light is follows from IEC 61966-2-1") {
  const auto& thresholds = srgb_codes().thresholds;
  for (int i = 0; i <= 1'000'000; ++i) {
    const float y = static_cast<float>(i) / 1'000'000.0F;
    const double encoded = y <= 0.0031308 ? 12.92 * y : 1.055 * std::pow(static_cast<double>(y), 1.0 / 2.4) - 0.055;
    const double exact = 255.0 * encoded + 0.5;
    if (std::abs(exact - std::round(exact)) < 1e-5) continue;
    REQUIRE(std::ranges::upper_bound(thresholds, y) - thresholds.begin() == static_cast<int>(std::floor(exact)));
  }
}

TEST_CASE("the words of intervals give the codes that the thresholds give") {
  const SrgbCodes& codes = srgb_codes();
  std::int64_t tried = 0;
  const auto check = [&](std::uint32_t bits) {
    const auto light = std::bit_cast<float>(bits);
    if (light < SrgbCodes::least || light > 1.0F) return;
    const std::uint32_t word = codes.words.at((bits >> 16) - SrgbCodes::first_interval);
    const std::uint32_t code = (word + bits) >> 24;
    REQUIRE(code == std::ranges::upper_bound(codes.thresholds, light) - codes.thresholds.begin());
    ++tried;
  };
  for (std::uint32_t i = 0; i < SrgbCodes::intervals; ++i) {
    const std::uint32_t begin = (SrgbCodes::first_interval + i) << 16;
    for (std::uint32_t within = 0; within < 0x10000; within += 0xfff) check(begin + within);
  }
  for (std::size_t code = 0; code < 255; ++code) {
    const auto bits = std::bit_cast<std::uint32_t>(codes.thresholds[code]);
    for (std::uint32_t near = bits - 3; near != bits + 3; ++near) check(near);
  }
  CHECK(tried > 25'000);
  CHECK(SrgbCodes::least < codes.thresholds[0]);
}

TEST_CASE("profiles that can't be used are refused in one line") {
  const std::vector<std::byte> sound = made_profiles().front().bytes;
  CHECK(refusal({}) == "the ICC profile has 0 bytes");
  CHECK(refusal(std::vector<std::byte>(300)) == "the ICC profile is damaged");
  CHECK(refusal(with_text_at(sound, 12, "prtr")) ==
        "the ICC profile is neither a scanner's, a display's nor a colour space's");
  CHECK(refusal(with_text_at(sound, 16, "GRAY")) == "the ICC profile isn't of RGB");
  CHECK(refusal(with_text_at(sound, 20, "Luv ")) == "the ICC profile leads neither to XYZ nor to Lab");
  CHECK(refusal(with_text_at(sound, 20, "Lab ")) == "the ICC profile has a matrix to Lab");
  CHECK(refusal({sound.begin(), sound.begin() + 200}) != "none");
}

TEST_CASE("damaged profiles are refused or give colours") {
  std::mt19937_64 random(3);
  int refused = 0;
  for (const MadeProfile& profile : made_profiles()) {
    for (int turn = 0; turn < test::wide_or_few(200, 40); ++turn) {
      std::vector<std::byte> bytes = profile.bytes;
      // Most of what is told stands at the beginning.
      const std::size_t reach = turn % 2 == 0 ? std::min<std::size_t>(bytes.size(), 600) : bytes.size();
      for (int change = 0; change < 4; ++change) bytes[random() % reach] = static_cast<std::byte>(random());
      if (turn % 5 == 0) bytes.resize(128 + random() % (bytes.size() - 128));
      try {
        std::array<std::uint8_t, 51> pixels{};
        for (std::uint8_t& sample : pixels) sample = static_cast<std::uint8_t>(random());
        ColourConversion(bytes).apply(pixels.data(), 17);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > test::wide_or_few(100, 20));
}

TEST_CASE("a profile's own name is one line") {
  CHECK(profile_name(saved(cmsCreate_sRGBProfile())) == "sRGB built-in");
}

TEST_CASE("the head of a profile says how much memory its table takes") {
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const ColourConversion conversion(profile.bytes);
    const std::uint64_t numbers = conversion.steps().grid.values.size();
    CHECK(table_numbers(profile.bytes) == numbers);
    CHECK((reading_bytes(profile.bytes) > 0) == profile.has_table);
    CHECK(conversion.bytes() >= sizeof conversion + 4 * numbers);
    if (profile.has_table) CHECK(reading_bytes(profile.bytes) >= profile.bytes.size() + 6 * numbers);
  }
}

TEST_CASE("a table that the profile is too short for is refused before there is memory for it") {
  for (const double version : {2.1, 4.3}) {
    std::vector<std::byte> profile = with_table(version, true, true, 9, cmsSigAToB0Tag);
    CHECK(table_numbers(profile) == 3 * 9 * 9 * 9);
    const char* const type = version < 4.0 ? "mft1" : "mAB ";
    const auto* const text = reinterpret_cast<const std::byte*>(type);
    // Behind the head: in the list of tags stand names of tags alone.
    const auto at = std::search(profile.begin() + 132, profile.end(), text, text + 4);
    REQUIRE(at != profile.end());
    const auto sides = version < 4.0 ? at + 10 : at + std::to_integer<int>(at[27]) + 256 * std::to_integer<int>(at[26]);
    std::fill_n(sides, version < 4.0 ? 1 : 3, std::byte{255});
    CHECK(table_numbers(profile) == 0);
    CHECK(most_library_bytes(profile) < std::size_t{9} << 20);
    CHECK(refusal(profile) == "the ICC profile has a table that can't be read");
    profile.resize(140);
    CHECK(table_numbers(profile) == 0);
  }
}

TEST_CASE("Little CMS gets no more memory than its bound, and gives all back") {
  ProfileMemory memory(std::uint64_t{1} << 20);
  void* const block = _cmsMalloc(memory.context(), 1U << 19);
  REQUIRE(block != nullptr);
  CHECK(_cmsMalloc(memory.context(), 1U << 19) == nullptr);
  _cmsFree(memory.context(), block);
  void* const other = _cmsMalloc(memory.context(), 1U << 19);
  CHECK(other != nullptr);
  void* const smaller = _cmsRealloc(memory.context(), other, 100);
  REQUIRE(smaller != nullptr);
  _cmsFree(memory.context(), smaller);
}

TEST_CASE("a profile whose description takes much memory has no name") {
  const auto described = [](std::size_t letters) {
    cmsHPROFILE profile = cmsCreate_sRGBProfile();
    cmsMLU* const text = cmsMLUalloc(nullptr, 1);
    cmsMLUsetASCII(text, "en", "US", std::string(letters, 'x').c_str());
    cmsWriteTag(profile, cmsSigProfileDescriptionTag, text);
    cmsMLUfree(text);
    return saved(profile);
  };
  CHECK(profile_name(described(100)) == std::string(100, 'x'));
  CHECK(profile_name(described(std::size_t{1} << 20)).empty());
}
