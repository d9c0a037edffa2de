#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/operator.hpp>
#include <slidestream/pipeline.hpp>

namespace slidestream {

/// Faults to inject, for tests: called at the start of each stage's work on a strip ("source", "read", "decode",
/// "carry", "compute", "reduce"), from any thread. What it throws becomes that stage's failure.
struct FaultInjection {
  void (*fault)(void* data, const char* stage, const std::string& path, std::size_t strip) = nullptr;
  void* data = nullptr;
  /// Run in place of those that the configuration names, unless empty.
  std::vector<std::shared_ptr<const Operator>> operators = {};
  /// In place of `RunContext::time_to_end`.
  std::optional<std::chrono::nanoseconds> time_to_end = {};
};

/// `run_pipeline` with faults.
RunResult run_pipeline_with_faults(const Config& config, const std::vector<std::string>& slides, RunControl& control,
                                   const FaultInjection& faults);

}  // namespace slidestream
