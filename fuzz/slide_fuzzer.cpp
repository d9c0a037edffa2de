// Any bytes are a slide or an error of one line, and so is every tile of it. Opening takes a second at most, and 64 MiB
// besides twice the file's size.

#include <fcntl.h>
#include <unistd.h>

#include <sanitizer/allocator_interface.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/decode_memory.hpp"

namespace {

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

/// Small enough that an input takes milliseconds, large enough for the real slides' tiles.
constexpr std::int64_t max_pixels = std::int64_t{1} << 23;
constexpr std::int64_t max_side = 256;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What is allocated, and the most that was since `most` was set. Only AddressSanitizer tells.
std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> most_allocated{0};

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
void note_malloc(const volatile void*, std::size_t bytes) {
  const std::size_t now = allocated += bytes;
  if (now > most_allocated) most_allocated = now;
}
void note_free(const volatile void* at) { allocated -= __sanitizer_get_allocated_size(at); }
const int hooks = __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
#endif
#endif

std::shared_ptr<const slidestream::Slide> open(const std::string& path, std::size_t size) {
  const double begin = processor_seconds();
  const std::size_t before = allocated;
  most_allocated = before;
  const auto check = [&] {
    require(processor_seconds() - begin <= 1.0);
    // What hooks didn't see being allocated may be freed.
    require(most_allocated < before || most_allocated - before <= (std::size_t{64} << 20) + 2 * size);
  };
  try {
    auto slide = slidestream::Slide::open(
        path, {.max_pixels = max_pixels,
               .decode_memory = std::make_shared<slidestream::DecodeMemory>(std::uint64_t{64} << 20),
               .openslide = "never",
               .to_srgb = size % 2 == 1});
    check();
    return slide;
  } catch (const slidestream::SlideError&) {
    check();
    throw;
  }
}

/// A file in memory, filled anew for every input. It is alone in its folder, as formats of several files look there.
class MemoryFile {
 public:
  MemoryFile() {
    char folder[] = "/dev/shm/slide-fuzzer-XXXXXX";
    require(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path_ = folder_ + "/slide";
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(descriptor_ >= 0);
  }
  ~MemoryFile() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

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
  int descriptor_ = -1;
  std::string folder_;
  std::string path_;
};

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
    const auto slide = open(file.path(), size);
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
