#include "stages/run/images_under_way.hpp"

#include <utility>

#include "sink/image_sink.hpp"

namespace slidestream {

void ImagesUnderWay::add(const void* owner, std::vector<Image> images) {
  const std::lock_guard lock(mutex_);
  for (Image& image : images) images_.push_back({owner, std::move(image)});
}

void ImagesUnderWay::remove(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(images_, [&](const Owned& owned) {
    if (owned.owner != owner) return false;
    ended_tiles_ += static_cast<std::uint64_t>(owned.image.sink->written());
    ended_bytes_ += owned.image.sink->written_bytes();
    return true;
  });
}

void ImagesUnderWay::tell(Progress& progress) const {
  const std::lock_guard lock(mutex_);
  progress.tiles_written = ended_tiles_;
  progress.bytes_written = ended_bytes_;
  for (const auto& [owner, image] : images_) {
    const ImageProgress now = {image.slide, image.file, static_cast<std::uint64_t>(image.sink->written()),
                               static_cast<std::uint64_t>(image.sink->layout().tiles()), image.sink->written_bytes()};
    progress.tiles_written += now.tiles;
    progress.bytes_written += now.bytes;
    progress.images.push_back(now);
  }
}

}  // namespace slidestream
