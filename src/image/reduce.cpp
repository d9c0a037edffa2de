#include "image/reduce.hpp"

#include <cstdint>
#include <vector>

namespace slidestream {

void reduce_image(const HostView& out, const ConstHostView& in, int halvings) {
  if (halvings < 0 || halvings > 24 || out.image != reduced_size(in.image, halvings) || out.format != in.format ||
      in.format.sample != SampleType::uint8) {
    throw std::invalid_argument("reduction: the views' sizes or formats don't fit");
  }
  const std::int64_t block = std::int64_t{1} << halvings;
  const std::int64_t left = out.rect.x * block;
  const std::int64_t right = std::min(out.rect.right() * block, in.image.width);
  const std::int64_t top = out.rect.y * block;
  const std::int64_t bottom = std::min(out.rect.bottom() * block, in.image.height);
  if (!in.rect.contains({left, top, right - left, bottom - top})) {
    throw std::invalid_argument("reduction: the input doesn't hold the output's blocks");
  }
  const auto channels = static_cast<std::size_t>(in.format.channels);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(out.rect.width) * channels);
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    const std::int64_t end = std::min((y + 1) * block, bottom);
    for (std::int64_t row = y * block; row < end; ++row) {
      const std::uint8_t* from =
          in.row<const std::uint8_t>(row) + static_cast<std::size_t>(left - in.rect.x) * channels;
      for (std::int64_t x = left; x < right; ++x) {
        std::uint64_t* to = sums.data() + static_cast<std::size_t>((x >> halvings) - out.rect.x) * channels;
        for (std::size_t c = 0; c < channels; ++c) to[c] += *from++;
      }
    }
    auto* to = out.row<std::uint8_t>(y);
    for (std::int64_t x = out.rect.x; x < out.rect.right(); ++x) {
      const auto n = static_cast<std::uint64_t>((std::min((x + 1) * block, right) - x * block) * (end - y * block));
      const std::uint64_t* sum = sums.data() + static_cast<std::size_t>(x - out.rect.x) * channels;
      for (std::size_t c = 0; c < channels; ++c) *to++ = static_cast<std::uint8_t>((2 * sum[c] + n) / (2 * n));
    }
  }
}

}  // namespace slidestream
