// What goes wrong with GPUs, and what they have in common, with GPUs that are made up.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>

#include "runtime/cuda/resources.hpp"
#include "stages/pipeline.hpp"
#include "stages/source.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::FakeFailure;
using test::run;

namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

/// The machine is as it was when the test ends.
struct FakeMachine {
  explicit FakeMachine(const std::vector<std::size_t>& free_bytes) { test::fake_set_devices(free_bytes); }
  ~FakeMachine() {
    test::fake_recover();
    test::fake_dawdle(false);
    test::fake_set_devices({4 * gib, 4 * gib});
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
};

Config small_strips() {
  Config config = test::config_for(Backend::cuda);
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  config.pipeline.queue_depth = 3;
  config.gpu.memory_fraction = 0.4;
  return config;
}

/// What is left of a run in which a call failed: one line, and finished slides that are right.
void check_ended(const RunResult& result, const RunResult& expected) {
  CHECK(result.failure.find("CUDA: ") == 0);
  CHECK(result.failure.find('\n') == std::string::npos);
  for (const SlideResult& slide : result.slides) {
    if (!slide.done) {
      CHECK(slide.error.find("CUDA: ") != std::string::npos);
      continue;
    }
    const auto same = std::find_if(expected.slides.begin(), expected.slides.end(),
                                   [&](const SlideResult& other) { return other.path == slide.path; });
    test::check_same(slide, *same);
  }
}

}  // namespace

TEST_CASE("whichever call to a GPU fails, the run ends with one line and keeps what was finished") {
  const test::TemporaryFolder folder;
  // As many strips as wide ones have.
  const std::vector<std::string> slides = test::mixed_slides(folder, test::wide_or_few(6, 4), 140);
  for (const std::size_t devices : {1U, 2U, 3U}) {
    // With three, images are made as well, which a sanitizer looks at alone.
    if (devices < 3 && test::rounds(2) < 2) continue;
    const FakeMachine machine(std::vector<std::size_t>(devices, gib));
    Config config = small_strips();
    config.analysis.window = 128;
    config.pipeline.memory_mib = 16;
    if (devices == 3) {
      config.pipeline.memory_mib = 48;
      config.operators.run = {"spectrum", "identity"};
      config.image.format = ImageFormat::ome_tiff;
      config.output.dir = folder / "out";
    }
    const RunResult expected = run(config, slides);
    test::require_done(expected);
    test::fake_dawdle(devices == 2);
    for (const FakeFailure failure : {FakeFailure::once, FakeFailure::for_ever}) {
      int ended = 0;
      int number = 0;
      const auto reaches = [&] {
        CAPTURE(devices);
        CAPTURE(number);
        test::fake_fail_call(number, failure);
        bool reached = true;
        try {
          const RunResult result = run(config, slides);
          reached = test::fake_recover();
          if (result.failure.empty()) {
            // No call, or something that may fail: a time that was asked for, or giving something back.
            test::check_same(result, expected);
          } else {
            CHECK(reached);
            check_ended(result, expected);
            ++ended;
          }
        } catch (const CudaError& error) {
          // Nothing had begun.
          CHECK(std::string(error.what()).find("CUDA: ") == 0);
          test::fake_recover();
        }
        CHECK(test::fake_pinned() == 0);
        return reached;
      };
      while (reaches()) number += 1 + number / test::rounds(test::wide_or_few(8, 2));
      // Long steps may meet nothing but calls that may fail: others lie between them.
      while (ended < test::rounds(4) && number > 0) {
        number -= 1 + number / 16;
        reaches();
      }
      CHECK(ended >= test::rounds(4));
    }
  }
}

TEST_CASE("a run on the second GPU makes no context on the first") {
  const FakeMachine machine({gib, gib});
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::mixed_slides(folder, 3);
  Config config = small_strips();
  config.gpu.devices = {1};
  // A thread that has done nothing with CUDA before, as the program's own.
  std::thread([&] {
    wake_up(config);
    check_runnable(config);
    test::require_done(run(config, slides));
  }).join();
  CHECK(test::fake_contexts().contains(1));
  CHECK_FALSE(test::fake_contexts().contains(0));
}

TEST_CASE("a thread that uses a GPU has it again after a run on another") {
  const FakeMachine machine({gib, gib});
  Config config = small_strips();
  config.gpu.devices = {1};
  int device = -1;
  std::thread([&] {
    cudaSetDevice(0);
    check_runnable(config);
    cudaGetDevice(&device);
  }).join();
  CHECK(device == 0);
}

TEST_CASE("a run pins its ring and no more slots than it uses") {
  const FakeMachine machine({gib});
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::mixed_slides(folder, 1);
  Config config = test::config_for(Backend::cuda);
  config.pipeline.memory_mib = 64;
  config.pipeline.queue_depth = 16;
  config.gpu.memory_fraction = 0.8;
  const RunResult expected = run(config, slides);
  test::require_done(expected);
  std::size_t pinned = 0;
  RunControl control;
  wake_up(config);
  CHECK(test::fake_pinned() == 0);
  control.on_slide = [&](SlideResult&) { pinned = test::fake_pinned(); };
  test::check_same(run_pipeline(config, slides, control), expected);
  // The ring, and what its batches had.
  CHECK(pinned >= 2);
  CHECK(pinned <= 8);
  CHECK(test::fake_pinned() == 0);
}

TEST_CASE("results are the same whatever the size of the ring, and nothing stays pinned (long)") {
  const FakeMachine machine({gib, gib});
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::mixed_slides(folder, 6);
  Config config = small_strips();
  config.pipeline.memory_mib = 16;
  const RunResult expected = run(config, slides);
  test::require_done(expected);
  // One chunk of 64 KiB for each GPU is the least.
  for (const int devices : {1, 2}) {
    for (const int mib : {1, 2, 9}) {
      CAPTURE(mib);
      config.gpu.staging_mib = mib;
      config.gpu.devices = devices == 1 ? std::vector<int>{1} : std::vector<int>{0, 1};
      test::check_same(run(config, slides), expected);
      CHECK(test::fake_pinned() == 0);
    }
  }
}

TEST_CASE("more GPUs than there is work for, and none of it (long)") {
  const FakeMachine machine(std::vector<std::size_t>(5, gib));
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 400, 9);
  test::write_test_slide(folder / "small.tif", image);
  const std::vector<std::string> slides = test::mixed_slides(folder, 3);
  for (const SplitSlides split : {SplitSlides::never, SplitSlides::automatic, SplitSlides::always}) {
    Config one = small_strips();
    one.gpu.devices = {0};
    one.gpu.split_slides = SplitSlides::never;
    Config config = small_strips();
    config.gpu.split_slides = split;
    CHECK(run(config, {}).slides.empty());
    for (const std::vector<std::string>& some :
         {std::vector<std::string>{folder / "small.tif"}, {folder / "absent.tif"}, slides}) {
      const RunResult result = run(config, some);
      CHECK(result.devices == 5);
      test::check_same(result, run(one, some));
    }
  }
}

TEST_CASE("each GPU gets one fragment of a slide, also where the first could take several at once") {
  const FakeMachine machine(std::vector<std::size_t>(4, gib));
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(512, 2048, 9);
  test::write_test_slide(folder / "one.tif", image);
  Config config = small_strips();
  config.pipeline.queue_depth = 16;
  config.gpu.split_slides = SplitSlides::always;
  // Nothing is read before all strips were sent: no GPU is done with its fragment before the others asked for one.
  struct Sent {
    std::size_t all;
    std::mutex mutex{};
    std::condition_variable changed{};
    std::size_t strips = 1;  // the first has no fault to inject when it is sent

    static void look(void* data, const char* stage, const std::string&, std::size_t strip) {
      auto& self = *static_cast<Sent*>(data);
      std::unique_lock lock(self.mutex);
      if (std::strcmp(stage, "source") == 0 && strip > 0) {
        ++self.strips;
        self.changed.notify_all();
      } else if (std::strcmp(stage, "read") == 0) {
        const bool sent =
            self.changed.wait_for(lock, std::chrono::seconds(60), [&] { return self.strips >= self.all; });
        if (!sent) throw Error("not all strips were sent");
      }
    }
  };
  Sent counted{1};
  test::require_done(run(config, {folder / "one.tif"}, {Sent::look, &counted}));
  test::fake_set_devices(std::vector<std::size_t>(4, gib));
  Sent held{counted.strips};
  test::require_done(run(config, {folder / "one.tif"}, {Sent::look, &held}));
  CHECK(counted.strips >= 16);
  const std::map<int, std::size_t> kernels = test::fake_kernels();
  REQUIRE(kernels.size() == 4);
  for (const auto& device : kernels) {
    CAPTURE(device.first);
    CAPTURE(device.second);
    CHECK(device.second * 3 > kernels.at(0) * 2);
    CHECK(device.second * 2 < kernels.at(0) * 3);
  }
}

TEST_CASE("a fragment is left to others where there are some, and where the lane has more than one strip to do") {
  Chain chain;
  chain.strips_sent = 5;
  chain.strips_reduced = 3;
  const std::vector<const Chain*> some{&chain, nullptr, &chain};
  CHECK(is_left_to_others(some, 0));
  CHECK(!is_left_to_others(some, 1));
  CHECK(!is_left_to_others({&chain, &chain}, 0));
  CHECK(!is_left_to_others({&chain}, 0));
  chain.strips_reduced = 4;
  CHECK(!is_left_to_others(some, 0));
}

TEST_CASE("batches fit the GPU that has the least memory free") {
  if (test::left_to_release()) return;
  const test::TemporaryFolder folder;
  // JPEG, which takes little of a slot and much of a plane.
  std::vector<std::string> slides;
  for (int i = 0; i < 2; ++i) {
    test::Image image{3000, 3000, std::vector<std::uint8_t>(3000 * 3000)};
    for (std::size_t at = 0; at < image.pixels.size(); ++at) {
      image.pixels[at] = static_cast<std::uint8_t>(at % 3000 / 32 + at / 3000 / 32 + static_cast<std::size_t>(i) * 9);
    }
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image, {.tile_width = 256, .tile_height = 256, .coding = test::Coding::jpeg});
  }
  Config config = test::config_for(Backend::cuda);
  config.gpu.memory_fraction = 0.8;
  config.pipeline.memory_mib = 2;
  config.pipeline.queue_depth = 1;
  config.gpu.split_slides = SplitSlides::never;
  const RunResult expected = [&] {
    const FakeMachine machine({gib, gib});
    return run(config, slides);
  }();
  test::require_done(expected);
  const std::size_t little = 95 << 20;  // with most of it for scratch
  for (const std::vector<std::size_t>& free : {std::vector<std::size_t>{gib, little}, {little, gib}}) {
    const FakeMachine machine(free);
    test::check_same(run(config, slides), expected);
  }
}

TEST_CASE("a forecast counts the maps of all slides that are open at a time") {
  if (test::left_to_release()) return;
  const FakeMachine machine({4 * gib});
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 50);
  const Config config = small_strips();
  const RunForecast forecast = forecast_run(config, slides);
  const RunResult first = run(config, {slides[0]});
  const std::size_t maps = forecast.maps_bytes / (first.slides[0].map.values.size() * sizeof(float));
  std::atomic<std::size_t> started{0};
  std::size_t ended = 0;
  std::size_t most_open = 0;
  RunControl control;
  control.on_start = [&](const std::string&) { ++started; };
  control.on_slide = [&](SlideResult&) {
    if (ended == 10) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    most_open = std::max(most_open, started.load() - ended++);
  };
  run_pipeline(config, slides, control);
  CHECK(most_open <= maps);
  CHECK(maps < slides.size());
}

TEST_CASE("a device that is lost ends the run, also when its slides have failed for other reasons") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::mixed_slides(folder, 1);
  const FakeMachine machine({gib});
  const FaultInjection fault = {[](void*, const char* stage, const std::string&, std::size_t strip) {
                                  if (std::strcmp(stage, "carry") != 0 || strip != 2) return;
                                  test::fake_fail_call(0, FakeFailure::for_ever);
                                  throw Error("planted");
                                },
                                nullptr};
  const RunResult result = run(small_strips(), slides, fault);
  CHECK(result.failure.find("CUDA: ") == 0);
  // Strips before the one that failed go on, and may meet the device's end.
  const std::string& error = result.slides[0].error;
  CHECK_MESSAGE((error == "carry: planted" || error.find(": CUDA: ") != std::string::npos), error);
}
