#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/host_array.hpp"

namespace slidestream::volume {

/// Sums of those planes of a volume that some but not all of their fragments were added to. A plane that is whole
/// leaves its memory to the next one, so that no more is taken than there are planes at a time. Thread-safe.
class PlaneSums {
 public:
  /// \param at_once  planes at a time, for which there is one block; more have blocks of their own
  /// \param planes  all that are begun and end; with the last one the block's memory is free
  PlaneSums(std::size_t plane, std::size_t at_once, std::size_t planes)
      : plane_(plane), at_once_(at_once), planes_(planes) {}

  /// Zeros for a plane that begins. \throws std::bad_alloc
  std::uint32_t* begin() {
    std::unique_lock lock(mutex_);
    if (!free_.empty()) {
      std::uint32_t* const sums = free_.back();
      free_.pop_back();
      lock.unlock();
      std::fill_n(sums, plane_, 0U);
      return sums;
    }
    if (used_ == at_once_) {
      more_.emplace_back(plane_);
      free_.reserve(at_once_ + more_.size());
      return more_.back().data();
    }
    if (block_.empty()) {
      block_ = runtime::HostArray<std::uint32_t>(plane_ * at_once_);
      free_.reserve(at_once_);
    }
    return block_.data() + plane_ * used_++;
  }

  /// A plane ends.
  void end(std::uint32_t* sums) {
    const std::lock_guard lock(mutex_);
    free_.push_back(sums);
    if (--planes_ > 0) return;
    free_.clear();
    more_.clear();
    block_ = {};
  }

 private:
  std::size_t plane_;
  std::size_t at_once_;
  std::size_t planes_;  ///< that didn't end
  std::mutex mutex_;    ///< of all but the first two
  std::size_t used_ = 0;
  runtime::HostArray<std::uint32_t> block_;
  std::vector<runtime::HostArray<std::uint32_t>> more_;
  std::vector<std::uint32_t*> free_;
};

}  // namespace slidestream::volume
