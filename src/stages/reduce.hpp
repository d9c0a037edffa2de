#pragma once

#include <memory>

#include <slidestream/results.hpp>

#include "runtime/stage_contract.hpp"
#include "stages/batch.hpp"
#include "stages/delivery.hpp"

namespace slidestream {

/// Adds partial sums to slides and slides to the corpus: integers, so that order can't change them.
class ReduceStage {
 public:
  virtual ~ReduceStage() = default;
  /// Takes a batch's sums and gives its slot back, or hands it on with the slide that it finished. One caller at a
  /// time.
  virtual void run(Batch& batch) = 0;
  /// Moves the corpus into `result`, after the run.
  virtual void finish(RunResult& result) = 0;
};

extern const runtime::StageContract reduce_contract;

/// Every finished slide goes to `delivery`.
std::unique_ptr<ReduceStage> make_reduce_stage(RunContext& context, Delivery& delivery);

}  // namespace slidestream
