#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <limits>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/pipeline.hpp>

#include "operators/registry.hpp"
#include "planning/device_sizing.hpp"
#include "slide/decode_memory.hpp"
#include "slide/test_images.hpp"
#include "stages/run/batch.hpp"
#include "stages/run_threads.hpp"
#include "stages/source.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

namespace {

std::string make_slide(const test::TemporaryFolder& folder, const char* name, std::int64_t width, std::int64_t height) {
  test::Image image{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 7919 >> 3);
  const std::string path = (folder.path() / name).string();
  test::write_test_slide(path, image);
  return path;
}

std::uint64_t items_of(const RunResult& result, const std::string& stage) {
  const auto found = std::ranges::find(result.stages, stage, &StageReport::name);
  REQUIRE(found != result.stages.end());
  return found->items;
}

}  // namespace

TEST_CASE("a forecast says what the run then does (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = {make_slide(folder, "a.tif", 1000, 1500),
                                           make_slide(folder, "b.tif", 700, 300)};
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  config.output.maps = MapFormat::npy;
  config.analysis.window = 32;
  config.analysis.stride = 16;
  for (const int strip_height : {64, 200, 4096}) {
    for (const int memory_mib : {2, 64}) {
      config.pipeline.strip_height = strip_height;
      config.pipeline.memory_mib = memory_mib;
      const RunForecast forecast = forecast_run(config, slides);
      RunControl control;
      const RunResult result = run_pipeline(config, slides, control);
      std::int64_t batches = 0;
      for (std::size_t i = 0; i < slides.size(); ++i) {
        CAPTURE(result.slides[i].error);
        REQUIRE(result.slides[i].done);
        CHECK(forecast.slides[i].error.empty());
        CHECK(forecast.slides[i].width == result.slides[i].width);
        CHECK(static_cast<std::uint64_t>(forecast.slides[i].windows()) == result.slides[i].sums.windows);
        CHECK(forecast.slides[i].batch_bytes <= forecast.slot_bytes);
        CHECK(forecast.slides[i].host_batch_bytes == forecast.slides[i].batch_bytes);
        batches += forecast.slides[i].batches;
      }
      CHECK(static_cast<std::uint64_t>(batches) == items_of(result, "reduce"));
      CHECK(forecast.backend == result.backend);
      CHECK(forecast.threads == result.threads);
      CHECK(forecast.slots * forecast.slot_bytes + forecast.carry_bytes <= static_cast<std::uint64_t>(memory_mib)
                                                                               << 20);
      CHECK(forecast.touched_bytes() <= forecast.host_bytes());
      CHECK(forecast.maps_bytes ==
            static_cast<std::uint64_t>(forecast.slides[0].windows() + forecast.slides[1].windows()) * 8);
    }
  }
}

TEST_CASE("a forecast names slides that would fail and why") {
  const test::TemporaryFolder folder;
  const std::string small = make_slide(folder, "small.tif", 64, 64);
  const std::string missing = (folder.path() / "none.svs").string();
  Config config;
  config.pipeline.backend = Backend::cpu;
  const RunForecast forecast = forecast_run(config, {small, missing});
  CHECK(forecast.slides[0].error.find("window") != std::string::npos);
  CHECK(forecast.slides[1].error.find("No such file") != std::string::npos);
  config.input.level = 3;
  CHECK(forecast_run(config, {small}).slides[0].error.find("level 3 was asked for") != std::string::npos);
}

TEST_CASE("memory of GPUs that aren't here") {
  Config config;
  config.pipeline.backend = Backend::cuda;
  config.pipeline.memory_mib = 8192;
  config.gpu.devices = {0, 1};
  const RunForecast forecast = forecast_run(config, {}, {gpu_model("H100")});
  CHECK(forecast.gpus == 2);
  CHECK(forecast.gpus_assumed);
  CHECK(forecast.slots == 8);
  CHECK(forecast.slot_bytes == std::size_t{1} << 30);
  CHECK(forecast.host_slot_bytes == forecast.slot_bytes);  // nobody knows what the slides will be
  CHECK(forecast.staging_bytes >= std::size_t{64} << 20);
  CHECK(forecast.staging_bytes <= std::size_t{128} << 20);
  CHECK(forecast.host_bytes() > std::uint64_t{8} << 30);
  Config staging = config;
  staging.gpu.staging_mib = 20;
  CHECK(forecast_run(staging, {}, {gpu_model("H100")}).staging_bytes == std::size_t{20} << 20);
  CHECK(forecast.fits_gpu());
  CHECK(forecast.gpu_unknown.empty());

  // Decoded on the CPU, rows cross the bus, and no plane is larger than what its slot holds.
  Config rows = config;
  rows.decode.device = DecodeDevice::cpu;
  CHECK(forecast_run(rows, {}, {gpu_model("h100")}).gpu_bytes < forecast.gpu_bytes);

  // Too much for the card.
  Config much = config;
  much.pipeline.memory_mib = 256 * 1024;
  CHECK_FALSE(forecast_run(much, {}, {gpu_model("a40")}).fits_gpu());

  // What only cuFFT knows is said to be missing.
  Config other = config;
  other.analysis.window = 128;
  CHECK(forecast_run(other, {}, {gpu_model("a40")}).gpu_unknown.find("cuFFT") != std::string::npos);
  // The rest of it isn't: a batch of windows with their spectra, 2^26 samples.
  CHECK(facts_of(other, {}, gpu_model("a40")).sizing.windows(0, 0, 1, 1) > std::size_t{8} << 26);

  config.pipeline.backend = Backend::cpu;
  CHECK_THROWS_AS(forecast_run(config, {}, {gpu_model("a40")}), ConfigError);
  CHECK_THROWS_AS(gpu_model("h1000"), ConfigError);
}

TEST_CASE("a forecast says whose levels are made on the GPU, and counts no host memory for them") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = {make_slide(folder, "a.tif", 3000, 2000)};
  Config config;
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_tiff;
  const RunForecast forecast = forecast_run(config, slides, {gpu_model("h100")});
  CHECK(forecast.slides.at(0).levels_on_gpu);
  CHECK(forecast.pyramids_bytes == 0);
  // One level more than a GPU makes.
  config.image.tile = 16;
  config.image.levels = 14;
  CHECK(forecast_run(config, slides, {gpu_model("h100")}).slides.at(0).levels_on_gpu);
  // A tile that no output slot holds.
  config.image.tile = 4096;
  config.pipeline.memory_mib = 64;
  const RunForecast large = forecast_run(config, slides, {gpu_model("h100")});
  CHECK(!large.slides.at(0).levels_on_gpu);
  CHECK(large.pyramids_bytes > 0);
  config.pipeline.backend = Backend::cpu;
  CHECK(!forecast_run(config, slides).slides.at(0).levels_on_gpu);
}

TEST_CASE("what threads encode large tiles with is in the forecast") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = {make_slide(folder, "a.tif", 3000, 2000)};
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_tiff;
  config.image.compression = ImageCompression::zstd;
  const auto images_bytes = [&](int tile, int threads) {
    config.image.tile = tile;
    config.pipeline.threads = threads;
    const RunForecast forecast = forecast_run(config, slides);
    CHECK(forecast.slides.at(0).error.empty());
    CHECK(forecast.host_bytes() >= forecast.images_bytes());
    return forecast.images_bytes();
  };
  // A padded copy, its rows put together, their frame and the tile, for each of two more threads; at least of grey.
  CHECK(images_bytes(1024, 3) >= images_bytes(1024, 1) + std::uint64_t{2} * 4 * 1024 * 1024);
  // One tile is all that there is.
  CHECK(images_bytes(4096, 8) == images_bytes(4096, 2));
  config.image.format = ImageFormat::ome_zarr;
  CHECK(images_bytes(1024, 3) >= images_bytes(1024, 1) + std::uint64_t{2} * 4 * 1024 * 1024);
}

TEST_CASE("planes shrink before a configuration is said not to fit") {
  Config config;
  config.pipeline.memory_mib = 256;
  config.pipeline.queue_depth = 2;
  const DeviceWork work = device_work(config, operators::make_operators(config), 1, 1);
  const DeviceFacts facts = facts_of(config, work, gpu_model("a40"));
  const HostSlots host = device_host_slots(config.pipeline, work, 1);
  const DeviceLayout wide = lay_out(config, work, host, facts.sizing, facts.free);
  const DeviceLayout narrow = lay_out(config, work, host, facts.sizing, wide.total() / 2);
  CHECK(wide.total() <= facts.free);
  CHECK(narrow.total() <= wide.total() / 2);
  CHECK(narrow.plane[luminance_plane] < wide.plane[luminance_plane]);
  CHECK(narrow.plane[luminance_plane] >= host.slot_bytes);
  CHECK(narrow.plane[rgb_plane] == 0);
}

TEST_CASE("waves of JPEG 2000 take what memory is left, for RGB fewer tiles in more of it") {
  Config config;
  config.pipeline.memory_mib = 1024;
  config.pipeline.queue_depth = 4;
  const auto laid_out = [&config](const DeviceWork& work, std::size_t allowed) {
    const DeviceFacts facts = facts_of(config, work, gpu_model("h200"));
    return lay_out(config, work, device_host_slots(config.pipeline, work, 1), facts.sizing, allowed);
  };
  DeviceWork work = device_work(config, operators::make_operators(config), 1, 1);
  const DeviceLayout wide = laid_out(work, gpu_model("h200").memory);
  CHECK(wide.tiles.wave > 2048);
  CHECK(wide.decode_scratch > wide.tiles.wave * 120000);
  const auto scratch = [&wide](std::size_t wave) {
    TileLimits tiles = wide.tiles;
    tiles.wave = wave;
    return DecoderScratch(tiles, 0);
  };
  CHECK(wide.decode_scratch == scratch(wide.tiles.wave).size);
  // Planes come first: waves are shorter by what is missing, and planes are as they were.
  const DeviceLayout less = laid_out(work, wide.total() - 1);
  CHECK(less.plane == wide.plane);
  CHECK(less.tiles.wave == wide.tiles.wave / 2);
  CHECK(less.total() < wide.total());
  // As short as they get, they cost less than the scratch of JPEG.
  const DeviceLayout narrow = laid_out(work, wide.total() / 4);
  CHECK(narrow.total() <= wide.total() / 4);
  CHECK(narrow.tiles.wave >= 32);
  CHECK(scratch(32).size < narrow.decode_scratch);
  work.pixel_bytes[rgb_plane] = 3;
  const DeviceLayout rgb = laid_out(work, gpu_model("h200").memory);
  CHECK(rgb.tiles.wave > 1024);
  CHECK(rgb.decode_scratch > rgb.tiles.wave * 300000);
  CHECK(rgb.total() <= gpu_model("h200").memory);
}

TEST_CASE("threads that read: all of few, and more for a device where there are many") {
  for (const std::size_t devices : {0, 1, 2}) {
    CHECK(reading_threads(1, devices) == 2);
    CHECK(reading_threads(4, devices) == 4);
    CHECK(reading_threads(8, devices) == 8);
  }
  CHECK(reading_threads(64, 0) == 8);
  CHECK(reading_threads(12, 1) == 9);
  CHECK(reading_threads(16, 1) == 12);
  CHECK(reading_threads(64, 1) == 12);
  CHECK(reading_threads(16, 2) == 8);
  CHECK(reading_threads(32, 2) == 12);
  CHECK(reading_threads(64, 4) == 12);
}

TEST_CASE("where the system lets few threads be started, networks have fewer sessions") {
  const std::size_t all = std::numeric_limits<std::size_t>::max();
  // As many sessions as threads, as a run has where none are set.
  const ThreadNeeds needs{0, {256}};
  const auto plenty = threads_within(10'000, 256, needs);
  REQUIRE(plenty);
  CHECK(plenty->graph == 256);
  CHECK(plenty->sessions == all);
  const auto few = threads_within(250, 256, needs);
  REQUIRE(few);
  CHECK(few->graph > 100);
  CHECK(few->graph < 125);
  CHECK(few->sessions == few->graph);
  // Spectra alone have more of the graph's.
  const auto spectra = threads_within(250, 256, ThreadNeeds{0});
  REQUIRE(spectra);
  CHECK(spectra->graph > few->graph);
  // Sessions that are set give way, too, and threads stay.
  const auto set = threads_within(250, 4, ThreadNeeds{0, {1000}});
  REQUIRE(set);
  CHECK(set->graph == 4);
  CHECK(set->sessions == 4);
  CHECK(threads_within(100, 4, ThreadNeeds{2, {1000, 1000}}).has_value());
  CHECK_FALSE(threads_within(3, 256, needs));
}

TEST_CASE("levels that slides compare while they are opened are in the forecast (long)") {
  const test::TemporaryFolder folder;
  SynthOptions options;
  options.width = 1024;
  options.height = 768;
  options.levels = 2;
  std::vector<std::string> slides;
  for (const int tile : {256, 512}) {
    options.tile = tile;
    slides.push_back((folder.path() / (std::to_string(tile) + ".svs")).string());
    write_synthetic_slide(slides.back(), options);
  }
  Config config;
  config.pipeline.backend = Backend::cpu;
  const std::uint64_t of_first = forecast_run(config, {slides[0]}).opening_bytes;
  const std::uint64_t of_second = forecast_run(config, {slides[1]}).opening_bytes;
  // The lower level as a whole, and a tile of the upper one.
  CHECK(of_first >= 256 * 192 + 256 * 256);
  CHECK(of_second >= 256 * 192 + 512 * 512);
  // And places of both in colour, for small type.
  CHECK(of_second < 2 * 512 * 512 + (5 << 20));
  CHECK(forecast_run(config, slides).opening_bytes == of_first + of_second);
  const std::vector<std::string> many(3 * most_slow, slides[1]);
  const RunForecast all = forecast_run(config, many);
  CHECK(all.opening_bytes == (1 + most_slow) * of_second);
  CHECK(all.touched_bytes() >= all.opening_bytes);
}

TEST_CASE("small levels are in the forecast of whatever looks at them") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = {make_slide(folder, "a.tif", 1000, 1500)};
  Config config;
  config.pipeline.backend = Backend::cpu;
  CHECK(forecast_run(config, slides).small_levels_bytes == 0);
  config.analysis.statistics = {"split"};
  const std::uint64_t of_split = forecast_run(config, slides).small_levels_bytes;
  CHECK(of_split > 0);
  config.analysis.statistics.clear();
  config.operators.run = {"stain"};
  config.image.format = ImageFormat::ome_tiff;
  CHECK(forecast_run(config, slides).small_levels_bytes > of_split);
  config.operators.run = {"tissue"};
  const RunForecast of_tissue = forecast_run(config, slides);
  CHECK(of_tissue.small_levels_bytes > 0);
  CHECK(of_tissue.host_bytes() >= of_tissue.small_levels_bytes);
}

TEST_CASE("memory for decoding is advised together with that for the row of tiles") {
  const test::TemporaryFolder folder;
  test::TestTiff tiff;
  tiff.directories = {test::tiled_directory(4096, 4096, 4096, 4096, 1)};
  tiff.directories[0].set_short(259, 8);
  // Nobody decodes it.
  tiff.directories[0].tiles = {test::Bytes(100)};
  const std::string slide = folder.write("slide.tif", tiff.bytes()).string();
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 1;
  config.pipeline.memory_mib = 32;
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_tiff;
  const std::string refusal = forecast_run(config, {slide}).slides.at(0).error;
  const std::string advice = "and decoding may take 8 MiB; raise pipeline.memory_mib to ";
  REQUIRE_MESSAGE(refusal.find(advice) != std::string::npos, refusal);
  config.pipeline.memory_mib = std::stoi(refusal.substr(refusal.find(advice) + advice.size()));
  CHECK(forecast_run(config, {slide}).slides.at(0).error == "");
}

TEST_CASE("coefficients of progressive JPEG tiles are in the forecast as a run counts them") {
  const test::TemporaryFolder folder;
  constexpr int side = 512;
  const test::Picture picture = test::make_stained_picture(side, side, 1);
  const test::Bytes sequential = test::encode_jpeg(picture);
  const test::Bytes progressive = test::encode_jpeg(picture, {.progressive = true});
  const auto slide_of = [&](const std::vector<test::Bytes>& tiles) {
    test::TestTiff tiff;
    tiff.directories = {test::tiled_directory(2 * side, 2 * side, side, side, 3)};
    tiff.directories[0].set_short(259, 7).set_short(262, 6);
    tiff.directories[0].tiles = tiles;
    return folder.write("slide.tif", tiff.bytes()).string();
  };
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  const RunForecast of_sequential = forecast_run(config, {slide_of({sequential, sequential, sequential, sequential})});
  REQUIRE(of_sequential.slides.at(0).error == "");
  // One in the middle, and one missing.
  const std::string slide = slide_of({sequential, {}, progressive, sequential});
  RunForecast forecast = forecast_run(config, {slide});
  REQUIRE(forecast.slides.at(0).error == "");
  const std::uint64_t bytes = forecast.slides[0].tile_bytes;
  constexpr std::uint64_t coefficients = std::uint64_t{side} * side * 3 / 2;  // chroma has half the columns and rows
  CHECK(bytes >= of_sequential.slides[0].tile_bytes + 2 * coefficients);
  const std::uint64_t touched = forecast.touched_bytes();
  forecast.slides[0].tile_bytes = 0;
  CHECK(touched == forecast.touched_bytes() + 2 * bytes);
  // A run's decoder takes as much, and not a byte more.
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(bytes);
  CHECK_NOTHROW(test::read_level(*Slide::open(slide, options)));
  options.decode_memory = std::make_shared<DecodeMemory>(bytes - 1);
  CHECK_THROWS_AS(test::read_level(*Slide::open(slide, options)), SlideError);
}
