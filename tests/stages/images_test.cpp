// Images that are made beside sums: whole or not at all, whatever goes wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "sink/file_digest.hpp"
#include "support/file_limit.hpp"
#include "support/image_runs.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;
using test::check_same_files;
using test::run;

namespace {

Config config_of_images(const test::TemporaryFolder& folder, const std::string& name = "out") {
  Config config = test::config_for(test::backends().back());
  // On two made-up GPUs there are twice as many slots.
  if (config.pipeline.backend == Backend::cuda) config.pipeline.memory_mib = 64;
  config.output.maps = MapFormat::none;
  config.output.dir = (folder / name).string();
  config.operators.run = {"sobel", "spectrum", "identity"};
  config.analysis.window = 64;
  config.image.format = ImageFormat::ome_tiff;
  config.image.tile = 64;
  config.pipeline.strip_height = 128;
  // A made-up GPU encodes JPEG a block after the other, and sanitizers make that ten times as slow: gpu_levels_test.cpp
  // has it.
  if (test::made_up_gpus() && test::rounds(4) < 4) config.image.compression = ImageCompression::zstd;
  return config;
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// Formats with what their partial names hold; each test that writes goes over all.
struct Format {
  const char* name;
  ImageFormat format;
  int zarr_version;
  std::size_t files;  ///< of an image
};
constexpr std::array<Format, 5> formats = {{{"ome-tiff", ImageFormat::ome_tiff, 2, 1},
                                            {"ome-zarr 2", ImageFormat::ome_zarr, 2, 1},
                                            {"ome-zarr 3", ImageFormat::ome_zarr, 3, 1},
                                            {"dzi", ImageFormat::dzi, 2, 3},
                                            {"dicom", ImageFormat::dicom, 2, 1}}};

/// As high as others, and so narrow that little is computed.
std::vector<std::string> narrow_slides(const test::TemporaryFolder& folder, int count) {
  return test::equal_slides(folder, count, test::Coding::none, 100);
}

/// All of them, or the first where a sanitizer makes each take long.
std::span<const Format> formats_to_try() {
  return std::span(formats).first(static_cast<std::size_t>(test::rounds(static_cast<int>(formats.size()))));
}

Config config_of_images(const test::TemporaryFolder& folder, const Format& format, const std::string& name = "out") {
  Config config = config_of_images(folder, format.name + name);
  config.image.format = format.format;
  config.image.zarr_version = format.zarr_version;
  if (format.format == ImageFormat::dzi || format.format == ImageFormat::dicom)
    config.image.compression = ImageCompression::automatic;
  // The slides don't say it, and DICOM can't do without.
  if (format.format == ImageFormat::dicom) config.input.mpp_default = 0.5;
  // Each file is synced: of fewer ones.
  if (format.format != ImageFormat::ome_tiff) config.image.tile = 256;
  return config;
}

std::filesystem::path images_of(const Config& config) { return std::filesystem::path(config.output.dir) / "images"; }

std::size_t count_named(const std::vector<std::string>& names, const std::string& part) {
  return static_cast<std::size_t>(
      std::ranges::count_if(names, [&](const std::string& name) { return name.find(part) != std::string::npos; }));
}

/// What a slide's artifacts say is what lies there.
void check_artifacts(const Config& config, const SlideResult& slide) {
  const std::size_t files = config.image.format == ImageFormat::dzi ? 3 : 1;
  REQUIRE(slide.artifacts.size() == 2 * files);
  for (std::size_t i = 0; i < slide.artifacts.size(); ++i) {
    const Artifact& artifact = slide.artifacts[i];
    CHECK(artifact.maker == (i < files ? "sobel" : "identity"));
    const auto content = path_content(std::filesystem::path(config.output.dir) / artifact.file);
    REQUIRE(content);
    CHECK(content->bytes == artifact.bytes);
    CHECK(content->digest == artifact.digest);
  }
}

}  // namespace

TEST_CASE(
    "images are the same files whatever the strips, depth, threads and order, and sums are what they are alone "
    "(long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> all = test::varied_slides(folder, 4, 2);
  for (const Format& format : formats_to_try()) {
    CAPTURE(format.name);
    const std::size_t count = format.format == ImageFormat::ome_tiff ? all.size() : 2;
    const std::vector<std::string> slides(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    const Config config = config_of_images(folder, format);
    const RunResult expected = run(config, slides);
    test::require_done(expected);
    for (const SlideResult& slide : expected.slides) check_artifacts(config, slide);
    CHECK(count_named(files_in(images_of(config)), "partial") == 0);
    CHECK(files_in(images_of(config)).size() == 2 * format.files * slides.size());

    Config alone = config;
    alone.operators.run = {"spectrum"};
    alone.image.format = ImageFormat::none;
    CHECK(run(alone, slides).corpus.sum == expected.corpus.sum);

    struct Cut {
      int height;
      int depth;
    };
    std::vector<Cut> cuts = {{1, 5}, {4000, 1}};
    if (format.format == ImageFormat::ome_tiff) cuts.insert(cuts.end(), {{1, 1}, {200, 2}, {4000, 5}});
    int i = 0;
    for (const auto& [height, depth] : cuts) {
      Config other = config_of_images(folder, format, std::to_string(i++));
      other.pipeline.strip_height = height;
      other.pipeline.queue_depth = depth;
      other.pipeline.threads = depth;
      other.gpu.split_slides = SplitSlides::always;
      const RunResult result = run(other, slides, test::dawdling);
      test::require_done(result);
      check_same_files(expected, result);
      CHECK(result.corpus.sum == expected.corpus.sum);
    }
  }
}

TEST_CASE(
    "a slide that fails in any stage at any strip gets no image, the others get theirs, and slots come back (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = narrow_slides(folder, 6);
  std::size_t i = 0;
  std::vector<const char*> stages = {"source", "read", "decode", "carry", "compute", "reduce"};
  if (test::backends().back() == Backend::cuda) stages.insert(stages.end(), {"upload", "collect"});
  for (const char* stage : stages) {
    // Another one for each stage, so that each strip and each format has its turn.
    std::vector<std::size_t> strips = {0, 2, 5};
    if (!test::is_wide()) strips = {strips[i % 3]};
    for (const std::size_t strip : strips) {
      const Format& format = formats[i % formats.size()];
      Config config = config_of_images(folder, format, std::to_string(i++));
      config.pipeline.batch_strips = 1;
      test::PlannedFault planned{stage, strip, false};
      const RunResult result = run(config, slides, planned.injection());
      INFO(format.name, ", ", stage, ", strip ", strip);
      REQUIRE(result.slides.size() == slides.size());
      for (const SlideResult& slide : result.slides) {
        const bool victim = slide.path.find("victim") != std::string::npos;
        CHECK(slide.done == !victim);
        CHECK(slide.artifacts.size() == (victim ? 0 : 2 * format.files));
        if (victim) CHECK(slide.error == planned.error());
      }
      const std::vector<std::string> files = files_in(images_of(config));
      CHECK(count_named(files, "sound") == 8 * format.files);
      // What was begun of the others keeps its partial name.
      CHECK(count_named(files, "victim") == count_named(files, "partial"));
    }
  }
}

TEST_CASE(
    "a disk that is full ends the run with the file's name, and no slide is done whose files aren't whole (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = narrow_slides(folder, 4);
  for (const Format& format : formats_to_try()) {
    const Config config = config_of_images(folder, format);
    const RunResult whole = run(config, slides);
    test::require_done(whole);
    std::uint64_t largest = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(images_of(config))) {
      if (entry.is_regular_file()) largest = std::max<std::uint64_t>(largest, entry.file_size());
    }
    for (const std::uint64_t room : {std::uint64_t{100}, largest / 4, largest - 1, largest}) {
      Config full = config_of_images(folder, format, "full" + std::to_string(room));
      std::vector<SlideResult> delivered;
      RunControl control;
      control.on_slide = [&](SlideResult& slide) { delivered.push_back(slide); };
      const auto run_it = [&] {
        const test::FileLimit limit(room);
        run_pipeline(full, slides, control);
      };
      INFO(format.name, ", room for ", room, " bytes");
      if (room == largest) {
        run_it();
        CHECK(delivered.size() == slides.size());
      } else {
        CHECK_THROWS_WITH_AS(run_it(), doctest::Contains(".partial"), OutputError);
        CHECK(delivered.size() < slides.size());
      }
      for (const SlideResult& slide : delivered) check_artifacts(full, slide);
    }
  }
}

TEST_CASE("where the folder of images can't be made, the run says so and no slide is done") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = narrow_slides(folder, 2);
  const Config config = config_of_images(folder);
  std::filesystem::create_directories(config.output.dir);
  folder.write("out/images", std::string("in the way"));
  RunControl control;
  int delivered = 0;
  control.on_slide = [&](SlideResult&) { ++delivered; };
  CHECK_THROWS_AS(run_pipeline(config, slides, control), OutputError);
  CHECK(delivered == 0);
}

TEST_CASE("a stop leaves no final name to an image that isn't whole (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = narrow_slides(folder, 40);
  for (const Format& format : formats) {
    CAPTURE(format.name);
    const Config config = config_of_images(folder, format);
    RunControl control;
    control.on_slide = [&](SlideResult&) { control.request_stop(); };
    test::NotBeforeStop last{control, slides.back()};
    const RunResult result = run_pipeline_with_faults(config, slides, control, last.injection());
    CHECK(result.interrupted);
    std::size_t done = 0;
    for (const SlideResult& slide : result.slides) {
      REQUIRE(slide.done);
      check_artifacts(config, slide);
      ++done;
    }
    const std::vector<std::string> files = files_in(images_of(config));
    CHECK(files.size() - count_named(files, "partial") == 2 * format.files * done);
  }
}

TEST_CASE("an image says what settings made it, and not where anything lies (long)") {
  const test::TemporaryFolder folder;
  SynthOptions options;
  options.width = 1024;
  options.height = 768;
  const std::string slide = folder / "a.svs";
  write_synthetic_slide(slide, options);
  Config config = config_of_images(folder);
  config.operators.run = {"stain"};
  config.stain.reference = slide;
  const RunResult result = run(config, {slide});
  test::require_done(result);
  std::ifstream file(folder / "out/images/a.stain.ome.tif", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  CHECK(bytes.find("stain.output") != std::string::npos);
  CHECK(bytes.find("K=\"figure.stain.white_red\"") != std::string::npos);
  CHECK(bytes.find("K=\"figure.stain.eosin_maximum\"") != std::string::npos);
  CHECK(bytes.find("stain.reference") == std::string::npos);
  CHECK(bytes.find(folder.path().filename().string()) == std::string::npos);

  config.image.format = ImageFormat::ome_zarr;
  config.image.tile = 256;
  config.output.dir = (folder / "zarr").string();
  test::require_done(run(config, {slide}));
  std::ifstream attributes(folder / "zarr/images/a.stain.ome.zarr/.zattrs");
  const std::string said{std::istreambuf_iterator<char>(attributes), {}};
  const auto lies_in = [&said](const std::string& object, const std::string& key) {
    const std::size_t begin = said.find("\"" + object + "\":");
    REQUIRE_MESSAGE(begin != std::string::npos, said);
    return said.substr(begin, said.find('}', begin) - begin).find("\"" + key + "\"") != std::string::npos;
  };
  CHECK(lies_in("settings", "stain.output"));
  CHECK_FALSE(lies_in("settings", "stain.white_red"));
  CHECK(lies_in("figures", "stain.white_red"));
}

TEST_CASE("images that nobody writes, or that JPEG can't hold, are refused before anything starts") {
  const test::TemporaryFolder folder;
  Config config = config_of_images(folder);
  config.image.format = ImageFormat::none;
  CHECK_THROWS_WITH_AS(check_runnable(config), doctest::Contains("image.format"), ConfigError);
  config.image.format = ImageFormat::ome_tiff;
  check_runnable(config);
  config.sobel.output = SobelOutput::float32;
  config.image.compression = ImageCompression::jpeg;
  CHECK_THROWS_WITH_AS(check_runnable(config), doctest::Contains("image.compression"), ConfigError);
  config.image.compression = ImageCompression::automatic;
  check_runnable(config);
}

TEST_CASE("what a format doesn't have is refused in one line") {
  const test::TemporaryFolder folder;
  Config config = config_of_images(folder);
  const auto refusal = [&] {
    try {
      check_runnable(config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  config.image.compression = ImageCompression::blosc_lz4;
  CHECK(refusal() == "image.compression = \"blosc-lz4\" isn't in ome-tiff; use auto, jpeg, none or zstd");
  config.image.format = ImageFormat::ome_zarr;
  CHECK(refusal().empty());
  config.image.compression = ImageCompression::jpeg;
  CHECK(refusal() == "image.compression = \"jpeg\" isn't in ome-zarr; use auto, blosc-lz4, none or zstd");
  config.image.format = ImageFormat::dzi;
  CHECK(refusal().empty());
  config.image.levels = 3;
  CHECK(refusal() == "image.levels must be 0 for dzi, whose levels go down to one pixel");
  config.image.levels = 0;
  config.sobel.output = SobelOutput::float32;
  CHECK(refusal().find("image.format = \"dzi\" holds 1 or 3 channels of 8 bits") == 0);
  config.sobel.output = SobelOutput::uint8;
  config.image.compression = ImageCompression::zstd;
  CHECK(refusal() == "image.compression = \"zstd\" isn't in dzi; use auto or jpeg");
}
