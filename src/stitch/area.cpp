#include <slidestream/stitch.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

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

Rect AreaResampler::source_of(const Rect& part, std::int64_t factor) noexcept {
  const std::int64_t x = part.x * factor / one;
  const std::int64_t y = part.y * factor / one;
  return {x, y, (part.right() * factor + one - 1) / one - x, (part.bottom() * factor + one - 1) / one - y};
}

AreaResampler::AreaResampler(Size input, std::int64_t factor)
    : AreaResampler(input, factor, {0, 0, size_of(input, factor).width, size_of(input, factor).height}) {}

AreaResampler::AreaResampler(Size input, std::int64_t factor, const Rect& part)
    : part_(part), factor_(factor), next_(source_of(part, factor).y), made_(part.y) {
  if (factor <= one || factor > most_factor) throw std::invalid_argument("the factor isn't above 1 and at most 256");
  if (part.width < 1 || part.height < 1) throw std::invalid_argument("not one pixel is left");
  const Size whole = size_of(input, factor);
  if (part.x < 0 || part.y < 0 || part.right() > whole.width || part.bottom() > whole.height) {
    throw std::invalid_argument("the part lies outside the image");
  }
  across_.resize(static_cast<std::size_t>(part.width) * 3);
  sums_.resize(across_.size());
}

bool AreaResampler::add(std::uint8_t* out, const std::uint8_t* row) {
  const std::int64_t y = next_++;
  if (made_ == part_.bottom()) return false;
  // What is in front of the area's begin was the part's before, or nobody's.
  const std::int64_t first = made_ * factor_;
  const std::int64_t end = first + factor_;
  sum_row(row);
  add_row(static_cast<std::uint64_t>(std::min(end, (y + 1) * one) - std::max(first, y * one)));
  if ((y + 1) * one < end) return false;
  write(out);
  ++made_;
  std::ranges::fill(sums_, 0);
  add_row(static_cast<std::uint64_t>((y + 1) * one - end));
  return true;
}

/// Sums of weights times values along a row: below 2^32, as the factor is at most 2^24.
void AreaResampler::sum_row(const std::uint8_t* row) {
  const std::int64_t first = part_.x * factor_ / one;
  for (std::int64_t x = part_.x; x < part_.right(); ++x) {
    const std::int64_t begin = x * factor_;
    const std::int64_t end = begin + factor_;
    std::uint32_t red = 0;
    std::uint32_t green = 0;
    std::uint32_t blue = 0;
    for (std::int64_t i = begin / one; i * one < end; ++i) {
      const auto weight = static_cast<std::uint32_t>(std::min(end, (i + 1) * one) - std::max(begin, i * one));
      const std::uint8_t* const pixel = row + (i - first) * 3;
      red += weight * pixel[0];
      green += weight * pixel[1];
      blue += weight * pixel[2];
    }
    std::uint32_t* const sums = across_.data() + (x - part_.x) * 3;
    sums[0] = red;
    sums[1] = green;
    sums[2] = blue;
  }
}

void AreaResampler::add_row(std::uint64_t weight) {
  if (weight == 0) return;
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += weight * across_[i];
}

void AreaResampler::write(std::uint8_t* out) {
  const auto area = static_cast<std::uint64_t>(factor_) * static_cast<std::uint64_t>(factor_);
  for (std::size_t i = 0; i < sums_.size(); ++i) out[i] = static_cast<std::uint8_t>((2 * sums_[i] + area) / (2 * area));
}

std::size_t area_level(const std::vector<Level>& levels, double mpp, double target, std::size_t first) {
  std::size_t chosen = first;
  for (std::size_t level = first + 1; level < levels.size(); ++level) {
    const double finer = mpp * levels[level].downsample;
    if (finer > mpp * levels[chosen].downsample && target / finer >= 0.98) chosen = level;
  }
  return chosen;
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
