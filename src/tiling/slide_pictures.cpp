#include "tiling/slide_pictures.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string>

#include "operators/tissue/preparation.hpp"

namespace slidestream {

namespace {

/// Makes an image smaller, row by row. A pixel of the output is the mean of its area, rounded half up; the areas cover
/// the whole image. Along an axis that goes from n pixels to m, weights count in 1 / m of a pixel, so they are
/// integers.
class WholeMeans {
 public:
  WholeMeans(const Size& from, const Size& to)
      : from_(from), to_(to), across_(static_cast<std::size_t>(to.width) * 3), sums_(across_.size()) {}

  /// Takes the next row, and writes to `out` if it completes one. \return whether it does.
  bool add(std::uint8_t* out, const std::uint8_t* row) {
    add_across(row);
    const std::int64_t begin = y_++ * to_.height;
    const std::int64_t border = (begin / from_.height + 1) * from_.height;
    const std::int64_t beyond = begin + to_.height - border;
    add_down(std::min(to_.height, border - begin));
    if (beyond < 0) return false;
    const auto area = static_cast<std::uint64_t>(from_.width * from_.height);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      out[i] = static_cast<std::uint8_t>((2 * sums_[i] + area) / (2 * area));
    }
    std::ranges::fill(sums_, 0);
    add_down(beyond);
    return true;
  }

 private:
  void add_across(const std::uint8_t* row) {
    for (std::int64_t x = 0; x < to_.width; ++x) {
      const std::int64_t begin = x * from_.width;
      const std::int64_t end = begin + from_.width;
      const std::int64_t first = begin / to_.width;
      const std::int64_t last = (end - 1) / to_.width;
      // As if the area had the first and the last pixel whole, less what lies outside.
      const std::int64_t before = begin - first * to_.width;
      const std::int64_t behind = (last + 1) * to_.width - end;
      for (std::int64_t c = 0; c < 3; ++c) {
        std::int64_t sum = 0;
        for (std::int64_t from = first; from <= last; ++from) sum += row[from * 3 + c];
        sum = sum * to_.width - before * row[first * 3 + c] - behind * row[last * 3 + c];
        across_[static_cast<std::size_t>(x * 3 + c)] = static_cast<std::uint64_t>(sum);
      }
    }
  }

  void add_down(std::int64_t weight) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += across_[i] * static_cast<std::uint64_t>(weight);
  }

  const Size from_;
  const Size to_;
  std::int64_t y_ = 0;
  std::vector<std::uint64_t> across_;  ///< of the last row
  std::vector<std::uint64_t> sums_;    ///< of the next row of the output
};

/// What fits a box and isn't larger than an image, with its proportions as far as whole pixels have them.
Size fitting(const Size& image, const Size& most) {
  const auto other = [](std::int64_t side, std::int64_t to, std::int64_t from) {
    return std::max<std::int64_t>(1, (2 * side * to + from) / (2 * from));
  };
  if (image.width * most.height >= image.height * most.width) {
    const std::int64_t width = std::min(most.width, image.width);
    return {width, other(image.height, width, image.width)};
  }
  const std::int64_t height = std::min(most.height, image.height);
  return {other(image.width, height, image.height), height};
}

}  // namespace

FoundTissue tissue_of(const Slide& slide, BadTilePolicy on_bad_tile, const std::string& remedy) {
  Config config;
  config.decode.on_bad_tile = on_bad_tile;
  const SlideContext context = {slide, 0, slide.info().path, slide.info().mean_mpp()};
  FoundTissue found;
  found.mask = operators::prepare_mask(context, config);
  found.doubts = operators::doubts_of_tissue(*found.mask, context, remedy);
  return found;
}

Picture thumbnail(RegionReader& reader, const Slide& slide, const Size& most, BadTilePolicy on_bad_tile,
                  const std::function<void()>& between) {
  constexpr std::int64_t longest = 32768;
  if (most.width < 1 || most.height < 1 || most.width > longest || most.height > longest) {
    throw ConfigError("size is (" + std::to_string(most.width) + ", " + std::to_string(most.height) +
                      "); expected 1 x 1 to 32768 x 32768 pixels");
  }
  const std::vector<Level>& levels = slide.info().levels;
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    if (levels[i].width >= most.width || levels[i].height >= most.height) chosen = i;
  }
  const Level& level = levels[chosen];
  const Size whole = {level.width, level.height};
  Picture picture;
  picture.size = fitting(whole, most);
  const std::int64_t pitch = picture.size.width * 3;
  picture.pixels.resize(static_cast<std::size_t>(pitch * picture.size.height));
  std::uint8_t* to = picture.pixels.data();
  if (picture.size == whole) {
    reader.read(slide, chosen, 0, 0, {to, pitch, whole.width, whole.height, rgb_format}, 255, on_bad_tile, between);
    return picture;
  }
  slide.info().require_no_labels("a thumbnail of another size has means of several");
  WholeMeans means(whole, picture.size);
  const std::int64_t rows_at_a_time = (1023 / level.tile_height + 1) * level.tile_height;
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(std::min(rows_at_a_time, whole.height) * whole.width * 3));
  for (std::int64_t y = 0; y < whole.height; y += rows_at_a_time) {
    const HostPixels part = {rows.data(), whole.width * 3, whole.width, std::min(rows_at_a_time, whole.height - y),
                             rgb_format};
    reader.read(slide, chosen, 0, y, part, 255, on_bad_tile, between);
    if (between) between();
    for (std::int64_t i = 0; i < part.height; ++i) {
      if (means.add(to, part.data + i * part.pitch)) to += pitch;
    }
  }
  return picture;
}

}  // namespace slidestream
