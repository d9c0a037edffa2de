#include "image/pyramid_builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

namespace slidestream {

namespace {

constexpr std::int64_t least_piece = 2048;  // columns

}  // namespace

/// Buffers of one size, which come back when the last tile in one is encoded.
class PyramidBuilder::Buffers : public std::enable_shared_from_this<Buffers> {
 public:
  explicit Buffers(std::size_t bytes) : bytes_(bytes) {}

  std::shared_ptr<std::byte> take() {
    std::unique_ptr<std::byte[]> buffer;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    // Every byte that is read later is written before.
    if (!buffer) buffer.reset(new std::byte[bytes_]);
    return {buffer.release(), [self = shared_from_this()](std::byte* bytes) { self->give_back(bytes); }};
  }

 private:
  void give_back(std::byte* bytes) {
    std::unique_ptr<std::byte[]> buffer(bytes);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

  std::size_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> free_;  ///< guarded by mutex_
};

struct PyramidBuilder::Rows final : LevelRows {
  explicit Rows(const PyramidBuilder& of) : builder(of) {}
  std::byte* row(int level, std::int64_t y) override { return builder.pixel_row(level, y); }
  const PyramidBuilder& builder;
};

PyramidBuilder::PyramidBuilder(const PyramidLayout& layout, PixelFormat format, bool labels)
    : layout_(layout), format_(format), is_measured_(format.sample == SampleType::float32 && !labels) {
  const std::int64_t alignment = LevelReducer::alignment(layout);
  piece_width_ = (least_piece + alignment - 1) / alignment * alignment;
  const std::int64_t width = layout.size(0).width;
  for (std::int64_t begin = 0; begin < width; begin += piece_width_) {
    reducers_.emplace_back(layout, format, labels, begin, std::min(begin + piece_width_, width));
  }
  constexpr double most = std::numeric_limits<double>::infinity();
  measured_.assign(reducers_.size(), std::vector<ValueRange>(static_cast<std::size_t>(format.channels), {most, -most}));
  for (int level = 0; level < layout.levels(); ++level) {
    Level made;
    made.pitch = static_cast<std::ptrdiff_t>(layout.size(level).width) * static_cast<int>(format.pixel_bytes());
    const std::int64_t rows = std::min<std::int64_t>(layout.tile(), layout.size(level).height);
    made.buffers = std::make_shared<Buffers>(static_cast<std::size_t>(made.pitch * rows));
    levels_.push_back(std::move(made));
  }
}

PyramidBuilder::~PyramidBuilder() = default;

void PyramidBuilder::begin(const ConstPixelView<MemorySpace::host>& rows, std::shared_ptr<const void> owner) {
  band_ = rows;
  band_owner_ = std::move(owner);
  const std::int64_t end = known_rows_ + rows.rect.height;
  for (int level = 0; level < layout_.levels(); ++level) {
    Level& filled = levels_[static_cast<std::size_t>(level)];
    const std::int64_t from = layout_.known_rows(level, known_rows_);
    const std::int64_t to = layout_.known_rows(level, end);
    for (std::int64_t y = from; y < to;) {
      const std::int64_t tile_row = y / layout_.tile();
      const bool there = !filled.filling.empty() && filled.filling.back().row == tile_row;
      if (!there && (level > 0 || is_copied(y))) filled.filling.push_back({tile_row, filled.buffers->take()});
      y = (tile_row + 1) * layout_.tile();
    }
  }
}

/// Whether the row of tiles of level 0 that row `y` is in reaches beyond the band.
bool PyramidBuilder::is_copied(std::int64_t y) const noexcept {
  const Rect tile = layout_.rect(0, {0, y / layout_.tile()});
  return tile.y < known_rows_ || tile.bottom() > known_rows_ + band_.rect.height;
}

std::byte* PyramidBuilder::pixel_row(int level, std::int64_t y) const noexcept {
  const Level& filled = levels_[static_cast<std::size_t>(level)];
  const std::int64_t tile_row = y / layout_.tile();
  // One or two are being filled, more only where a band is high.
  const auto at = std::find_if(filled.filling.begin(), filled.filling.end(),
                               [tile_row](const TileRow& row) { return row.row == tile_row; });
  return at->pixels.get() + (y - tile_row * layout_.tile()) * filled.pitch;
}

void PyramidBuilder::reduce(int piece) {
  const std::int64_t begin = piece * piece_width_;
  const std::int64_t end = std::min(begin + piece_width_, layout_.size(0).width);
  const auto pixel_bytes = static_cast<std::int64_t>(format_.pixel_bytes());
  const std::byte* from = band_.data + begin * pixel_bytes;
  const std::int64_t height = band_.rect.height;
  for (std::int64_t i = 0; i < height; ++i) {
    const std::int64_t y = known_rows_ + i;
    if (!is_copied(y)) {
      i += layout_.rect(0, {0, y / layout_.tile()}).height - 1;
      continue;
    }
    std::memcpy(pixel_row(0, y) + begin * pixel_bytes, from + i * band_.pitch,
                static_cast<std::size_t>((end - begin) * pixel_bytes));
  }
  if (is_measured_) measure(piece, from, end - begin);
  Rows rows(*this);
  reducers_[static_cast<std::size_t>(piece)].add(from, band_.pitch, height, rows);
}

void PyramidBuilder::measure(int piece, const std::byte* first, std::int64_t columns) {
  std::vector<ValueRange>& ranges = measured_[static_cast<std::size_t>(piece)];
  for (std::int64_t y = 0; y < band_.rect.height; ++y) {
    const auto* sample = reinterpret_cast<const float*>(first + y * band_.pitch);
    for (std::int64_t x = 0; x < columns; ++x) {
      for (ValueRange& range : ranges) {
        const double value = *sample++;
        if (!std::isfinite(value)) continue;
        range.least = std::min(range.least, value);
        range.greatest = std::max(range.greatest, value);
      }
    }
  }
}

std::vector<ValueRange> PyramidBuilder::values() const {
  if (!is_measured_) return {};
  std::vector<ValueRange> all = measured_.front();
  for (const std::vector<ValueRange>& piece : measured_) {
    for (std::size_t channel = 0; channel < all.size(); ++channel) {
      all[channel].least = std::min(all[channel].least, piece[channel].least);
      all[channel].greatest = std::max(all[channel].greatest, piece[channel].greatest);
    }
  }
  const bool nothing =
      std::any_of(all.begin(), all.end(), [](const auto& range) { return range.least > range.greatest; });
  return nothing ? std::vector<ValueRange>() : all;
}

std::vector<PyramidTile> PyramidBuilder::finish() {
  std::vector<PyramidTile> jobs;
  const std::int64_t end = known_rows_ + band_.rect.height;
  const bool last = end >= layout_.size(0).height;
  const std::int64_t whole = last ? layout_.rows(0) : end / layout_.tile();
  for (std::int64_t base = levels_[0].whole; base < whole; ++base) {
    for (int level = 0; level < layout_.levels(); ++level) {
      const std::int64_t rows = layout_.completed_rows(level, base);
      while (levels_[static_cast<std::size_t>(level)].whole < rows) give_out(level, jobs);
    }
  }
  known_rows_ = end;
  band_ = {};
  band_owner_.reset();
  return jobs;
}

/// The tiles of a level's next row.
void PyramidBuilder::give_out(int level, std::vector<PyramidTile>& jobs) {
  Level& filled = levels_[static_cast<std::size_t>(level)];
  const std::int64_t row = filled.whole++;
  const std::byte* first = nullptr;
  std::ptrdiff_t pitch = filled.pitch;
  std::shared_ptr<const void> owner;
  if (!filled.filling.empty() && filled.filling.front().row == row) {
    owner = filled.filling.front().pixels;
    first = filled.filling.front().pixels.get();
    filled.filling.pop_front();
  } else {
    owner = band_owner_;
    first = band_.data + (row * layout_.tile() - known_rows_) * band_.pitch;
    pitch = band_.pitch;
  }
  const std::int64_t columns = layout_.columns(level);
  for (std::int64_t column = 0; column < columns; ++column) {
    PyramidTile job;
    job.level = level;
    job.index = {column, row};
    job.owner = owner;
    const Rect rect = layout_.rect(level, job.index);
    job.pixels = {first + rect.x * static_cast<std::int64_t>(format_.pixel_bytes()), pitch, rect, layout_.size(level),
                  format_};
    jobs.push_back(std::move(job));
  }
}

std::vector<PyramidTile> PyramidBuilder::add(const ConstPixelView<MemorySpace::host>& rows,
                                             std::shared_ptr<const void> owner) {
  begin(rows, std::move(owner));
  for (int piece = 0; piece < pieces(); ++piece) reduce(piece);
  return finish();
}

std::uint64_t most_builder_bytes(const PyramidLayout& layout, const PixelFormat& format, std::int64_t rows,
                                 std::int64_t bands) {
  std::uint64_t bytes = 0;
  for (int level = 0; level < layout.levels(); ++level) {
    const Size size = layout.size(level);
    const std::int64_t band = (rows >> level) / layout.tile() + 1;
    const std::int64_t kept = std::min(layout.rows(level), 1 + bands * band);
    bytes += static_cast<std::uint64_t>(kept * std::min<std::int64_t>(layout.tile(), size.height) * size.width) *
             format.pixel_bytes();
  }
  return bytes;
}

}  // namespace slidestream
