#include "cuda/pyramid/band_reducer.hpp"

#include <stdexcept>

namespace slidestream::cuda {
namespace {

constexpr std::int64_t alignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Bytes from a row of a level's values to the next.
std::int64_t row_bytes(const PyramidLayout& layout, const PixelFormat& format, int level) {
  return aligned(layout.size(level).width * format.channels * static_cast<std::int64_t>(value_bytes(level)));
}

/// Most rows of a level that a band completes: one that earlier bands began, and at the image's end one that isn't
/// whole.
std::int64_t made_rows(int level, std::int64_t most_rows) { return (most_rows >> level) + 2; }

}  // namespace

std::size_t BandReducer::memory_bytes(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows) {
  std::int64_t bytes = 0;
  for (int level = 0; level + 1 < layout.levels(); ++level) {
    bytes += row_bytes(layout, format, level) * (1 + (level == 0 ? 0 : made_rows(level, most_rows)));
  }
  return static_cast<std::size_t>(bytes);
}

BandReducer::BandReducer(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows,
                         std::span<std::byte> memory)
    : layout_(layout), format_(format), most_rows_(most_rows) {
  if (layout.levels() > most_levels) throw std::invalid_argument("an image of more than 13 levels");
  if (format != luminance_format && format != rgb_format) {
    throw std::invalid_argument("levels are made of 1 or 3 channels of 8 bits here, nothing else");
  }
  if (memory.size() < memory_bytes(layout, format, most_rows)) {
    throw std::length_error("too little memory for the sums of an image's levels");
  }
  std::byte* at = memory.data();
  for (int level = 0; level + 1 < layout.levels(); ++level) {
    Values values;
    values.row_bytes = row_bytes(layout, format, level);
    values.carried = at;
    at += values.row_bytes;
    if (level > 0) {
      values.sums = at;
      at += values.row_bytes * made_rows(level, most_rows);
    }
    values_.push_back(values);
  }
}

const BandWork& BandReducer::add(const ConstPixelView<MemorySpace::device>& band,
                                 std::span<const PixelView<MemorySpace::device>> levels) {
  const Size image = layout_.size(0);
  if (band.format != format_ || band.image != image || band.rect.x != 0 || band.rect.width != image.width ||
      band.rect.y != rows_ || band.rect.height < 1 || band.rect.bottom() > image.height ||
      band.rect.height > most_rows_) {
    throw std::invalid_argument("not the next band of the image");
  }
  if (levels.size() + 1 < static_cast<std::size_t>(layout_.levels())) {
    throw std::invalid_argument("a band's levels lack one");
  }
  const std::int64_t before = rows_;
  const std::int64_t after = band.rect.bottom();
  work_.steps.clear();
  const std::byte* above = band.data;
  std::int64_t above_pitch = band.pitch;
  for (int level = 1; level < layout_.levels(); ++level) {
    const Values& values = values_[static_cast<std::size_t>(level) - 1];
    const Size size = layout_.size(level);
    const Size size_above = layout_.size(level - 1);
    const std::int64_t above_before = layout_.known_rows(level - 1, before);
    const std::int64_t above_after = layout_.known_rows(level - 1, after);
    const std::int64_t first = layout_.known_rows(level, before);
    const std::int64_t rows = layout_.known_rows(level, after) - first;
    const PixelView<MemorySpace::device>& view = levels[static_cast<std::size_t>(level) - 1];
    BandWork::Step step{};
    if (rows > 0) {
      if (view.format != format_ || !view.rect.contains({0, first, size.width, rows})) {
        throw std::invalid_argument("a level's view doesn't hold the rows that a band completes");
      }
      ReduceTask& task = step.reduce;
      task.above = above;
      task.above_pitch = above_pitch;
      task.above_row = above_before;
      task.carried = values.carried;
      task.above_columns = size_above.width;
      task.above_rows = size_above.height;
      task.columns = size.width;
      task.first_row = first;
      task.rows = rows;
      task.pixels = view.row<std::uint8_t>(first);
      task.pixels_pitch = view.pitch;
      task.image_width = image.width;
      task.image_height = image.height;
      task.level = level;
      if (level + 1 < layout_.levels()) {
        task.sums = values_[static_cast<std::size_t>(level)].sums;
        task.sums_pitch = values_[static_cast<std::size_t>(level)].row_bytes;
      }
    }
    // A row without its neighbour is kept, unless it is kept already.
    if (above_after > above_before && above_after % 2 != 0 && above_after < size_above.height) {
      step.carry = {values.carried, above + (above_after - 1 - above_before) * above_pitch,
                    static_cast<std::size_t>(size_above.width * format_.channels) * value_bytes(level - 1)};
    }
    work_.steps.push_back(step);
    if (level + 1 < layout_.levels()) {
      above = values_[static_cast<std::size_t>(level)].sums;
      above_pitch = values_[static_cast<std::size_t>(level)].row_bytes;
    }
  }
  rows_ = after;
  return work_;
}

}  // namespace slidestream::cuda
