#include "slide/unread_images.hpp"

namespace slidestream {

bool is_small_beside(std::uint64_t width, std::uint64_t height, std::uint64_t slide_width, std::uint64_t slide_height) {
  return static_cast<double>(width) * static_cast<double>(height) <
         static_cast<double>(slide_width) * static_cast<double>(slide_height) / 4.0;
}

std::string unread_line(const UnreadImages& images) {
  const auto nor = [](std::size_t count, const std::string& kind) {
    return count == 0 ? std::string() : ", nor " + std::to_string(count) + kind;
  };
  return "the image of " + std::to_string(images.width) + " x " + std::to_string(images.height) + " pixels " +
         images.what + ": it isn't read" + nor(images.others, images.kind_of_other) + nor(images.smaller, " smaller");
}

}  // namespace slidestream
