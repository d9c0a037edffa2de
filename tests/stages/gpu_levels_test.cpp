// Images whose levels and tiles a GPU makes: the files that the CPU makes.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/forecast.hpp>
#include <slidestream/pipeline.hpp>

#include "support/gpu.hpp"
#include "support/held_writes.hpp"
#include "support/image_runs.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;
using test::check_same_files;
using test::run;
using test::run_anew;

namespace {

/// Grey values that no codec makes small.
test::Image noise(std::int64_t width, std::int64_t height, std::uint32_t seed) {
  std::mt19937 random(seed);
  test::Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height; ++i) image.pixels.push_back(static_cast<std::uint8_t>(random() >> 24));
  return image;
}

/// Slides of all sorts of sizes: a pixel, less than a tile, whole tiles, and what reaches beyond.
std::vector<std::string> slides_of_all_sizes(const test::TemporaryFolder& folder, Size coloured = {500, 400}) {
  constexpr Size sizes[] = {{1, 1}, {40, 63}, {64, 64}, {257, 513}, {500, 70}, {70, 500}};
  std::vector<std::string> slides;
  for (const Size& size : sizes) {
    test::Image image = slides.size() % 2 == 0 ? noise(size.width, size.height, 1)
                                               : test::textured_image(size.width, size.height, slides.size());
    slides.push_back(folder / (std::to_string(slides.size()) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  slides.push_back(folder / "coloured.svs");
  write_synthetic_slide(slides.back(), {.width = coloured.width, .height = coloured.height});
  return slides;
}

Config images_config(const test::TemporaryFolder& folder, Backend backend) {
  Config config = test::config_of_gpu_images(folder, backend, {"identity", "sobel"});
  config.output.maps = MapFormat::none;
  config.pipeline.memory_mib = 64;
  return config;
}

/// On how many slides the levels are made on GPUs.
std::ptrdiff_t on_gpus(const Config& config, const std::vector<std::string>& slides) {
  return std::ranges::count(forecast_run(config, slides).slides, true, &SlideForecast::levels_on_gpu);
}

}  // namespace

TEST_CASE("levels and tiles that a GPU makes are the CPU's, over formats, compressions, sizes and qualities") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  // Made-up GPUs compute as the CPU does, and take their time.
  const bool has_all = test::is_wide() || !test::made_up_gpus();
  const std::vector<std::string> slides = slides_of_all_sizes(folder, has_all ? Size{500, 400} : Size{300, 260});
  struct Case {
    ImageFormat format;
    ImageCompression compression;
    int tile;
    int quality;
    int levels;
    int zarr_version = 2;
  };
  using enum ImageFormat;
  // Grey noise of the highest quality takes more room than there is for tiles of JPEG, and a side of 1,040 is none that
  // the GPU encodes: these leave it as pixels. Without compression those of 368 and 240 leave it one by one.
  const std::vector<Case> cases = {
      Case{ome_tiff, ImageCompression::jpeg, 64, 100, 0},    Case{ome_zarr, ImageCompression::none, 368, 75, 0},
      Case{ome_tiff, ImageCompression::jpeg, 16, 80, 3},     Case{ome_tiff, ImageCompression::jpeg, 1040, 50, 0},
      Case{ome_tiff, ImageCompression::none, 48, 75, 0},     Case{ome_tiff, ImageCompression::zstd, 112, 75, 0},
      Case{ome_zarr, ImageCompression::zstd, 256, 75, 2, 3}, Case{ome_tiff, ImageCompression::none, 240, 75, 0},
      Case{dzi, ImageCompression::jpeg, 128, 75, 0},         Case{dicom, ImageCompression::jpeg, 128, 75, 0}};
  // With made-up GPUs each case has one of the two cuts, by turns.
  bool is_low = false;
  for (const Case& of : std::span(cases).first(static_cast<std::size_t>(test::rounds(10)))) {
    CAPTURE(of.tile);
    CAPTURE(of.quality);
    CAPTURE(static_cast<int>(of.format));
    const auto config_for = [&](Backend backend) {
      Config config = images_config(folder, backend);
      config.image.format = of.format;
      config.image.compression = of.compression;
      config.image.tile = of.tile;
      config.image.quality = of.quality;
      config.image.levels = of.levels;
      config.image.zarr_version = of.zarr_version;
      config.input.mpp_default = 0.5;
      return config;
    };
    const RunResult expected = run_anew(config_for(Backend::cpu), slides);
    Config config = config_for(Backend::cuda);
    CHECK(on_gpus(config, slides) == std::ssize(slides));
    // Rows of tiles that several batches complete, and those that one does.
    is_low = !is_low;
    if (has_all || is_low) check_same_files(run_anew(config, slides), expected);
    if (!has_all && is_low) continue;
    config.pipeline.strip_height = 1024;
    config.pipeline.queue_depth = 1;
    check_same_files(run_anew(config, slides), expected);
  }
}

TEST_CASE("slides whose levels a GPU hasn't got the memory for get the same images, and the forecast says so") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> all = slides_of_all_sizes(folder);
  const std::vector<std::string> slides = {all.front(), all.back()};
  Config config = images_config(folder, Backend::cuda);
  // A tile that is larger than an output slot.
  config.image.tile = 2048;
  config.pipeline.memory_mib = 40;
  config.image.compression = ImageCompression::none;
  CHECK(on_gpus(config, slides) == 0);
  const RunResult found = run_anew(config, slides);
  Config on_cpu = config;
  on_cpu.pipeline.backend = Backend::cpu;
  check_same_files(found, run_anew(on_cpu, slides));
}

TEST_CASE("a GPU with too little memory for levels computes, and the host makes them (long)") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> all = slides_of_all_sizes(folder);
  const std::vector<std::string> slides = {all[3], all.back()};
  Config config = images_config(folder, Backend::cpu);
  const RunResult expected = run_anew(config, slides);
  config.pipeline.backend = Backend::cuda;
  // What is least that will do.
  const auto fits = [&](double fraction) {
    config.gpu.memory_fraction = fraction;
    return forecast_run(config, slides).fits_gpu();
  };
  double most = config.gpu.memory_fraction;
  double least = 0.01;
  REQUIRE(fits(most));
  if (fits(least)) {
    MESSAGE("skipped: a hundredth of this GPU's memory is enough for levels");
    return;
  }
  for (int step = 0; step < 20; ++step) (fits((most + least) / 2) ? most : least) = (most + least) / 2;
  config.gpu.memory_fraction = 1.02 * most;
  CHECK(on_gpus(config, slides) == 0);
  check_same_files(run_anew(config, slides), expected);
}

TEST_CASE("slides whose levels are made on a GPU and slides whose levels aren't go through one run") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> all = slides_of_all_sizes(folder);
  std::vector<std::string> slides = {all[3], all.back()};
  slides.push_back(folder / "wide.tif");
  test::Image wide = noise(70000, 20, 3);
  test::write_test_slide(slides.back(), wide);
  Config config = images_config(folder, Backend::cuda);
  // So small that the widest has more than the thirteen levels that a GPU makes.
  config.image.tile = 16;
  config.pipeline.memory_mib = 256;
  config.gpu.memory_fraction = 0.5;
  CHECK(on_gpus(config, slides) == std::ssize(slides) - 1);
  const RunResult both = run_anew(config, slides);
  config.pipeline.backend = Backend::cpu;
  check_same_files(both, run_anew(config, slides));
}

#ifdef SLIDESTREAM_FAKE_CUDA
TEST_CASE("a disk that doesn't take tiles holds back the reader, whatever takes how long, and then it goes on (long)") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  for (int i = 0; i < 4; ++i) {
    test::Image image = test::textured_image(200, 1500, static_cast<std::uint64_t>(i));
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  Config config = images_config(folder, Backend::cuda);
  config.pipeline.strip_height = 64;
  config.pipeline.queue_depth = 3;
  config.pipeline.memory_mib = 16;
  config.image.tile = 64;
  config.gpu.devices = {0};
  REQUIRE(on_gpus(config, slides) == std::ssize(slides));
  const RunResult expected = run_anew(config, slides);
  std::filesystem::remove_all(config.output.dir);
  static std::atomic<std::size_t> strips;
  static std::atomic<bool> held;
  strips = 0;
  held = false;
  // The first file's head is there, and what comes behind it isn't written.
  const FaultInjection counting = {[](void*, const char* stage, const std::string&, std::size_t strip) {
                                     if (std::strcmp(stage, "read") != 0) return;
                                     if (strip == 1 && !held.exchange(true)) test::hold_writes(".ome.tif");
                                     ++strips;
                                   },
                                   nullptr};
  RunResult found;
  std::thread running([&] { found = run(config, slides, counting); });
  while (!test::write_waits()) std::this_thread::yield();
  // As long as it takes for anything that isn't held back to be far beyond.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // No more than slots of the lane and output slots; and before writes were held, what had been written.
  constexpr std::size_t output_slots = 2;
  CHECK(strips <= static_cast<std::size_t>(config.pipeline.queue_depth) + output_slots + 2);
  test::let_writes_go();
  running.join();
  test::require_done(found);
  REQUIRE(found.slides.size() == slides.size());
  check_same_files(found, expected);
}
#endif
