#include "stages/batch.hpp"

#include <exception>
#include <new>

namespace slidestream {

RunContext::RunContext(const Config& run_config, int run_threads)
    : config(run_config), threads(run_threads), limits(slot_limits(run_config.pipeline)) {}

std::vector<const runtime::StageMeter*> RunContext::meters() const {
  if (lanes_are_devices())
    return {&source, &read, &decode, &upload, &device_decode, &carry, &compute, &collect, &reduce};
  return {&source, &read, &decode, &carry, &compute, &reduce};
}

void SlideRun::fail(const char* stage, const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  result.error = std::string(stage) + ": " + cause;
  failed_.store(true, std::memory_order_release);
}

std::string current_cause(const std::string& path) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    std::string cause = error.what();
    const std::string prefix = path + ": ";
    if (cause.compare(0, prefix.size(), prefix) == 0) cause.erase(0, prefix.size());
    return cause;
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace slidestream
