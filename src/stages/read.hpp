#pragma once

#include <memory>

#include "runtime/stage_contract.hpp"
#include "stages/batch.hpp"

namespace slidestream {

/// Fills a batch's slot with the compressed bytes of its tiles, by positional reads.
class ReadStage {
 public:
  virtual ~ReadStage() = default;
  /// Thread-safe for different batches; may block on storage. A failure fails the batch's slide.
  virtual void run(Batch& batch) = 0;
};

extern const runtime::StageContract read_contract;

std::unique_ptr<ReadStage> make_read_stage(RunContext& context);

}  // namespace slidestream
