// Slides whose colours are converted from their ICC profile to sRGB.

#include <doctest/doctest.h>

#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "colour/made_profiles.hpp"
#include "colour/profile_head.hpp"
#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/luminance.hpp"
#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Pixels = std::vector<std::uint8_t>;

constexpr std::uint16_t icc_tag = 34675;
constexpr std::uint64_t rgb_tag = 2, ycbcr_tag = 6, black_is_zero = 1;
constexpr std::uint64_t no_compression = 1, jpeg = 7, jpeg2000 = 33005;

struct Kind {
  const char* name;
  std::uint64_t compression;
  std::uint64_t photometric;
};

/// Two tiles beside each other, of which the second is only half inside.
std::filesystem::path write_slide(const TemporaryFolder& folder, const Kind& kind,
                                  const std::vector<std::byte>& profile, int samples = 3) {
  TestDirectory directory = tiled_directory(96, 48, 64, 48, samples);
  directory.set_short(259, kind.compression).set_short(262, kind.photometric);
  for (const unsigned seed : {1U, 2U}) {
    const Picture picture = make_picture(64, 48, samples, seed);
    if (kind.compression == jpeg) directory.tiles.push_back(encode_jpeg(picture));
    if (kind.compression == jpeg2000) directory.tiles.push_back(encode_jpeg2000(picture));
    if (kind.compression == no_compression) {
      const auto* bytes = reinterpret_cast<const std::byte*>(picture.data.data());
      directory.tiles.emplace_back(bytes, bytes + picture.data.size());
    }
  }
  if (!profile.empty()) directory.set_bytes(icc_tag, profile);
  TestTiff tiff;
  tiff.directories = {std::move(directory)};
  return folder.write("slide.tif", tiff.bytes());
}

Pixels converted(Pixels pixels, const std::vector<std::byte>& profile) {
  const ColourSteps steps = read_colour_steps(profile);
  for (std::size_t i = 0; i + 2 < pixels.size(); i += 3) convert_colour(steps, pixels.data() + i);
  return pixels;
}

Pixels luminance_of(const Pixels& rgb) {
  Pixels out;
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) out.push_back(luminance(rgb[i], rgb[i + 1], rgb[i + 2]));
  return out;
}

}  // namespace

TEST_CASE("tiles of every codec are converted, and luminance is that of converted colours") {
  for (const Kind& kind :
       {Kind{"jpeg", jpeg, ycbcr_tag}, Kind{"jpeg2000", jpeg2000, rgb_tag}, Kind{"none", no_compression, rgb_tag}}) {
    CAPTURE(kind.name);
    for (const MadeProfile& profile : made_profiles()) {
      CAPTURE(profile.name);
      const TemporaryFolder folder;
      const auto path = write_slide(folder, kind, profile.bytes);
      const auto slide = Slide::open(path, {.to_srgb = true});
      CHECK(slide->info().is_srgb);
      CHECK(slide->info().warnings.empty());
      const auto as_it_is = Slide::open(path);
      CHECK_FALSE(as_it_is->info().is_srgb);
      const Pixels expected = converted(read_level_rgb(*as_it_is), profile.bytes);
      CHECK(read_level_rgb(*slide) == expected);
      CHECK(read_level(*slide) == luminance_of(expected));

      // Both at once, of a rectangle inside a tile.
      std::vector<std::byte> bytes(slide->tile(0, 1).length);
      slide->read(slide->tile(0, 1).offset, bytes);
      Pixels rgb(20 * 10 * 3);
      Pixels grey(20 * 10);
      TileDecoder decoder;
      decoder.decode_both(*slide, 0, 1, bytes, 5, 7, {rgb.data(), 60, 20, 10, rgb_format},
                          {grey.data(), 20, 20, 10, luminance_format});
      Pixels part;
      for (int y = 7; y < 17; ++y) {
        const auto row = expected.begin() + 3 * (y * 96 + 64 + 5);
        part.insert(part.end(), row, row + 60);
      }
      CHECK(rgb == part);
      CHECK(grey == luminance_of(part));
    }
  }
}

TEST_CASE("for browsers a line says what is converted, and sRGB's slides stay") {
  for (const MadeProfile& profile : made_profiles()) {
    CAPTURE(profile.name);
    const TemporaryFolder folder;
    const auto path = write_slide(folder, {"none", no_compression, rgb_tag}, profile.bytes);
    const auto slide = Slide::open(path, {.to_srgb = true, .srgb_for_browsers = true});
    const bool other = !ColourConversion(profile.bytes).keeps_colours();
    CHECK(slide->info().is_srgb == other);
    CHECK(slide->info().notes.size() == (other ? 1 : 0));
    CHECK(slide->info().warnings.empty());
    CHECK(read_level_rgb(*slide) == read_level_rgb(*Slide::open(path, {.to_srgb = other})));
  }
  const TemporaryFolder folder;
  const auto path = write_slide(folder, {"none", no_compression, rgb_tag}, {});
  CHECK(Slide::open(path, {.to_srgb = true, .srgb_for_browsers = true})->info().warnings.empty());
}

TEST_CASE("a slide that can't be converted stays as it is, and says so once") {
  const std::string begins = "its colours aren't converted to sRGB: ";
  const auto check_stays = [&](const Kind& kind, const std::vector<std::byte>& profile, int samples,
                               const std::string& why) {
    CAPTURE(why);
    const TemporaryFolder folder;
    const auto path = write_slide(folder, kind, profile, samples);
    const auto slide = Slide::open(path, {.to_srgb = true});
    CHECK_FALSE(slide->info().is_srgb);
    CHECK(slide->info().warnings == std::vector<std::string>{begins + why});
    CHECK(read_level_rgb(*slide) == read_level_rgb(*Slide::open(path)));
  };
  const Kind colour = {"none", no_compression, rgb_tag};
  const std::vector<std::byte> sound = made_profiles().front().bytes;
  check_stays(colour, {}, 3, "it has no ICC profile");
  check_stays({"none", no_compression, black_is_zero}, sound, 1, "it is grey");
  check_stays(colour, {sound.begin(), sound.begin() + 200}, 3, "the ICC profile of 200 bytes is damaged");
  std::vector<std::byte> printer = sound;
  for (std::size_t i = 0; i < 4; ++i) printer[12 + i] = static_cast<std::byte>("prtr"[i]);
  check_stays(colour, printer, 3, "the ICC profile is neither a scanner's, a display's nor a colour space's");
}

TEST_CASE("a profile's table takes memory for decoding while it is read, and slides share it") {
  const TemporaryFolder folder, others;
  const Kind kind = {"none", no_compression, rgb_tag};
  const auto profile = with_table(4.3, true, false, 33, cmsSigAToB0Tag);
  const auto path = write_slide(folder, kind, profile);
  OpenOptions options;
  options.to_srgb = true;
  options.decode_memory = std::make_shared<DecodeMemory>(reading_bytes(profile));
  const auto slide = Slide::open(path, options);
  CHECK(slide->info().is_srgb);
  CHECK(profile_reading_bytes(*slide) == reading_bytes(profile));
  // Given back.
  const auto second = Slide::open(write_slide(others, kind, profile), options);
  CHECK(conversion_of(*second) == conversion_of(*slide));
  CHECK(table_bytes(*slide) >= table_bytes(*Slide::open(path)) + 3 * 33 * 33 * 33 * 4);
  CHECK(opening_bytes(*slide) >= 2 * profile.size());

  options.decode_memory = std::make_shared<DecodeMemory>(reading_bytes(profile) - 1);
  try {
    Slide::open(path, options);
    FAIL("was opened");
  } catch (const SlideError& error) {
    CHECK(std::string(error.what()) ==
          path.string() +
              ": the table of its ICC profile takes 2 MiB to read, and decoding may take 2 MiB; raise "
              "pipeline.memory_mib to " +
              std::to_string((4 * reading_bytes(profile) + (1U << 20U) - 1) >> 20U) +
              ", or set input.colour = \"file\"");
  }
  options.give_up = [] { return true; };
  options.decode_memory = std::make_shared<DecodeMemory>(reading_bytes(profile));
  const DecodeMemory::Lease all = options.decode_memory->take(reading_bytes(profile), {});
  CHECK_THROWS_AS(Slide::open(path, options), StoppedError);
}

TEST_CASE("a forecast has the tables of profiles, and says which slide's doesn't fit") {
  const TemporaryFolder folder;
  const auto profile = with_table(2.1, false, false, 75, cmsSigAToB0Tag);
  const std::string path = write_slide(folder, {"none", no_compression, rgb_tag}, profile).string();
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 1;
  config.analysis.window = 32;
  config.analysis.stride = 16;
  const RunForecast as_it_is = forecast_run(config, {path});
  REQUIRE(as_it_is.slides.front().error.empty());
  config.input.colour = InputColour::srgb;
  const RunForecast forecast = forecast_run(config, {path});
  REQUIRE(forecast.slides.front().error.empty());
  CHECK(forecast.tables_bytes >= as_it_is.tables_bytes + 3 * 75 * 75 * 75 * 4);
  CHECK(forecast.opening_bytes >= 2 * profile.size());
  CHECK(forecast.touched_bytes() >= forecast.tables_bytes + reading_bytes(profile));
  config.pipeline.memory_mib = 16;
  CHECK(forecast_run(config, {path}).slides.front().error.starts_with("the table of its ICC profile takes 11 MiB"));
}
