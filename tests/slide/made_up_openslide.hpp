#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace slidestream::test {

/// What made_up_openslide.cpp, which stands in for OpenSlide's library, gives and was asked for; its
/// `made_up_openslide` gives it. It takes files that begin with "made up".
struct MadeUpOpenSlide {
  struct MadeUpLevel {
    std::int64_t width = 0;
    std::int64_t height = 0;
    double downsample = 1.0;
  };
  /// A rectangle that was read, by the library's coordinates.
  struct Read {
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int32_t level = 0;
    std::int64_t width = 0;
    std::int64_t height = 0;
    auto operator<=>(const Read&) const = default;
  };

  // What it gives.
  std::vector<MadeUpLevel> levels;
  std::map<std::string, std::string> properties;
  std::vector<std::string> images;
  std::vector<unsigned char> icc;
  std::string open_error;
  bool takes_all = false;               ///< any file
  std::atomic<bool> holds_open{false};  ///< opening waits for the end of it
  std::string vendor = "made-up";
  std::string read_error = "a\nbad tile";
  /// Rectangles of level 0 with this pixel of level 0 in them fail; negative: none.
  std::int64_t bad_x = -1;
  std::int64_t bad_y = -1;

  // What it saw.
  std::mutex mutex;  ///< of what follows
  int opened = 0;
  int closed = 0;
  int shared = 0;  ///< times that two threads had one handle
  int used_after_error = 0;
  int caches = 0;          ///< made and not released
  std::size_t cached = 0;  ///< bytes of the last one
  int without_cache = 0;   ///< reads by a handle that was given none
  std::vector<Read> reads;
  bool prints_warnings = true;  ///< its libtiff does
  bool prints_errors = true;

  /// The pixel at a place of level 0: premultiplied alpha, red, green, blue. All alphas occur.
  static constexpr std::uint32_t pixel(std::int64_t x, std::int64_t y) {
    const auto hash = static_cast<std::uint32_t>(x * 2654435761 + y * 40503 + (x ^ y) * 97);
    const std::uint32_t kind = hash >> 28;
    const std::uint32_t alpha = kind < 4 ? 255 : kind < 8 ? 0 : hash >> 20 & 255;
    const auto sample = [alpha](std::uint32_t value) { return (value & 255) * alpha / 255; };
    return alpha << 24 | sample(hash) << 16 | sample(hash >> 7) << 8 | sample(hash >> 13);
  }
};

}  // namespace slidestream::test
