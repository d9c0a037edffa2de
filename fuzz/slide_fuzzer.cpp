// Any bytes are a slide or an error of one line, and so is every tile of it.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

/// A file in memory with a path, filled anew for every input.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("slide", 0)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    require(descriptor_ >= 0);
  }

  void fill(const std::uint8_t* data, std::size_t size) const {
    require(ftruncate(descriptor_, 0) == 0);
    off_t offset = 0;
    while (size > 0) {
      const ssize_t written = pwrite(descriptor_, data, size, offset);
      require(written > 0);
      data += written;
      offset += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// Small enough that an input takes milliseconds, large enough for the real slides' tiles.
constexpr std::int64_t max_pixels = std::int64_t{1} << 23;
constexpr std::int64_t max_side = 256;

/// What reading says; "" when all is well.
template <class Read>
std::string error_of(const Read& read) {
  try {
    read();
    return "";
  } catch (const slidestream::SlideError& error) {
    require(std::string_view(error.what()).find_first_of("\r\n") == std::string_view::npos);
    return error.what();
  }
}

/// Decodes the corner of the level that begins at the given pixel, to luminance and to RGB.
void decode(const slidestream::Slide& slide, std::size_t index, std::int64_t x, std::int64_t y) {
  const slidestream::Level& level = slide.info().levels[index];
  const std::int64_t width = std::min(max_side, level.width - x);
  const std::int64_t height = std::min(max_side, level.height - y);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height));
  std::vector<std::uint8_t> rgb(3 * pixels.size());
  const std::string luminance_error = error_of([&] {
    slidestream::read_luminance(slide, index, x, y, {pixels.data(), width, width, height});
  });
  const std::string rgb_error = error_of([&] {
    slidestream::read_rgb(slide, index, x, y, {rgb.data(), 3 * width, width, height, slidestream::rgb_format});
  });
  // RGB needs all that luminance needs.
  require(luminance_error.empty() || !rgb_error.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.fill(data, size);
  try {
    const auto slide = slidestream::Slide::open(file.path(), {.max_pixels = max_pixels});
    for (std::size_t index = 0; index < slide->info().levels.size(); ++index) {
      const slidestream::Level& level = slide->info().levels[index];
      require(level.width > 0 && level.height > 0 && level.columns > 0 && level.rows > 0);
      decode(*slide, index, 0, 0);
      decode(*slide, index, level.width - 1, level.height - 1);
    }
  } catch (const slidestream::SlideError& error) {
    require(std::string_view(error.what()).find_first_of("\r\n") == std::string_view::npos);
  }
  return 0;
}
