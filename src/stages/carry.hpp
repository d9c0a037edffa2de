#pragma once

#include <memory>
#include <vector>

#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Puts decoded batches of each chain into row order. On the host it also completes them with the rows that the strip
/// before left for them, so that computing a batch needs nothing but its slot; on a device the stream does that.
class CarryStage {
 public:
  virtual ~CarryStage() = default;
  /// Takes a decoded batch and appends to `ready` every batch that is complete now, in row order: this one and those
  /// that waited for it, or none. One caller at a time.
  virtual void run(std::vector<Batch*>& ready, Batch& batch) = 0;
};

std::unique_ptr<CarryStage> make_carry_stage(RunContext& context);
/// Order alone.
std::unique_ptr<CarryStage> make_device_carry_stage(RunContext& context);

}  // namespace slidestream
