#include <slidestream/stitch.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "image/area_mean.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t one = 65536;
constexpr std::int64_t most_factor = 256 * one;

/// Samples of a row of the output that make a task.
constexpr std::int64_t part_columns = 1024;

}  // namespace

std::int64_t area_factor(double target, double mpp, double tolerance) {
  const double factor = std::rint(65536.0 * target / mpp);
  if (std::abs(factor - 65536.0) <= std::rint(65536.0 * tolerance)) return one;
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
    : part_(part), factor_(factor), at_{source_of(part, factor).y, part.y} {
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
  const ForAll one_after_the_other = [](std::size_t parts, const std::function<void(std::size_t)>& work) {
    for (std::size_t part = 0; part < parts; ++part) work(part);
  };
  return add(out, 0, 1, row, 0, 1, one_after_the_other).made == 1;
}

AreaResampler::Taken AreaResampler::add(std::uint8_t* out, std::int64_t out_pitch, std::int64_t room,
                                        const std::uint8_t* rows, std::int64_t pitch, std::int64_t count,
                                        const ForAll& for_all) {
  const At begin = at_;
  Taken taken;
  while (taken.rows < count && taken.made < room) {
    ++taken.rows;
    if (completes(at_)) ++taken.made;
  }
  const auto parts = static_cast<std::size_t>((part_.width + part_columns - 1) / part_columns);
  for_all(parts, [&](std::size_t number) {
    const auto first = static_cast<std::int64_t>(number) * part_columns;
    const Part part = {first, std::min(first + part_columns, part_.width)};
    At at = begin;
    for (std::int64_t row = 0; row < taken.rows; ++row) {
      add_columns(out + (at.made - begin.made) * out_pitch, rows + row * pitch, at, part);
      completes(at);
    }
  });
  return taken;
}

/// Goes one row of the input on. True: that is the last of the next row of the output.
bool AreaResampler::completes(At& at) const noexcept {
  const std::int64_t y = at.next++;
  if (at.made == part_.bottom() || (y + 1) * one < (at.made + 1) * factor_) return false;
  ++at.made;
  return true;
}

/// Takes columns of the row that `at` has come to.
void AreaResampler::add_columns(std::uint8_t* out, const std::uint8_t* row, const At& at, const Part& part) {
  if (at.made == part_.bottom()) return;
  row -= part_.x * factor_ / one * 3;  // as if it were all of the row
  // Sums of weights times values along the row: below 2^32, as the factor is at most 2^24.
  for (std::int64_t x = part.first; x < part.second; ++x) {
    const std::int64_t begin = (part_.x + x) * factor_;
    const std::int64_t end = begin + factor_;
    std::uint32_t red = 0;
    std::uint32_t green = 0;
    std::uint32_t blue = 0;
    const auto weigh = [&](std::int64_t i, std::uint32_t weight) {
      red += weight * row[i * 3];
      green += weight * row[i * 3 + 1];
      blue += weight * row[i * 3 + 2];
    };
    // The areas are wider than a pixel, so there are two ends, and whole pixels between them.
    const std::int64_t last = end / one;
    weigh(begin / one, static_cast<std::uint32_t>((begin / one + 1) * one - begin));
    for (std::int64_t i = begin / one + 1; i < last; ++i) weigh(i, static_cast<std::uint32_t>(one));
    if (last * one < end) weigh(last, static_cast<std::uint32_t>(end - last * one));
    std::uint32_t* const sums = across_.data() + x * 3;
    sums[0] = red;
    sums[1] = green;
    sums[2] = blue;
  }
  const std::int64_t y = at.next;
  const std::int64_t end = (at.made + 1) * factor_;
  // What is in front of the area's begin was the row's before, or nobody's.
  const std::int64_t begin = std::max(at.made * factor_, y * one);
  add_row(static_cast<std::uint64_t>(std::min(end, (y + 1) * one) - begin), part);
  if ((y + 1) * one < end) return;
  write(out, part);
  std::fill(sums_.begin() + part.first * 3, sums_.begin() + part.second * 3, 0);
  add_row(static_cast<std::uint64_t>((y + 1) * one - end), part);
}

void AreaResampler::add_row(std::uint64_t weight, const Part& part) {
  if (weight == 0) return;
  for (auto i = static_cast<std::size_t>(part.first * 3); i < static_cast<std::size_t>(part.second * 3); ++i) {
    sums_[i] += weight * across_[i];
  }
}

void AreaResampler::write(std::uint8_t* out, const Part& part) const {
  const AreaMean area = AreaMean::of(factor_);
  for (auto i = static_cast<std::size_t>(part.first * 3); i < static_cast<std::size_t>(part.second * 3); ++i) {
    out[i] = area.mean(sums_[i]);
  }
}

std::size_t area_level(const std::vector<Level>& levels, double mpp, double target, std::size_t first,
                       double tolerance) {
  std::size_t chosen = first;
  for (std::size_t level = first + 1; level < levels.size(); ++level) {
    const double finer = mpp * levels[level].downsample;
    if (finer > mpp * levels[chosen].downsample && target / finer >= 1.0 - tolerance) chosen = level;
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
