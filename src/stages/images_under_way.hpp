#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <slidestream/pipeline.hpp>

namespace slidestream {

class SlideImages;

/// The images that a run is writing, for those who watch it. Thread-safe.
class ImagesUnderWay {
 public:
  /// It is removed before it goes; what is in `SlideImages::images` stays the same meanwhile.
  void add(const SlideImages& images);
  /// What it wrote stays counted.
  void remove(const SlideImages& images) noexcept;

  /// Sets what is known of images.
  void tell(Progress& progress) const;

 private:
  mutable std::mutex mutex_;
  std::vector<const SlideImages*> slides_;  ///< in the order in which they were begun; guarded by mutex_
  std::uint64_t ended_tiles_ = 0;           ///< of images that aren't under way any more; guarded by mutex_
  std::uint64_t ended_bytes_ = 0;           ///< the same; guarded by mutex_
};

}  // namespace slidestream
