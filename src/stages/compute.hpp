#pragma once

#include <memory>
#include <string>

#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Some columns of an operator's outputs of a batch: one task.
struct ComputeTask {
  Batch* batch = nullptr;
  std::size_t op = 0;
  OutputBlock block;
};

/// Has the operators' kernels make what complete batches hold, on the CPU.
class ComputeStage {
 public:
  virtual ~ComputeStage() = default;
  /// Number of tasks that the batch is worth; 0 when it completes no output.
  virtual std::size_t tasks(const Batch& batch) const = 0;
  virtual ComputeTask task(Batch& batch, std::size_t i) const = 0;
  /// Makes the task's outputs, and adds what adds up to the batch's sums; thread-safe. A failure fails the batch's
  /// slide.
  virtual void run(const ComputeTask& task) = 0;
  /// How operators compute, for logs.
  virtual std::string description() const = 0;
};

/// \throws ConfigError when the transform can't be planned.
std::unique_ptr<ComputeStage> make_compute_stage(RunContext& context);

}  // namespace slidestream
