#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <slidestream/results.hpp>

#include "runtime/stage_contract.hpp"
#include "stages/batch.hpp"

namespace slidestream {

/// Adds partial sums to slides and slides to the corpus: integers, so that order can't change them.
class ReduceStage {
 public:
  virtual ~ReduceStage() = default;
  /// Takes a batch's sums and gives its slot back. One caller at a time.
  virtual void run(Batch& batch) = 0;
  virtual std::uint64_t slides_done() const noexcept = 0;
  virtual std::uint64_t slides_failed() const noexcept = 0;
  /// Moves the finished slides, in input order, and the corpus into `result`, after the run.
  virtual void finish(RunResult& result) = 0;
};

extern const runtime::StageContract reduce_contract;

/// `on_slide` is called for every finished slide; what it throws reaches `on_error` and ends the run.
std::unique_ptr<ReduceStage> make_reduce_stage(RunContext& context, std::size_t slides,
                                               std::function<void(SlideResult&)> on_slide,
                                               std::function<void(std::exception_ptr)> on_error);

}  // namespace slidestream
