#include "tiling/window_pixels.hpp"

#include <algorithm>
#include <cstring>
#include <slidestream/stitch.hpp>
#include <vector>

#include "tiling/channels.hpp"

namespace slidestream {

namespace {

constexpr std::int64_t samples = 3;

}  // namespace

void copy_pixels(std::uint8_t* window, const Size& size, WindowLayout layout, std::int64_t x, std::int64_t y,
                 const std::uint8_t* from, std::int64_t count) {
  const std::int64_t at = y * size.width + x;
  if (layout == WindowLayout::interleaved) {
    std::memcpy(window + at * samples, from, static_cast<std::size_t>(count * samples));
  } else {
    const std::int64_t plane = size.width * size.height;
    split_channels(window + at, window + plane + at, window + 2 * plane + at, from, count);
  }
}

void fill_beyond(std::uint8_t* window, const Size& size, WindowLayout layout, std::int64_t width, std::int64_t height,
                 std::uint8_t fill) {
  const bool interleaved = layout == WindowLayout::interleaved;
  const std::int64_t planes = interleaved ? 1 : samples;
  const std::int64_t pixel = interleaved ? samples : 1;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t y = 0; y < size.height; ++y) {
      const std::int64_t inside = y < height ? std::min(width, size.width) : 0;
      std::memset(window + ((plane * size.height + y) * size.width + inside) * pixel, fill,
                  static_cast<std::size_t>((size.width - inside) * pixel));
    }
  }
}

void resample_window(std::uint8_t* window, const Size& size, WindowLayout layout, const Rect& inside, const Size& level,
                     std::int64_t factor, const std::uint8_t* source, std::int64_t pitch) {
  AreaResampler resampler(level, factor, inside);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(inside.width * samples));
  const std::int64_t rows = AreaResampler::source_of(inside, factor).height;
  std::int64_t made = 0;
  for (std::int64_t y = 0; y < rows; ++y) {
    if (resampler.add(line.data(), source + y * pitch))
      copy_pixels(window, size, layout, 0, made++, line.data(), inside.width);
  }
}

}  // namespace slidestream
