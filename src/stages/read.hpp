#pragma once

#include <cstddef>
#include <memory>

#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Fills a batch's slot with the compressed bytes of its tiles, by positional reads.
class ReadStage {
 public:
  virtual ~ReadStage() = default;
  /// Lays the slot out. Thread-safe for different batches. \returns how many threads may read at the same time; 0 when
  /// there is nothing to read. A failure fails the batch's slide.
  virtual std::size_t begin(Batch& batch) = 0;
  /// Reads the next part that no other thread has taken; may block on storage. Thread-safe. \returns false when there
  /// was none, or the slide has failed.
  virtual bool run(Batch& batch) = 0;
  /// Reads flagged tiles [patched, patched + patching), of which the device has the bytes alone, into the host's slot;
  /// may block on storage. Thread-safe for different batches. A failure fails the batch's slide.
  virtual void read_again(Batch& batch) = 0;
};

std::unique_ptr<ReadStage> make_read_stage(RunContext& context);

}  // namespace slidestream
