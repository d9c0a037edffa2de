#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include <slidestream/trace.hpp>

namespace slidestream::runtime::cuda {

/// Has CUPTI note every kernel, copy and memset of this process, on all GPUs, from construction to `finish`. CUPTI's
/// library is loaded when the first one is made: machines that run programs only often lack it. One at a time.
class ActivityRecorder {
 public:
  /// Times count from `begin`. Never fails: what is missing is told by `finish`.
  ActivityRecorder(std::chrono::steady_clock::time_point begin, std::size_t most_records);
  ~ActivityRecorder();
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  /// Adds the records, their names, how many were lost, and the warning. Work that the GPUs haven't finished may be
  /// missing. Once.
  void finish(Trace& trace);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slidestream::runtime::cuda
