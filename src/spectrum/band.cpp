#include "spectrum/band.hpp"

namespace slidestream {

WindowBand::WindowBand(const AnalysisConfig& config, std::int64_t widest, float gain)
    : window_(config.window), stride_(config.stride), radius_(config.smoothing_radius) {
  columns_ = stride_ >= window_ ? 1 : 1 + (std::max(widest, window_) - window_) / stride_;
  // Off the powers of two, where rows would share cache sets.
  pitch_ = static_cast<std::size_t>(width()) + row_slack + 16;
  const GaussianTaps taps = gaussian_taps(config.smoothing_radius, config.smoothing_sigma);
  for (std::size_t i = 0; i < taps.size(); ++i) {
    down_[i] = static_cast<float>(taps[i]);
    along_[i] = gain * down_[i];
  }
}

BandBuffers WindowBand::make_buffers() const {
  BandBuffers buffers;
  buffers.rows = AlignedBuffer<float>(static_cast<std::size_t>(window_) * pitch_);
  buffers.line = AlignedBuffer<float>(static_cast<std::size_t>(width() + 2 * radius_) + 2 * row_slack);
  buffers.from.resize(static_cast<std::size_t>(window_));
  return buffers;
}

void WindowBand::smooth_row(float* out, const LuminancePlane& plane, const WindowBlock& windows, std::int64_t y,
                            float* scratch) const {
  const std::int64_t begin = windows.first_column * stride_;
  const std::int64_t end = begin + (windows.columns - 1) * stride_ + window_;
  const std::int64_t from = std::max<std::int64_t>(begin - radius_, 0);
  const std::int64_t to = std::min(end + radius_, plane.image_width);
  std::array<const std::uint8_t*, 2 * max_smoothing_radius + 1> rows{};
  for (std::int64_t i = -radius_; i <= radius_; ++i) {
    const std::int64_t row = mirrored(y + i, plane.image_height) - plane.y0;
    rows[static_cast<std::size_t>(i + radius_)] = plane.data + row * plane.pitch + (from - plane.x0);
  }

  float* line = scratch + radius_ - begin;  // line[x] is column x of the image
  kernels_.smooth_vertically(line + from, rows.data(), down_.data(), static_cast<int>(radius_),
                             static_cast<std::size_t>(to - from));
  // Columns smooth alike wherever they stand: what lies beyond the image is a copy of its mirror image.
  for (std::int64_t x = begin - radius_; x < from; ++x) line[x] = line[mirrored(x, plane.image_width)];
  for (std::int64_t x = to; x < end + radius_; ++x) line[x] = line[mirrored(x, plane.image_width)];
  kernels_.smooth_horizontally(out, line + begin, along_.data(), static_cast<int>(radius_),
                               static_cast<std::size_t>(end - begin));
}

}  // namespace slidestream
