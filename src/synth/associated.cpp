#include "synth/associated.hpp"

#include <algorithm>
#include <cmath>

#include "synth/noise.hpp"

namespace slidestream::synth {

namespace {

constexpr double thumbnail_bound_x = 1024.0;
constexpr double thumbnail_bound_y = 768.0;

void fill(Picture& picture, int left, int top, int width, int height, std::uint8_t grey) {
  for (int y = top; y < top + height; ++y) std::fill_n(picture.at(left, y), width * 3, grey);
}

/// Scales by the nearest pixel, darkest channel by channel against what is there, as light through both would be.
void lay_over(Picture& onto, const Picture& from, int left, int top, int width, int height) {
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const std::uint8_t* source = from.at(x * from.width / width, y * from.height / height);
      std::uint8_t* target = onto.at(left + x, top + y);
      for (int channel = 0; channel < 3; ++channel) target[channel] = std::min(target[channel], source[channel]);
    }
  }
}

}  // namespace

ThumbnailMaker::ThumbnailMaker(std::int64_t width, std::int64_t height) : height_(height), column_(width) {
  const double scale =
      std::min({1.0, thumbnail_bound_x / static_cast<double>(width), thumbnail_bound_y / static_cast<double>(height)});
  thumbnail_width_ = std::max(1, static_cast<int>(static_cast<double>(width) * scale + 0.5));
  thumbnail_height_ = std::max(1, static_cast<int>(static_cast<double>(height) * scale + 0.5));
  for (std::int64_t x = 0; x < width; ++x) column_[x] = static_cast<int>(x * thumbnail_width_ / width);
  const auto pixels = static_cast<std::size_t>(thumbnail_width_) * thumbnail_height_;
  sum_.resize(pixels * 3);
  count_.resize(pixels);
}

void ThumbnailMaker::add_row(std::int64_t y, const std::uint8_t* rgb) {
  const auto first = static_cast<std::size_t>(y * thumbnail_height_ / height_) * thumbnail_width_;
  for (std::size_t x = 0; x < column_.size(); ++x) {
    const std::size_t pixel = first + column_[x];
    for (std::size_t channel = 0; channel < 3; ++channel) sum_[pixel * 3 + channel] += rgb[x * 3 + channel];
    ++count_[pixel];
  }
}

Picture ThumbnailMaker::finish() const {
  Picture picture(thumbnail_width_, thumbnail_height_);
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const std::uint32_t count = std::max(count_[i / 3], 1U);
    picture.rgb[i] = static_cast<std::uint8_t>((sum_[i] + count / 2) / count);
  }
  return picture;
}

Picture make_label(std::uint64_t seed) {
  Picture label(387, 463, 236);
  // A square code like the ones that laboratories print.
  constexpr int modules = 18;
  constexpr int module_size = 12;
  constexpr int left = (387 - modules * module_size) / 2;
  constexpr int top = 48;
  for (int row = 0; row < modules; ++row) {
    for (int column = 0; column < modules; ++column) {
      const bool frame = column == 0 || row == modules - 1;
      const bool clock = (row == 0 && column % 2 == 0) || (column == modules - 1 && row % 2 == 1);
      const bool inside = row > 0 && column < modules - 1 && (hash(mix(seed), column, row) & 1) != 0;
      if (frame || clock || inside) {
        fill(label, left + column * module_size, top + row * module_size, module_size, module_size, 24);
      }
    }
  }
  // Lines of strokes that stand for writing.
  for (int line = 0; line < 4; ++line) {
    int x = 48;
    for (int stroke = 0; x < 330; ++stroke) {
      const std::uint64_t bits = hash(mix(seed + 1), stroke, line);
      const int width = 6 + static_cast<int>(bits % 14);
      if (bits % 5 != 0) fill(label, x, 300 + line * 36 + static_cast<int>(bits >> 8 & 3), width, 14, 70);
      x += width + 5;
    }
  }
  return label;
}

Picture make_macro(const Picture& label, const Picture& thumbnail) {
  Picture macro(1280, 431, 224);
  fill(macro, 0, 0, 1280, 8, 150);
  fill(macro, 0, 423, 1280, 8, 150);
  lay_over(macro, label, 12, 18, 330, 395);
  constexpr int room_x = 820;
  constexpr int room_y = 380;
  const double scale =
      std::min(static_cast<double>(room_x) / thumbnail.width, static_cast<double>(room_y) / thumbnail.height);
  const int width = std::max(1, static_cast<int>(thumbnail.width * scale));
  const int height = std::max(1, static_cast<int>(thumbnail.height * scale));
  lay_over(macro, thumbnail, 390 + (room_x - width) / 2, 25 + (room_y - height) / 2, width, height);
  return macro;
}

}  // namespace slidestream::synth
