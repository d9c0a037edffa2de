#include <doctest/doctest.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "stages/pipeline.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

/// Throws in one stage at one strip of the slides whose name says so.
struct Planned {
  const char* stage = nullptr;
  std::size_t strip = 0;
  bool out_of_memory = false;

  static void fault(void* data, const char* stage, const std::string& path, std::size_t strip) {
    const Planned& planned = *static_cast<const Planned*>(data);
    if (path.find("victim") == std::string::npos || strip != planned.strip || std::strcmp(stage, planned.stage) != 0) {
      return;
    }
    if (planned.out_of_memory) throw std::bad_alloc();
    throw std::runtime_error("planted");
  }
};

}  // namespace

TEST_CASE("an exception in any stage at any strip ends its slide alone and nothing hangs") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(400, 700, 9);
  std::vector<std::string> slides;
  for (int i = 0; i < 24; ++i) {
    slides.push_back(folder / ((i % 3 == 1 ? "victim" : "sound") + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.strip_height = 128;
  config.pipeline.queue_depth = 6;
  config.pipeline.threads = 4;
  RunControl undisturbed;
  const RunResult expected = run_pipeline(config, {slides[0]}, undisturbed);
  const std::size_t strips = 6;  // 700 rows in strips of 128

  for (const char* stage : {"source", "read", "decode", "carry", "compute", "reduce"}) {
    for (std::size_t strip = 0; strip < strips; ++strip) {
      Planned planned{stage, strip, strip == 2};
      // The first two strips complete no window of 256 rows with their margin: nothing is computed there.
      const bool reached = !(std::strcmp(stage, "compute") == 0 && strip < 2);
      RunControl control;
      const RunResult result = run_pipeline_with_faults(config, slides, control, {Planned::fault, &planned});
      CAPTURE(stage);
      CAPTURE(strip);
      REQUIRE(result.slides.size() == slides.size());
      for (const SlideResult& slide : result.slides) {
        const bool victim = reached && slide.path.find("victim") != std::string::npos;
        CHECK(slide.done == !victim);
        if (victim) {
          CHECK(slide.error == std::string(stage) + ": " + (planned.out_of_memory ? "out of memory" : "planted"));
          CHECK(slide.sums.windows == 0);
        } else {
          CHECK(slide.sums.sum == expected.slides[0].sums.sum);
        }
      }
    }
  }
}

TEST_CASE("what the caller's own callback throws ends the run and reaches the caller") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(400, 400, 9);
  std::vector<std::string> slides;
  for (int i = 0; i < 8; ++i) {
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  Config config;
  config.pipeline.backend = Backend::cpu;
  RunControl control;
  control.on_slide = [](SlideResult&) { throw OutputError("disk full"); };
  CHECK_THROWS_WITH_AS(run_pipeline(config, slides, control), "disk full", OutputError);
}
