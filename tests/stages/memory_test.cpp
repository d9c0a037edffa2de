#include <doctest/doctest.h>
#include <sys/resource.h>

#include <slidestream/pipeline.hpp>

#include "support/test_data.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

// A test case is a process of its own under CTest, so the peak is this run's.
TEST_CASE("a slide of 65664 x 43264 pixels stays within 1 GiB of memory by default") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  test::report_skipped("sanitizers keep memory of their own");
#else
  const test::TemporaryFolder folder;
  SynthOptions options;
  options.width = 65664;
  options.height = 43264;
  options.distinct = 200;
  options.levels = 1;
  write_synthetic_slide(folder / "large.svs", options);
  RunControl control;
  const RunResult result = run_pipeline({}, {folder / "large.svs"}, control);
  REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
  CHECK(result.slides[0].sums.windows == 172544);
  rusage usage{};
  REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  MESSAGE("peak resident set: " << usage.ru_maxrss / 1024 << " MiB, " << result.seconds << " s");
  CHECK(usage.ru_maxrss <= 1024 * 1024);  // KiB
#endif
}
