#include "slide/luminance.hpp"

#include <cstring>

namespace slidestream {
namespace {

// The stride is a constant where it matters, so that the compiler can vectorise.
template <int stride>
void rgb_to_luminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* pixel = from + i * stride;
    to[i] = luminance(pixel[0], pixel[1], pixel[2]);
  }
}

}  // namespace

void interleaved_to_luminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                              Colour colour) noexcept {
  if (colour == Colour::rgb && samples == 3) return rgb_to_luminance<3>(to, from, count);
  if (colour == Colour::rgb && samples == 4) return rgb_to_luminance<4>(to, from, count);
  if (samples == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * samples];
  }
  if (colour == Colour::grey_inverted) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(255 - to[i]);
  }
}

}  // namespace slidestream
