#pragma once

#include <memory>
#include <vector>

#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Consecutive tiles of a batch: one task.
struct TileRun {
  Batch* batch = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Turns compressed tiles into rows of 8-bit luminance, on the CPU.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  /// Number of tasks that the batch is worth; 0 when there is nothing to decode. Task `i` is `task(batch, i)`.
  virtual std::size_t tasks(const Batch& batch) const = 0;
  virtual TileRun task(Batch& batch, std::size_t i) const = 0;
  /// Decodes one run of tiles, or describes them to the device that decodes them; thread-safe. A failure fails the
  /// batch's slide.
  virtual void run(const TileRun& tiles) = 0;
  /// Decodes flagged tiles [first, first + count) of the run's batch into its room for patches, where they stand one
  /// behind the other from the first that is being patched on.
  virtual void run_flagged(const TileRun& tiles) = 0;
};

std::unique_ptr<DecodeStage> make_decode_stage(RunContext& context);

}  // namespace slidestream
