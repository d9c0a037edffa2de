#include <cupti.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

/// Calls that a running pipeline must not make: they take something, give something back, or wait for a whole device.
bool forbidden(std::string_view name) {
  static const std::vector<std::string_view> parts = {"Malloc",         "MemAlloc",     "Free",         "HostRegister",
                                                      "HostUnregister", "HostAlloc",    "StreamCreate", "EventCreate",
                                                      "StreamDestroy",  "EventDestroy", "Synchronize",  "ModuleLoad",
                                                      "CtxCreate",      "MemPool",      "GraphCreate"};
  if (name == "cudaEventSynchronize" || name == "cuEventSynchronize") return false;  // of one batch, on its own thread
  for (const std::string_view part : parts) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  // Copies and fills without a stream wait on the default one.
  static const std::set<std::string_view> blocking = {"cudaMemcpy",      "cudaMemcpy2D",    "cudaMemset",
                                                      "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemsetD8_v2"};
  return blocking.contains(name);
}

struct Counter {
  std::atomic<bool> counting{false};
  std::mutex mutex;
  std::map<std::string, int> calls;   // forbidden ones
  std::atomic<std::uint64_t> all{0};  // so that a listener that hears nothing is noticed

  static void CUPTIAPI heard(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    Counter& counter = *static_cast<Counter*>(user);
    const auto& info = *static_cast<const CUpti_CallbackData*>(data);
    if (!counter.counting.load() || info.callbackSite != CUPTI_API_ENTER || info.functionName == nullptr) return;
    ++counter.all;
    if (!forbidden(info.functionName)) return;
    const std::lock_guard lock(counter.mutex);
    ++counter.calls[info.functionName];
  }
};

/// The library's two entries that are needed, if it is there.
struct Cupti {
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiEnableDomain) enable_domain = nullptr;
  Cupti() {
    void* library = nullptr;
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW);
    }
    if (library == nullptr) return;
    subscribe = reinterpret_cast<decltype(subscribe)>(dlsym(library, "cuptiSubscribe"));
    enable_domain = reinterpret_cast<decltype(enable_domain)>(dlsym(library, "cuptiEnableDomain"));
  }
};

}  // namespace

TEST_CASE("after the first slide nothing is allocated, created or waited for device-wide") {
  const auto gpus = static_cast<std::uint64_t>(test::gpus_or_skip());
  if (gpus == 0) return;
  const Cupti cupti;
  if (cupti.subscribe == nullptr || cupti.enable_domain == nullptr) return test::report_skipped("no libcupti");
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(1500, 1700, 3);
  std::vector<std::string> slides;
  for (int i = 0; i < 120; ++i) {
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image, {.tile_width = 256, .tile_height = 256, .coding = test::Coding::jpeg});
  }
  for (const int window : {256, 128}) {
    CAPTURE(window);
    static Counter counter;
    static const bool subscribed = [&] {
      CUpti_SubscriberHandle handle = nullptr;
      return cupti.subscribe(&handle, &Counter::heard, &counter) == CUPTI_SUCCESS &&
             cupti.enable_domain(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS &&
             cupti.enable_domain(1, handle, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS;
    }();
    REQUIRE(subscribed);
    Config config;
    config.pipeline.backend = Backend::cuda;
    config.analysis.window = window;
    config.pipeline.strip_height = 256;
    config.pipeline.queue_depth = 2;
    config.gpu.split_slides = SplitSlides::never;
    std::size_t ended = 0;
    std::uint64_t taken = 0;
    // Slots are made when they are first used. Each has a range, and so has each GPU's ring.
    const std::uint64_t pinned_before = runtime::cuda::resource_counts().pinned_ranges;
    const std::uint64_t pinned_in_all = gpus * (static_cast<std::uint64_t>(config.pipeline.queue_depth) + 1);
    std::size_t steady_since = 0;
    RunControl control;
    // Every lane has done a slide by the fifth: after it, and with all slots ready, comes the steady state, before the
    // last it ends.
    control.on_slide = [&](SlideResult&) {
      ++ended;
      const std::uint64_t pinned = runtime::cuda::resource_counts().pinned_ranges - pinned_before;
      if (steady_since == 0 && ended >= 6 && pinned == pinned_in_all) {
        steady_since = ended;
        taken = runtime::cuda::resource_counts().total();
        counter.counting = true;
      }
      if (ended == slides.size()) {
        counter.counting = false;
        taken = runtime::cuda::resource_counts().total() - taken;
      }
    };
    const RunResult result = run_pipeline(config, slides, control);
    for (const SlideResult& slide : result.slides) REQUIRE_MESSAGE(slide.done, slide.error);
    CHECK(steady_since > 0);
    CHECK(steady_since < slides.size() / 2);
    CHECK(taken == 0);
    CHECK(counter.all.load() > 100);
    for (const auto& [name, count] : counter.calls) MESSAGE(name, " was called ", count, " times");
    CHECK(counter.calls.empty());
    // The listener does hear them: the run's end gives everything back.
    counter.calls.clear();
    counter.counting = true;
    { const runtime::cuda::DeviceMemory memory(1024); }
    counter.counting = false;
    CHECK(!counter.calls.empty());
    counter.calls.clear();
    counter.all = 0;
  }
}
