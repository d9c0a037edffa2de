#pragma once

#include <memory>

#include <slidestream/results.hpp>

#include "stages/delivery.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

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

/// Every finished slide goes to `delivery`.
std::unique_ptr<ReduceStage> make_reduce_stage(RunContext& context, Delivery& delivery);

}  // namespace slidestream
