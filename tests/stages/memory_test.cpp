#include <doctest/doctest.h>
#include <sys/resource.h>

#include <slidestream/pipeline.hpp>

#include "support/test_data.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

namespace {

/// Of this process so far, in KiB.
[[maybe_unused]] long peak_resident_set() {
  rusage usage{};
  REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss;
}

[[maybe_unused]] std::string slide_of(const std::filesystem::path& file, std::int64_t width, std::int64_t height) {
  SynthOptions options;
  options.width = width;
  options.height = height;
  options.distinct = 200;
  options.levels = 1;
  write_synthetic_slide(file, options);
  return file;
}

/// Converts a slide, and then one of twice the height.
[[maybe_unused]] void check_memory_of_images(ImageFormat format) {
  const test::TemporaryFolder folder;
  Config config;
  config.operators.run = {"identity"};
  config.image.format = format;
  // Each file of a folder is synced.
  if (format != ImageFormat::ome_tiff) config.image.tile = 512;
  config.output.dir = folder / "out";
  // Little enough that the shorter slide fills all slots several times.
  config.pipeline.memory_mib = 64;
  config.pipeline.strip_height = 256;
  // Each thread's allocator keeps memory.
  config.pipeline.threads = 4;
  const auto convert = [&](const std::string& slide) {
    RunControl control;
    const RunResult result = run_pipeline(config, {slide}, control);
    REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
    return peak_resident_set();
  };
  const std::string once = slide_of(folder / "once.svs", 2048, 24576);
  const std::string twice = slide_of(folder / "twice.svs", 2048, 49152);
  const long before = convert(once);
  const long after = convert(twice);
  MESSAGE("peak resident set: " << before / 1024 << " MiB, then " << after / 1024 << " MiB");
  // What allocators keep differs from run to run. The taller slide has 144 MiB more of pixels.
  CHECK(after - before <= 24 * 1024);
}

}  // namespace

// A test case is a process of its own under CTest, so the peak is this run's.
TEST_CASE("a slide of 65664 x 43264 pixels stays within 1 GiB of memory by default") {
#ifdef SLIDESTREAM_SANITIZED
  test::report_skipped("sanitizers keep memory of their own");
#else
  const test::TemporaryFolder folder;
  const std::string slide = slide_of(folder / "large.svs", 65664, 43264);
  RunControl control;
  const RunResult result = run_pipeline({}, {slide}, control);
  REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
  CHECK(result.slides[0].sums.windows == 172544);
  MESSAGE("peak resident set: " << peak_resident_set() / 1024 << " MiB, " << result.seconds << " s");
  CHECK(peak_resident_set() <= 1024 * 1024);
#endif
}

TEST_CASE("converting a slide of twice the height takes no more memory") {
#ifdef SLIDESTREAM_SANITIZED
  test::report_skipped("sanitizers keep memory of their own");
#else
  check_memory_of_images(ImageFormat::ome_tiff);
#endif
}

TEST_CASE("converting a slide of twice the height to OME-Zarr takes no more memory") {
#ifdef SLIDESTREAM_SANITIZED
  test::report_skipped("sanitizers keep memory of their own");
#else
  check_memory_of_images(ImageFormat::ome_zarr);
#endif
}

TEST_CASE("converting a slide of twice the height to Deep Zoom takes no more memory") {
#ifdef SLIDESTREAM_SANITIZED
  test::report_skipped("sanitizers keep memory of their own");
#else
  check_memory_of_images(ImageFormat::dzi);
#endif
}
