#pragma once

#include <memory>

#include "runtime/stage_contract.hpp"
#include "spectrum/engine.hpp"
#include "stages/batch.hpp"

namespace slidestream {

/// Some window columns of a batch: one task.
struct ComputeTask {
  Batch* batch = nullptr;
  WindowBlock block;
};

/// Turns complete batches into partial sums, on the CPU.
class ComputeStage {
 public:
  virtual ~ComputeStage() = default;
  /// Number of tasks that the batch is worth; 0 when it completes no window.
  virtual std::size_t tasks(const Batch& batch) const = 0;
  virtual ComputeTask task(Batch& batch, std::size_t i) const = 0;
  /// Adds the task's windows to the batch's sums; thread-safe. A failure fails the batch's slide.
  virtual void run(const ComputeTask& task) = 0;
  /// The engine's name, for logs.
  virtual const char* engine() const noexcept = 0;
};

extern const runtime::StageContract compute_contract;

/// \throws ConfigError when the transform can't be planned.
std::unique_ptr<ComputeStage> make_compute_stage(RunContext& context);

}  // namespace slidestream
