#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "stages/pipeline.hpp"
#include "support/gpu.hpp"
#include "support/test_slides.hpp"
#include "support/trap_kernel.hpp"

using namespace slidestream;

// A process of its own: the device stays lost for the rest of it.
TEST_CASE("a device that is lost ends the run with one line, and what was finished is kept") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(500, 900, 9);
  std::vector<std::string> slides;
  for (int i = 0; i < 30; ++i) {
    slides.push_back(folder / ((i == 12 ? "victim" : "sound") + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  Config config;
  config.pipeline.backend = Backend::cuda;
  config.gpu.devices = {0};  // another one would go on with what it has
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  config.pipeline.queue_depth = 3;
  RunControl control;
  const FaultInjection trap = {[](void*, const char* stage, const std::string& path, std::size_t strip) {
                                 const bool hit = path.find("victim") != std::string::npos && strip == 3;
                                 if (hit && std::strcmp(stage, "compute") == 0) test::launch_trap();
                               },
                               nullptr};
  const RunResult result = run_pipeline_with_faults(config, slides, control, trap);
  CHECK(result.failure.find("CUDA: ") == 0);
  CHECK(result.failure.find('\n') == std::string::npos);
  CHECK(result.interrupted);
  std::size_t done = 0;
  for (const SlideResult& slide : result.slides) {
    if (slide.done) {
      ++done;
      CHECK(slide.sums.sum == result.slides[0].sums.sum);
    } else {
      CHECK(slide.error.find("CUDA: ") != std::string::npos);
    }
  }
  CHECK(done >= 8);
  CHECK(done <= 12);
}
