#include "slide/tiff/ome_image.hpp"

#include <utility>

#include "slide/channels.hpp"

namespace slidestream {
namespace {

/// Where a plane is along an axis, from 0.
std::size_t place_along(const OmeImage& image, std::size_t plane, char wanted) {
  for (const char axis : image.order.substr(2)) {
    const std::size_t size = image.size_along(axis);
    if (axis == wanted) return plane % size;
    plane /= size;
  }
  return 0;
}

}  // namespace

std::size_t OmeImage::size_along(char axis) const noexcept {
  if (axis == 'C') return planes / (depths * times);
  return axis == 'Z' ? depths : times;
}

std::vector<std::string> plane_names(const OmeImage& image) {
  if (image.depths * image.times == 1) return image.channels;
  // Each stands in many planes' names.
  std::vector<std::string> channels;
  for (const std::string& name : image.channels) channels.push_back(short_name(name));
  std::vector<std::string> names;
  for (std::size_t plane = 0; plane < image.planes; ++plane) {
    const auto along = [&](char axis) { return place_along(image, plane, axis); };
    std::string name;
    const auto add = [&name](const std::string& text) { name += (name.empty() ? "" : ", ") + text; };
    if (!channels.empty()) {
      add(channels[along('C')]);
    } else if (image.size_along('C') > 1) {
      add("c " + std::to_string(along('C')));
    }
    if (image.depths > 1) add("z " + std::to_string(along('Z')));
    if (image.times > 1) add("t " + std::to_string(along('T')));
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace slidestream
