#pragma once

#include <cstdint>

#include "runtime/trace.hpp"
#include "stages/run/batch.hpp"

namespace slidestream {

/// What a stage's ranges say of the batch that they work on. Batches of a slide are numbered by their strips.
inline runtime::RangePayload payload_of(const SlideRun& slide, std::size_t strip_index) noexcept {
  return {static_cast<std::int64_t>(slide.index), static_cast<std::int64_t>(strip_index)};
}
inline runtime::RangePayload payload_of(const Batch& batch) noexcept {
  return payload_of(*batch.slide, batch.strip_index);
}

}  // namespace slidestream
