// What is slow after a slide's end holds up neither other slides nor memory.
#include "stages/delivery.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>

#include "stages/source.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::config_for;

namespace {

/// Waits for what other threads are about to do; false when it never comes.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

SlideResult result_named(const std::string& path, bool done) {
  SlideResult result;
  result.path = path;
  result.done = done;
  return result;
}

}  // namespace

TEST_CASE("results are handed over in the order they came in, and those that wait beyond a few keep their slots") {
  constexpr std::size_t count = 9;
  const std::size_t few = Delivery::most_waiting(1);
  runtime::SlotPool pool(count, 64);
  tbb::flow::graph graph;
  runtime::GraphLifetime lifetime;
  std::binary_semaphore go(0);
  std::vector<std::string> order;
  std::vector<std::string> errors;
  const auto on_slide = [&](SlideResult& slide) {
    if (order.empty()) go.acquire();
    order.push_back(slide.path);
    if (slide.path == "3") throw std::runtime_error("no room for 3");
    // It may turn out to be a failure yet.
    if (slide.path == "5") slide.fail({"source", {}, "changed"});
  };
  const auto on_error = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      errors.emplace_back(exception.what());
    }
  };
  std::vector<std::size_t> pauses;
  const auto on_pause = [&] {
    pauses.push_back(order.size());
    if (pauses.size() == 2) throw std::runtime_error("no commit");
  };
  Delivery delivery(count, 1, {on_slide, on_pause}, on_error, graph, lifetime);
  lifetime.begin();
  for (std::size_t i = 0; i < count; ++i) {
    delivery.put(result_named(std::to_string(i), true), count - 1 - i, *pool.try_acquire());
    CHECK(pool.checked_out() == i + 1 - std::min(i + 1, few));
  }
  CHECK(delivery.slides_done() == 0);
  go.release();
  // The graph waits for all of them.
  graph.wait_for_all();
  lifetime.end();
  CHECK(pool.checked_out() == 0);
  CHECK(order == std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8"});
  CHECK(errors == std::vector<std::string>{"no room for 3", "no commit"});
  // All waited behind the first: a pause as soon as so many were put off, and one at the end.
  static_assert(count == Delivery::most_put_off + 1);
  CHECK(pauses == std::vector<std::size_t>{Delivery::most_put_off, count});
  CHECK(delivery.slides_done() == count - 1);
  CHECK(delivery.slides_failed() == 1);
  RunResult run;
  delivery.finish(run);
  REQUIRE(run.slides.size() == count);
  CHECK(run.slides[0].path == "8");
  CHECK(run.slides[3].error == "source: changed");
}

TEST_CASE("a slow end of a slide leaves the workers to the others, and few results wait for it (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 60);
    Config config = config_for(backend);
    config.pipeline.queue_depth = 3;
    config.gpu.split_slides = SplitSlides::never;
    // The only one: were it held up, nothing could go on.
    config.pipeline.threads = 1;
    static std::atomic<std::size_t> reduced;
    reduced = 0;
    const FaultInjection count = {[](void*, const char* stage, const std::string&, std::size_t) {
                                    if (std::strcmp(stage, "reduce") == 0) ++reduced;
                                  },
                                  nullptr};
    const RunResult expected = test::run(config, slides, count);
    const std::size_t batches = reduced / slides.size();
    const auto lanes = static_cast<std::size_t>(std::max(1, expected.devices));
    // While the first is handed over: results wait, and then all slots are theirs.
    const std::size_t finished = Delivery::most_waiting(lanes) + 3 * lanes;
    const std::size_t open =
        most_open_slides(3 * lanes, lanes, backend == Backend::cuda) + Delivery::most_waiting(lanes);
    REQUIRE(open < slides.size());
    reduced = 0;
    std::atomic<std::size_t> started{0};
    std::size_t ended = 0;
    std::size_t most_open = 0;
    bool others_go_on = false;
    bool others_stand_still = false;
    RunControl control;
    control.on_start = [&](const std::string&) { ++started; };
    control.on_slide = [&](SlideResult&) {
      if (ended == 0) {
        others_go_on = comes_true([&] { return reduced >= finished * batches; });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        others_stand_still = reduced == finished * batches;
      }
      most_open = std::max(most_open, started.load() - ended++);
    };
    const RunResult result = run_pipeline_with_faults(config, slides, control, count);
    CHECK(others_go_on);
    CHECK(others_stand_still);
    CHECK(ended == slides.size());
    CHECK(most_open <= open);
    test::check_same(result, expected);
  }
}

TEST_CASE("what can't be kept ends the run, and what was finished before is handed over") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 60);
    Config config = config_for(backend);
    config.pipeline.queue_depth = 3;
    std::size_t seen = 0;
    RunControl control;
    control.on_slide = [&](SlideResult&) {
      if (++seen == 4) throw OutputError("run.sqlite: disk I/O error");
    };
    CHECK_THROWS_WITH_AS(run_pipeline(config, slides, control), "run.sqlite: disk I/O error", OutputError);
    CHECK(control.stop_requested());
    CHECK(seen >= 4);
    CHECK(seen < slides.size());
  }
}
