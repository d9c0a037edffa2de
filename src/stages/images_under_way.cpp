#include "stages/images_under_way.hpp"

#include "sink/partial_file.hpp"
#include "stages/slide_images.hpp"

namespace slidestream {

void ImagesUnderWay::add(const SlideImages& images) {
  const std::lock_guard lock(mutex_);
  slides_.push_back(&images);
}

void ImagesUnderWay::remove(const SlideImages& images) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(slides_, &images);
  for (const SlideImages::Image& image : images.images) {
    ended_tiles_ += static_cast<std::uint64_t>(image.sink->written());
    ended_bytes_ += image.sink->written_bytes();
  }
}

void ImagesUnderWay::tell(Progress& progress) const {
  const std::lock_guard lock(mutex_);
  progress.tiles_written = ended_tiles_;
  progress.bytes_written = ended_bytes_;
  for (const SlideImages* slide : slides_) {
    for (const SlideImages::Image& image : slide->images) {
      const ImageSink& sink = *image.sink;
      const ImageProgress now = {slide->slide(), partial_name(image.artifact.file).string(),
                                 static_cast<std::uint64_t>(sink.written()),
                                 static_cast<std::uint64_t>(sink.layout().tiles()), sink.written_bytes()};
      progress.tiles_written += now.tiles;
      progress.bytes_written += now.bytes;
      progress.images.push_back(now);
    }
  }
}

}  // namespace slidestream
