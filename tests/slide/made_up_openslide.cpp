// A library that looks like OpenSlide and makes its pixels up: what it was asked for can be looked at.

#include "slide/made_up_openslide.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

using slidestream::test::MadeUpOpenSlide;

namespace {

MadeUpOpenSlide& state() {
  static auto& made = *new MadeUpOpenSlide;
  return made;
}

struct Handle {
  std::string error;
  std::atomic<int> users{0};
  std::vector<const char*> properties;
  std::vector<const char*> images;
  bool has_cache = false;
};

struct Cache {};

/// Notes two threads in one handle, and a handle that failed before.
class Use {
 public:
  explicit Use(Handle& handle) : handle_(handle) {
    const std::lock_guard lock(state().mutex);
    if (handle_.users++ > 0) ++state().shared;
    if (!handle_.error.empty()) ++state().used_after_error;
  }
  ~Use() { --handle_.users; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Handle& handle_;
};

}  // namespace

extern "C" {

MadeUpOpenSlide* made_up_openslide() { return &state(); }

const char* openslide_get_version() { return "4.9.made-up"; }

const char* openslide_detect_vendor(const char* file) {
  std::ifstream stream(file);
  std::string begin(7, ' ');
  stream.read(begin.data(), 7);
  return begin == "made up" || state().takes_all ? state().vendor.c_str() : nullptr;
}

Handle* openslide_open(const char* file) {
  if (openslide_detect_vendor(file) == nullptr) return nullptr;
  while (state().holds_open.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto* handle = new Handle;
  const std::lock_guard lock(state().mutex);
  ++state().opened;
  handle->error = state().open_error;
  for (const auto& [name, value] : state().properties) handle->properties.push_back(name.c_str());
  handle->properties.push_back(nullptr);
  for (const std::string& name : state().images) handle->images.push_back(name.c_str());
  handle->images.push_back(nullptr);
  return handle;
}

void openslide_close(Handle* handle) {
  const std::lock_guard lock(state().mutex);
  ++state().closed;
  delete handle;
}

const char* openslide_get_error(Handle* handle) { return handle->error.empty() ? nullptr : handle->error.c_str(); }

std::int32_t openslide_get_level_count(Handle*) { return static_cast<std::int32_t>(state().levels.size()); }

void openslide_get_level_dimensions(Handle*, std::int32_t level, std::int64_t* width, std::int64_t* height) {
  *width = state().levels.at(static_cast<std::size_t>(level)).width;
  *height = state().levels.at(static_cast<std::size_t>(level)).height;
}

double openslide_get_level_downsample(Handle*, std::int32_t level) {
  return state().levels.at(static_cast<std::size_t>(level)).downsample;
}

void openslide_read_region(Handle* handle, std::uint32_t* to, std::int64_t x, std::int64_t y, std::int32_t level,
                           std::int64_t width, std::int64_t height) {
  const Use use(*handle);
  {
    const std::lock_guard lock(state().mutex);
    state().reads.push_back({x, y, level, width, height});
    if (!handle->has_cache) ++state().without_cache;
  }
  const double factor = state().levels.at(static_cast<std::size_t>(level)).downsample;
  std::memset(to, 0, static_cast<std::size_t>(4 * width * height));
  if (level == 0 && state().bad_x >= x && state().bad_x < x + width && state().bad_y >= y &&
      state().bad_y < y + height) {
    handle->error = state().read_error;
  }
  if (!handle->error.empty()) return;
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const auto at = [factor](std::int64_t begin, std::int64_t pixel) {
        return begin + std::llround(static_cast<double>(pixel) * factor);
      };
      *to++ = MadeUpOpenSlide::pixel(at(x, column), at(y, row));
    }
  }
}

const char* const* openslide_get_property_names(Handle* handle) { return handle->properties.data(); }

const char* openslide_get_property_value(Handle*, const char* name) {
  const auto found = state().properties.find(name);
  return found == state().properties.end() ? nullptr : found->second.c_str();
}

const char* const* openslide_get_associated_image_names(Handle* handle) { return handle->images.data(); }

void openslide_get_associated_image_dimensions(Handle*, const char* name, std::int64_t* width, std::int64_t* height) {
  *width = std::strcmp(name, "huge") == 0 ? std::int64_t{1} << 20 : 30;
  *height = std::strcmp(name, "huge") == 0 ? std::int64_t{1} << 20 : 20;
}

void openslide_read_associated_image(Handle* handle, const char* name, std::uint32_t* to) {
  const Use use(*handle);
  if (std::strcmp(name, "bad") == 0) handle->error = "no such bytes";
  for (std::int64_t i = 0; i < std::int64_t{30} * 20; ++i) to[i] = MadeUpOpenSlide::pixel(i % 30, i / 30);
}

std::int64_t openslide_get_icc_profile_size(Handle*) { return static_cast<std::int64_t>(state().icc.size()); }

void openslide_read_icc_profile(Handle*, void* to) { std::memcpy(to, state().icc.data(), state().icc.size()); }

Cache* openslide_cache_create(std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  ++state().caches;
  state().cached = bytes;
  return new Cache;
}

void openslide_cache_release(Cache* cache) {
  const std::lock_guard lock(state().mutex);
  --state().caches;
  delete cache;
}

void openslide_set_cache(Handle* handle, Cache*) { handle->has_cache = true; }

// What OpenSlide 3 is linked with has these.
using TiffHandler = void (*)(const char*, const char*, std::va_list);

TiffHandler TIFFSetWarningHandler(TiffHandler handler) {
  state().prints_warnings = handler != nullptr;
  return nullptr;
}

TiffHandler TIFFSetErrorHandler(TiffHandler handler) {
  state().prints_errors = handler != nullptr;
  return nullptr;
}
}
