#include "slide/pixels.hpp"

#include <cstring>

#include "codec/ycbcr.hpp"
#include "slide/luminance.hpp"

namespace slidestream {

void interleaved_to_rgb(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                        Colour colour) noexcept {
  if (count <= 0) return;
  const std::uint8_t* const end = from + count * samples;
  if (samples >= 3 && colour == Colour::ycbcr) {
    for (; from != end; from += samples, to += 3) {
      const Rgb rgb = ycbcr_to_rgb(from[0], from[1], from[2]);
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
  } else if (samples == 3 && colour == Colour::rgb) {
    std::memcpy(to, from, static_cast<std::size_t>(3 * count));
  } else if (samples > 3 && colour == Colour::rgb) {
    for (; from != end; from += samples, to += 3) std::memcpy(to, from, 3);
  } else {
    const std::uint8_t flip = colour == Colour::grey_inverted ? 255 : 0;
    for (; from != end; from += samples, to += 3) to[0] = to[1] = to[2] = static_cast<std::uint8_t>(*from ^ flip);
  }
}

void interleaved_to_pixels(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples, Colour colour,
                           const PixelFormat& format) noexcept {
  if (format == rgb_format) return interleaved_to_rgb(to, from, count, samples, colour);
  interleaved_to_luminance(to, from, count, samples, colour);
}

}  // namespace slidestream
