// How a caller watches and stops a run, on every backend that is here.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>

#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::config_for;
using test::run;

TEST_CASE("on_start is called once for each slide, before anything of it is read (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    std::vector<std::string> slides = test::mixed_slides(folder, 18);
    const RunResult expected = run(config_for(backend), slides);
    // Files that are there only from then on.
    for (const std::string& slide : slides) std::filesystem::rename(slide, slide + ".absent");
    std::mutex mutex;
    std::map<std::string, int> started;
    RunControl control;
    control.on_start = [&](const std::string& path) {
      const std::lock_guard lock(mutex);
      if (++started[path] == 1) std::filesystem::rename(path + ".absent", path);
    };
    std::atomic<int> ended_too_early{0};
    control.on_slide = [&](SlideResult& slide) {
      const std::lock_guard lock(mutex);
      if (started[slide.path] != 1) ++ended_too_early;
    };
    Config config = config_for(backend);
    config.gpu.split_slides = SplitSlides::always;
    const RunResult result = run_pipeline(config, slides, control);
    CHECK(ended_too_early == 0);
    CHECK(started.size() == slides.size());
    for (const auto& slide : started) CHECK_MESSAGE(slide.second == 1, slide.first);
    test::check_same(result, expected);
  }
}

TEST_CASE("what on_start throws fails its slide alone, which isn't opened") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 9);
    const RunResult expected = run(config_for(backend), slides);
    RunControl control;
    control.on_start = [](const std::string& path) {
      if (path.find("victim") == std::string::npos) return;
      std::filesystem::remove(path);
      throw std::runtime_error("planted");
    };
    const RunResult result = run_pipeline(config_for(backend), slides, control);
    REQUIRE(result.slides.size() == slides.size());
    for (std::size_t i = 0; i < slides.size(); ++i) {
      if (i % 3 == 1) {
        CHECK(result.slides[i].error == "source: planted");
      } else {
        test::check_same(result.slides[i], expected.slides[i]);
      }
    }
  }
}

TEST_CASE("what the caller's own callback throws ends the run and reaches the caller") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::mixed_slides(folder, 9);
    const Config config = config_for(backend);
    const auto throws = [](auto&&...) { throw OutputError("disk full"); };
    {
      RunControl control;
      control.on_slide = throws;
      CHECK_THROWS_WITH_AS(run_pipeline(config, slides, control), "disk full", OutputError);
    }
    {
      RunControl control;
      control.on_progress = throws;
      CHECK_THROWS_WITH_AS(run_pipeline(config, slides, control), "disk full", OutputError);
    }
    {
      RunControl control;
      control.on_message = throws;
      CHECK_THROWS_WITH_AS(run_pipeline(config, slides, control), "disk full", OutputError);
    }
  }
}

TEST_CASE("a stop keeps finished slides and drops those that are under way (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::mixed_slides(folder, 25);
    Config config = config_for(backend);
    config.pipeline.strip_height = 64;
    config.pipeline.batch_strips = 1;
    const RunResult expected = run(config, slides);
    test::require_done(expected);
    RunControl control;
    std::atomic<int> seen{0};
    control.on_slide = [&](SlideResult&) {
      if (++seen == 5) control.request_stop();
    };
    const RunResult result = run_pipeline(config, slides, control);
    CHECK(result.interrupted);
    CHECK(result.slides.size() >= 5);
    CHECK(result.slides.size() < slides.size());
    CHECK(result.slides.size() == static_cast<std::size_t>(seen));
    std::size_t i = 0;
    for (const SlideResult& slide : result.slides) {
      while (expected.slides[i].path != slide.path) ++i;
      test::check_same(slide, expected.slides[i]);
    }
  }
}

namespace {

/// Asks for a stop when a stage meets the third strip of a certain slide.
struct StopAt {
  const char* stage;
  RunControl& control;
  FaultInjection injection() { return {stop, this}; }

 private:
  static void stop(void* data, const char* stage, const std::string& path, std::size_t strip) {
    const StopAt& at = *static_cast<const StopAt*>(data);
    const bool hit = strip == 2 && path.find("mixed6") != std::string::npos;
    if (hit && std::strcmp(stage, at.stage) == 0) at.control.request_stop();
    test::random_pause();
  }
};

}  // namespace

TEST_CASE("a stop may come in the middle of any stage") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::mixed_slides(folder, 9);
    Config config = config_for(backend);
    config.pipeline.strip_height = 128;
    config.pipeline.batch_strips = 1;
    const RunResult expected = run(config, {slides[0]});
    std::vector<const char*> stages = {"source", "read", "decode", "carry", "compute", "reduce"};
    if (backend != Backend::cpu) stages.insert(stages.end(), {"upload", "decode-gpu", "collect"});
    for (const char* stage : stages) {
      CAPTURE(stage);
      RunControl control;
      StopAt at{stage, control};
      const RunResult result = run_pipeline_with_faults(config, slides, control, at.injection());
      CHECK(result.failure == "");
      CHECK(result.interrupted == (result.slides.size() < slides.size()));
      for (const SlideResult& slide : result.slides) {
        CHECK_MESSAGE(slide.done, slide.error);
        CHECK(slide.sums.windows == expected.slides[0].sums.windows);
      }
    }
  }
}

namespace {

/// Asks for a stop as soon as something is read.
FaultInjection stop_in_read(RunControl& control, std::chrono::nanoseconds time_to_end) {
  FaultInjection faults;
  faults.fault = [](void* data, const char* stage, const std::string&, std::size_t) {
    if (std::strcmp(stage, "read") == 0) static_cast<RunControl*>(data)->request_stop();
  };
  faults.data = &control;
  faults.time_to_end = time_to_end;
  return faults;
}

}  // namespace

TEST_CASE("a stop lets a slide end whose strips were all sent, and leaves it when that takes too long") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    // One row of tiles, and so one strip.
    test::Image image = test::textured_image(600, 256, 1);
    test::write_test_slide(folder / "one.tif", image);
    const std::vector<std::string> slides = {folder / "one.tif"};
    Config config = config_for(backend);
    config.gpu.split_slides = SplitSlides::never;
    const RunResult expected = run(config, slides);
    test::require_done(expected);
    {
      RunControl control;
      const RunResult kept =
          run_pipeline_with_faults(config, slides, control, stop_in_read(control, std::chrono::hours(1)));
      CHECK(control.stop_requested());
      CHECK_FALSE(kept.interrupted);
      test::check_same(kept, expected);
    }
    {
      RunControl control;
      const RunResult left =
          run_pipeline_with_faults(config, slides, control, stop_in_read(control, std::chrono::nanoseconds(0)));
      CHECK(left.interrupted);
      CHECK(left.failure == "");
      CHECK(left.slides.empty());
    }
  }
}

TEST_CASE("progress ends with every slide accounted for") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    test::Image image = test::textured_image(600, 1200, 1);
    test::write_test_slide(folder / "a.tif", image);
    RunControl control;
    Progress last;
    control.on_progress = [&](const Progress& progress) { last = progress; };
    run_pipeline(config_for(backend), {folder / "a.tif", folder / "absent.tif"}, control);
    CHECK(last.slides_total == 2);
    CHECK(last.slides_done == 1);
    CHECK(last.slides_failed == 1);
    CHECK(last.pixels == 600 * 1200);
    CHECK(last.pixels_started == 600 * 1200);
    CHECK(last.bytes_read >= 600 * 1200);
  }
}

TEST_CASE("progress counts the tiles of images, and names those that are being written") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    test::Image image = test::textured_image(600, 1200, 1);
    for (const char* name : {"a.tif", "b.tif"}) test::write_test_slide(folder / name, image);
    Config config = config_for(backend);
    config.output.maps = MapFormat::none;
    config.output.dir = (folder / "out").string();
    config.operators.run = {"sobel", "identity"};
    config.image.format = ImageFormat::ome_tiff;
    RunControl control;
    Progress last;
    // 3 x 5, 2 x 3, 1 x 2 and 1 x 1 tiles.
    constexpr std::uint64_t tiles = 15 + 6 + 2 + 1;
    control.on_progress = [&](const Progress& progress) {
      for (const ImageProgress& written : progress.images) {
        CHECK(written.tiles_total == tiles);
        CHECK(written.tiles <= tiles);
        CHECK(written.file.ends_with(".partial.ome.tif"));
        CHECK((written.slide == folder / "a.tif" || written.slide == folder / "b.tif"));
      }
      CHECK(progress.tiles_written >= last.tiles_written);
      CHECK(progress.bytes_written >= last.bytes_written);
      last = progress;
    };
    // So that somebody looks meanwhile.
    control.on_start = [](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(150)); };
    const RunResult result = run_pipeline(config, {folder / "a.tif", folder / "b.tif"}, control);
    test::require_done(result);
    CHECK(last.images.empty());
    CHECK(last.tiles_written == 4 * tiles);
    std::uint64_t bytes = 0;
    for (const SlideResult& slide : result.slides) {
      for (const Artifact& artifact : slide.artifacts) bytes += artifact.bytes;
    }
    CHECK(last.bytes_written > 0);
    CHECK(last.bytes_written < bytes);
  }
}
