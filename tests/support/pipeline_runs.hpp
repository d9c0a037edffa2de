#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "stages/gpu/gpu_set.hpp"
#include "stages/pipeline.hpp"
#include "support/made_up_gpus.hpp"
#include "support/random_pause.hpp"
#include "support/wide.hpp"

/// \file
/// Runs of the pipeline, for tests of its stages.

namespace slidestream::test {

/// A few threads, little memory, and maps.
inline Config config_for(Backend backend) {
  Config config;
  config.pipeline.backend = backend;
  config.pipeline.threads = backend == Backend::cpu ? 2 : 4;
  config.pipeline.memory_mib = 32;
  config.gpu.memory_fraction = 0.1;
  config.output.maps = MapFormat::npy;
  return config;
}

/// How often something random is tried: fewer times where a sanitizer makes each of them ten times as long.
constexpr int rounds(int usual) {
#ifdef SLIDESTREAM_SANITIZED
  return (usual + 3) / 4;
#else
  return usual;
#endif
}

/// Whether a case is left to builds without a sanitizer: it takes long there, and goes over many combinations of what
/// other cases go over once. None is where everything is gone over.
inline bool left_to_release() {
  if (rounds(4) == 4 || is_wide()) return false;
  MESSAGE("SKIPPED: goes over many combinations, which takes long with a sanitizer");
  return true;
}

/// The backends that there are here. Where GPUs are made up, theirs alone: the other is tried elsewhere.
inline std::vector<Backend> backends() {
  if (made_up_gpus()) return {Backend::cuda};
  if (choose_gpus({}).devices.empty()) return {Backend::cpu};
  return {Backend::cpu, Backend::cuda};
}

/// A run that nobody watches.
inline RunResult run(const Config& config, const std::vector<std::string>& slides, const FaultInjection& faults = {}) {
  RunControl control;
  return run_pipeline_with_faults(config, slides, control, faults);
}

struct Heard {
  RunResult result;
  std::vector<std::string> lines;  ///< of what was said, those about reading
};

/// A run of which somebody notes what it says about reading.
inline Heard run_and_listen(const Config& config, const std::vector<std::string>& slides,
                            const FaultInjection& faults = {}) {
  Heard heard;
  RunControl control;
  std::mutex mutex;
  control.on_message = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    if (line.find("input.io") != std::string::npos) heard.lines.push_back(line);
  };
  heard.result = run_pipeline_with_faults(config, slides, control, faults);
  return heard;
}

/// Every bit that a slide's result has, but for its time.
inline void check_same(const SlideResult& a, const SlideResult& b) {
  CHECK(a.path == b.path);
  CHECK(a.done == b.done);
  CHECK(a.error == b.error);
  CHECK(a.failure.stage == b.failure.stage);
  CHECK(a.failure.tile == b.failure.tile);
  CHECK(a.sums.histogram == b.sums.histogram);
  CHECK(a.sums.windows == b.sums.windows);
  CHECK(a.sums.values == b.sums.values);
  CHECK(a.sums.clipped == b.sums.clipped);
  CHECK(a.sums.sum == b.sums.sum);
  CHECK(a.sums.sum_of_squares == b.sums.sum_of_squares);
  CHECK(a.sums.counters == b.sums.counters);
  CHECK(a.map.values == b.map.values);
  CHECK(a.missing_tiles == b.missing_tiles);
  CHECK(a.bad_tiles == b.bad_tiles);
}

/// The same slides, the same bits, and the same corpus.
inline void check_same(const RunResult& a, const RunResult& b) {
  REQUIRE(a.slides.size() == b.slides.size());
  for (std::size_t i = 0; i < a.slides.size(); ++i) check_same(a.slides[i], b.slides[i]);
  CHECK(a.corpus.sum == b.corpus.sum);
  CHECK(a.corpus.histogram == b.corpus.histogram);
  CHECK(a.corpus.counters == b.corpus.counters);
}

inline void require_done(const RunResult& result) {
  for (const SlideResult& slide : result.slides) REQUIRE_MESSAGE(slide.done, slide.error);
}

/// Sleeps a moment in every stage, so that batches complete in another order each time.
inline const FaultInjection dawdling = {[](void*, const char*, const std::string&, std::size_t) { random_pause(); },
                                        nullptr};

/// Like `dawdling`, and holds a slide's opening until the run is told to stop, which leaves that slide in any case. A
/// minute is the most.
struct NotBeforeStop {
  const RunControl& control;
  std::string slide;

  FaultInjection injection() { return {hold, this}; }

 private:
  static void hold(void* data, const char* stage, const std::string& path, std::size_t strip) {
    const NotBeforeStop& held = *static_cast<const NotBeforeStop*>(data);
    random_pause();
    if (strip != 0 || path != held.slide || std::strcmp(stage, "source") != 0) return;
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!held.control.stop_requested() && std::chrono::steady_clock::now() < latest) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

/// The result of `run_with(limit)` for the shortest of some time limits, in seconds, under which it is as expected, or
/// for the longest. A busy machine may make sound slides late under a short limit. What is to be late must be so under
/// every limit; then what is wrong under one is wrong under all.
template <class Run, class IsExpected>
RunResult run_with_limits(const Run& run_with, const IsExpected& is_expected) {
  RunResult result;
  for (const int limit : {2, 10, 60}) {
    result = run_with(limit);
    if (is_expected(result)) break;
  }
  return result;
}

/// Throws in one stage at one strip of the slides whose name says "victim".
struct PlannedFault {
  const char* stage = nullptr;
  std::size_t strip = 0;
  bool out_of_memory = false;

  FaultInjection injection() { return {throw_it, this}; }
  std::string error() const { return std::string(stage) + ": " + (out_of_memory ? "out of memory" : "planted"); }

 private:
  static void throw_it(void* data, const char* stage, const std::string& path, std::size_t strip) {
    const PlannedFault& planned = *static_cast<const PlannedFault*>(data);
    if (path.find("victim") == std::string::npos || strip != planned.strip || std::strcmp(stage, planned.stage) != 0) {
      return;
    }
    if (planned.out_of_memory) throw std::bad_alloc();
    throw std::runtime_error("planted");
  }
};

}  // namespace slidestream::test
