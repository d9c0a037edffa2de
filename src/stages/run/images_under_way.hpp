#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

namespace slidestream {

class ImageSink;

/// The images that a run is writing, for `Progress`. Thread-safe.
class ImagesUnderWay {
 public:
  struct Image {
    std::string slide;  ///< path of the slide that it is made of
    std::string file;   ///< name while it is written
    const ImageSink* sink = nullptr;
  };

  /// Adds images that `owner` writes. Their sinks live until `remove`.
  void add(const void* owner, std::vector<Image> images);
  /// Removes the images of `owner`. The tiles and bytes that they wrote stay counted.
  void remove(const void* owner) noexcept;

  /// Sets what `progress` says of images.
  void tell(Progress& progress) const;

 private:
  struct Owned {
    const void* owner = nullptr;
    Image image;
  };

  mutable std::mutex mutex_;
  std::vector<Owned> images_;      ///< in the order in which they were begun; guarded by mutex_
  std::uint64_t ended_tiles_ = 0;  ///< of images that were removed; guarded by mutex_
  std::uint64_t ended_bytes_ = 0;  ///< of images that were removed; guarded by mutex_
};

}  // namespace slidestream
