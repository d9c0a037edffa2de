// Tiles that aren't what their slide says: whoever decodes, the CPU or a GPU, they are refused alike.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "planning/device_sizing.hpp"
#include "slide/test_images.hpp"
#include "support/coded_slides.hpp"
#include "support/gpu.hpp"
#include "support/made_up_gpus.hpp"
#include "support/pipeline_runs.hpp"
#include "support/reference.hpp"

using namespace slidestream;
using test::Bytes;
using test::JpegOptions;
using test::run;

namespace {

constexpr int tile_size = 64;
constexpr int columns = 7;
constexpr int rows = 9;
constexpr int bad = 12;

Bytes jpeg(int samples, JpegOptions::Coding coding, unsigned seed, int width = tile_size, int height = tile_size) {
  return test::encode_jpeg(test::make_picture(width, height, samples, seed), {.coding = coding});
}

/// A slide that ends inside its last tiles. Every fifth tile, twelve in all, is `odd`.
std::string write_slide(const test::TemporaryFolder& folder, const std::string& name, std::uint64_t photometric,
                        const Bytes& odd) {
  const int samples = photometric < 2 ? 1 : 3;
  const auto coding = photometric == 2   ? JpegOptions::Coding::rgb
                      : photometric == 6 ? JpegOptions::Coding::ycbcr
                                         : JpegOptions::Coding::grey;
  test::TestTiff tiff;
  tiff.directories.push_back(
      test::tiled_directory(columns * tile_size - 10, rows * tile_size - 20, tile_size, tile_size, samples));
  tiff.directories[0].set_short(259, 7).set_short(262, photometric);
  for (int i = 0; i < columns * rows; ++i) {
    const bool is_odd = i % 5 == 2 && i / 5 < bad;
    tiff.directories[0].tiles.push_back(is_odd ? odd : jpeg(samples, coding, static_cast<unsigned>(i)));
  }
  return folder.write(name + ".tif", tiff.bytes()).string();
}

/// The same verdict, the same counts, and what results may differ by.
void check_alike(const SlideResult& gpu, const SlideResult& cpu) {
  CHECK(gpu.done == cpu.done);
  CHECK(gpu.error == cpu.error);
  CHECK(gpu.bad_tiles == cpu.bad_tiles);
  CHECK(gpu.missing_tiles == cpu.missing_tiles);
  if (!gpu.done || !cpu.done) return;
  CHECK(gpu.backend == "cuda");
  test::Tolerance tolerance;
  tolerance.moment = 1e-4;
  CHECK(test::difference(gpu.sums, gpu.map, test::as_reference(cpu.sums, cpu.map), tolerance) == "");
}

/// Runs on both, over cuts that want tiles in parts. `flagged` tiles the GPU leaves to the CPU, and vouches for all
/// others.
void check_slide(const std::string& slide, std::int64_t expected_bad, const std::string& cause, std::uint64_t flagged) {
  for (const BadTilePolicy policy : {BadTilePolicy::fail, BadTilePolicy::white}) {
    if (policy == BadTilePolicy::white && expected_bad == 0) continue;  // would be the same
    Config config = test::config_for(Backend::cpu);
    config.decode.on_bad_tile = policy;
    const RunResult cpu = run(config, {slide});
    REQUIRE(cpu.slides.size() == 1);
    CAPTURE(cpu.slides[0].error);
    if (policy == BadTilePolicy::fail && expected_bad > 0) {
      CHECK_FALSE(cpu.slides[0].done);
      CHECK(cpu.slides[0].error.find("tile 2 (column 2, row 0) is bad: ") != std::string::npos);
      CHECK(cpu.slides[0].error.find(cause) != std::string::npos);
    } else {
      CHECK(cpu.slides[0].done);
      CHECK(cpu.slides[0].bad_tiles == expected_bad);
    }
    for (const int strip_height : {48, 1024}) {
      for (const SplitSlides split : {SplitSlides::never, SplitSlides::always}) {
        // Made-up GPUs decode on the host, which takes long: with them each height has one of the two.
        const bool is_usual = (strip_height == 48) == (split == SplitSlides::always);
        if (!is_usual && test::made_up_gpus() && !test::is_wide()) continue;
        CAPTURE(strip_height);
        config = test::config_for(Backend::cuda);
        config.decode.on_bad_tile = policy;
        config.pipeline.strip_height = strip_height;
        config.pipeline.batch_strips = 1;
        config.gpu.split_slides = split;
        const RunResult gpu = run(config, {slide});
        REQUIRE(gpu.slides.size() == 1);
        check_alike(gpu.slides[0], cpu.slides[0]);
        const bool whole = strip_height == 1024 && split == SplitSlides::never;
        if (whole && gpu.slides[0].done) CHECK(gpu.slides[0].gpu_fallback_tiles == flagged);
      }
    }
  }
}

using Coding = JpegOptions::Coding;

}  // namespace

TEST_CASE("tiles whose components don't fit the slide's colour are bad on the GPU as on the CPU") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  check_slide(write_slide(folder, "grey", 1, jpeg(3, Coding::ycbcr, 99)), bad,
              "the JPEG frame has 3 components, which don't fit the slide's grey", bad);
  check_slide(write_slide(folder, "white-is-zero", 0, jpeg(3, Coding::rgb, 99)), bad,
              "which don't fit the slide's grey", bad);
  check_slide(write_slide(folder, "rgb", 2, jpeg(2, Coding::unknown, 99)), bad, "which don't fit the slide's rgb", bad);
  check_slide(write_slide(folder, "four", 2, jpeg(4, Coding::unknown, 99)), bad,
              "the JPEG frame has 4 components, and SamplesPerPixel says 3", bad);
}

TEST_CASE("tiles that the GPU refuses are read again, and counted, whatever the size of its ring") {
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  const Bytes odd = test::encode_jpeg(test::make_picture(tile_size, tile_size, 3, 99),
                                      {.coding = Coding::ycbcr, .progressive = true});
  const std::string slide = write_slide(folder, "progressive", 6, odd);
  const auto bytes_read = [](const RunResult& result) {
    return std::ranges::find(result.stages, "read", &StageReport::name)->bytes;
  };
  const RunResult cpu = run(test::config_for(Backend::cpu), {slide});
  REQUIRE(cpu.slides[0].done);
  for (const int mib : {0, 1}) {
    Config config = test::config_for(Backend::cuda);
    config.gpu.staging_mib = mib;
    config.gpu.split_slides = SplitSlides::never;
    const RunResult gpu = run(config, {slide});
    check_alike(gpu.slides[0], cpu.slides[0]);
    CHECK(gpu.slides[0].gpu_fallback_tiles == bad);
    CHECK(bytes_read(gpu) == bytes_read(cpu) + bad * odd.size());
  }
}

TEST_CASE("tiles of another size are bad on the GPU as on the CPU, whichever rows are wanted") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  for (const auto& [width, height] : {std::pair(72, 64), {64, 72}, {56, 64}, {64, 56}, {128, 128}}) {
    const std::string size = std::to_string(width) + " x " + std::to_string(height);
    CAPTURE(size);
    // One of the twelve stands in the last column, another in the last row: there the part inside is enough.
    const int refused = width < tile_size || height < tile_size ? bad - 1 : bad;
    check_slide(write_slide(folder, "ycbcr", 6, jpeg(3, Coding::ycbcr, 99, width, height)), refused,
                "decodes to " + size, static_cast<std::uint64_t>(refused));
  }
}

TEST_CASE("JPEG 2000 is decoded on the GPU, in waves, but for what only the CPU takes") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  for (const test::TileCoding coding : {test::TileCoding::jpeg2000_rgb, test::TileCoding::jpeg2000_ycbcr}) {
    test::CodedSlide slide;
    slide.coding = coding;
    slide.width = columns * tile_size - 10;
    slide.height = rows * tile_size - 20;
    slide.tile_width = slide.tile_height = tile_size;
    slide.seed = 5;
    slide.missing_tiles = 3;
    const std::string whole = folder / "whole.tif";
    test::write_coded_slide(whole, slide);
    check_slide(whole, 0, "", 0);
  }
  // 63 tiles, of which a wave takes 32.
  const auto write = [&folder](const std::string& name, const test::Jpeg2000Options& usual,
                               const test::Jpeg2000Options& odd) {
    test::TestTiff tiff;
    tiff.directories.push_back(test::tiled_directory(columns * tile_size, rows * tile_size, tile_size, tile_size, 3));
    tiff.directories[0].set_short(259, 33005).set_short(262, 2);
    for (int i = 0; i < columns * rows; ++i) {
      tiff.directories[0].tiles.push_back(
          test::encode_jpeg2000(test::make_picture(tile_size, tile_size, 3, static_cast<unsigned>(i)),
                                i % 5 == 2 && i / 5 < bad ? odd : usual));
    }
    return folder.write(name + ".tif", tiff.bytes()).string();
  };
  // Tiles in between whose code-blocks are of another style.
  check_slide(write("some", {}, {.block_style = 1}), 0, "", bad);
  // Luminance of some is their first component, of others what three come to.
  check_slide(write("lossless", {.irreversible = false}, {}), 0, "", 0);
}

TEST_CASE("slides of JPEG and of JPEG 2000 go through the same slots by turns (long)") {
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  constexpr test::TileCoding codings[] = {test::TileCoding::jpeg2000_rgb, test::TileCoding::jpeg_420,
                                          test::TileCoding::jpeg_grey, test::TileCoding::jpeg2000_ycbcr,
                                          test::TileCoding::rgb};
  for (unsigned i = 0; i < 15; ++i) {
    test::CodedSlide slide;
    slide.coding = codings[i % std::size(codings)];
    slide.width = slide.height = 300;
    slide.seed = i;
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_coded_slide(slides.back(), slide);
  }
  const RunResult cpu = run(test::config_for(Backend::cpu), slides);
  Config config = test::config_for(Backend::cuda);
  for (const int depth : {1, 3}) {
    config.pipeline.queue_depth = depth;
    const RunResult gpu = run(config, slides);
    REQUIRE(gpu.slides.size() == slides.size());
    for (std::size_t i = 0; i < slides.size(); ++i) {
      CAPTURE(i);
      check_alike(gpu.slides[i], cpu.slides[i]);
      CHECK(gpu.slides[i].gpu_fallback_tiles == 0);
    }
  }
}

TEST_CASE("images of JPEG 2000 slides are what they are on the CPU, to the byte, of tiles that the GPU decoded") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  constexpr test::TileCoding codings[] = {test::TileCoding::jpeg2000_rgb, test::TileCoding::jpeg2000_ycbcr,
                                          test::TileCoding::jpeg2000_lossless, test::TileCoding::jpeg_420};
  for (unsigned i = 0; i < std::size(codings); ++i) {
    test::CodedSlide slide;
    slide.coding = codings[i];
    slide.width = slide.height = 400;
    slide.tile_width = 64 + 32 * static_cast<int>(i % 3);
    slide.seed = i;
    slide.missing_tiles = 2;
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_coded_slide(slides.back(), slide);
  }
  int count = 0;
  for (const auto& operators : {std::vector<std::string>{"identity"}, {"spectrum", "sobel", "identity"}}) {
    const auto run_on = [&](Backend backend) {
      Config config = test::config_for(backend);
      config.operators.run = operators;
      config.output.dir = folder / ("out" + std::to_string(count++));
      config.image.format = ImageFormat::ome_tiff;
      config.image.compression = ImageCompression::none;
      config.pipeline.memory_mib = 128;
      config.pipeline.strip_height = 200;
      return run(config, slides);
    };
    const RunResult cpu = run_on(Backend::cpu), gpu = run_on(Backend::cuda);
    test::require_done(cpu);
    test::require_done(gpu);
    for (std::size_t i = 0; i < slides.size(); ++i) {
      CAPTURE(i);
      CHECK(gpu.slides[i].gpu_fallback_tiles == 0);
      CHECK(gpu.slides[i].missing_tiles == cpu.slides[i].missing_tiles);
      REQUIRE(gpu.slides[i].artifacts.size() == operators.size() - (operators.size() > 1 ? 1 : 0));
      for (std::size_t k = 0; k < gpu.slides[i].artifacts.size(); ++k) {
        CHECK(gpu.slides[i].artifacts[k].digest == cpu.slides[i].artifacts[k].digest);
      }
    }
  }
}

TEST_CASE(
    "JPEG 2000 is decoded on the GPU whatever is read, unless the configuration or the first tile is against it") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const auto decodes = [&folder](const test::Jpeg2000Options& options, const ByPlane<std::int64_t>& read,
                                 DecodeDevice device = DecodeDevice::automatic) {
    test::TestTiff tiff;
    tiff.directories.push_back(test::tiled_directory(tile_size, tile_size, tile_size, tile_size, 3));
    tiff.directories[0].set_short(259, 33005).set_short(262, 2);
    tiff.directories[0].tiles.push_back(test::encode_jpeg2000(test::make_picture(tile_size, tile_size, 3, 1), options));
    const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    Config config = test::config_for(Backend::cuda);
    config.decode.device = device;
    DeviceWork work;
    work.pixel_bytes = read;
    return device_decodes(config, work, *slide, 0);
  };
  for (const ByPlane<std::int64_t>& read : {ByPlane<std::int64_t>{1, 0}, {0, 3}, {1, 3}}) {
    CHECK(decodes({}, read));
    CHECK(decodes({.irreversible = false}, read));
    CHECK_FALSE(decodes({.block_style = 1}, read));
    CHECK_FALSE(decodes({}, read, DecodeDevice::cpu));
  }
}

TEST_CASE("what is odd and fits is decoded on the GPU as on the CPU") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  check_slide(write_slide(folder, "ycbcr", 6, jpeg(1, Coding::grey, 99)), 0, "", 0);
  check_slide(write_slide(folder, "white-is-zero", 0, jpeg(2, Coding::unknown, 99)), 0, "", bad);
}
