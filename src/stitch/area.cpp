#include <slidestream/stitch.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <slidestream/error.hpp>

namespace slidestream {
namespace {

constexpr std::int64_t one = 65536;
constexpr double as_it_is = 1311.0;  // 2 % of `one`
constexpr std::int64_t most_factor = 256 * one;

}  // namespace

std::int64_t area_factor(double target, double mpp) {
  const double factor = std::rint(65536.0 * target / mpp);
  if (std::abs(factor - 65536.0) <= as_it_is) return one;
  if (!(factor > 65536.0)) {
    throw Error("tiles at " + std::to_string(target) + " micrometres a pixel can't be made from pixels of " +
                std::to_string(mpp));
  }
  if (factor > static_cast<double>(most_factor)) {
    throw Error("tiles at " + std::to_string(target) + " micrometres a pixel are more than 256 times as coarse as " +
                std::to_string(mpp));
  }
  return static_cast<std::int64_t>(factor);
}

Size AreaResampler::size_of(Size input, std::int64_t factor) noexcept {
  return {input.width * one / factor, input.height * one / factor};
}

std::uint64_t AreaResampler::bytes(Size input, std::int64_t factor) noexcept {
  return factor == one ? 0 : static_cast<std::uint64_t>(size_of(input, factor).width) * 3 * 12;
}

AreaResampler::AreaResampler(Size input, std::int64_t factor)
    : input_(input), size_(size_of(input, factor)), factor_(factor) {
  if (factor <= one || factor > most_factor) throw std::invalid_argument("the factor isn't above 1 and at most 256");
  if (size_.width < 1 || size_.height < 1) throw std::invalid_argument("not one pixel is left");
  across_.resize(static_cast<std::size_t>(size_.width) * 3);
  sums_.resize(across_.size());
}

bool AreaResampler::add(std::uint8_t* out, const std::uint8_t* row) {
  const std::int64_t y = next_++;
  if (made_ == size_.height) return false;
  // Sums of weights times values along the row: below 2^32, as the factor is at most 2^24.
  for (std::int64_t x = 0; x < size_.width; ++x) {
    const std::int64_t begin = x * factor_;
    const std::int64_t end = begin + factor_;
    std::uint32_t red = 0;
    std::uint32_t green = 0;
    std::uint32_t blue = 0;
    for (std::int64_t i = begin / one; i * one < end; ++i) {
      const auto weight = static_cast<std::uint32_t>(std::min(end, (i + 1) * one) - std::max(begin, i * one));
      red += weight * row[i * 3];
      green += weight * row[i * 3 + 1];
      blue += weight * row[i * 3 + 2];
    }
    std::uint32_t* const sums = across_.data() + x * 3;
    sums[0] = red;
    sums[1] = green;
    sums[2] = blue;
  }
  const std::int64_t end = (made_ + 1) * factor_;
  if ((y + 1) * one < end) {
    add_row(static_cast<std::uint64_t>(one));
    return false;
  }
  add_row(static_cast<std::uint64_t>(end - y * one));
  write(out);
  ++made_;
  std::ranges::fill(sums_, 0);
  add_row(static_cast<std::uint64_t>((y + 1) * one - end));
  return true;
}

/// The first row of an area counts from where the area begins: what is in front of it was the one's before.
void AreaResampler::add_row(std::uint64_t weight) {
  if (weight == 0) return;
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += weight * across_[i];
}

void AreaResampler::write(std::uint8_t* out) {
  const auto area = static_cast<std::uint64_t>(factor_) * static_cast<std::uint64_t>(factor_);
  for (std::size_t i = 0; i < sums_.size(); ++i) out[i] = static_cast<std::uint8_t>((2 * sums_[i] + area) / (2 * area));
}

void resample_area(const PixelView<MemorySpace::host>& out, const ConstPixelView<MemorySpace::host>& in,
                   std::int64_t factor) {
  AreaResampler resampler(in.image, factor);
  const auto whole = [](const auto& view) { return view.rect == Rect{0, 0, view.image.width, view.image.height}; };
  if (out.format != rgb_format || in.format != rgb_format || out.image != resampler.size() || !whole(out) ||
      !whole(in)) {
    throw std::invalid_argument("the views to resample aren't whole images of RGB that belong together");
  }
  std::int64_t made = 0;
  for (std::int64_t y = 0; y < in.image.height && made < out.image.height; ++y) {
    if (resampler.add(out.row<std::uint8_t>(made), in.row<const std::uint8_t>(y))) ++made;
  }
}

}  // namespace slidestream
