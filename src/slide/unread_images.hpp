#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace slidestream {

/// Images of a file that are no levels and that share a line, as there may be thousands.
struct UnreadImages {
  std::uint64_t width = 0;  ///< of the first
  std::uint64_t height = 0;
  std::string what;           ///< it is, such as "is no level of the slide"
  std::size_t others = 0;     ///< beside the first
  std::string kind_of_other;  ///< such as " more so large"
  std::size_t smaller = 0;
};

/// Of an image of which another one of its size is the level.
inline constexpr const char* size_of_level_before = "has the size of a level before it";

/// Whether an image has less than a quarter of the slide's pixels. Such images are counted, but get no line.
bool is_small_beside(std::uint64_t width, std::uint64_t height, std::uint64_t slide_width, std::uint64_t slide_height);

std::string unread_line(const UnreadImages& images);

}  // namespace slidestream
