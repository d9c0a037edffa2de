#include "stages/gpu/gpu_pyramids.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/cuda/check.hpp"

namespace slidestream {
namespace {

using runtime::cuda::DeviceArena;

/// Where encoded tiles of a run begin, and pieces in a slot.
constexpr std::size_t alignment = 64;

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + alignment - 1) / alignment * alignment; }

/// Takes the first `bytes` of what is left.
std::span<std::byte> take(std::span<std::byte> memory, std::size_t& used, std::size_t bytes) {
  if (bytes > memory.size() - used) throw std::logic_error("internal: too little room for the levels of a batch");
  const std::span<std::byte> taken = memory.subspan(used, bytes);
  used += bytes;
  return taken;
}

void copy_on_device(std::byte* to, const std::byte* from, std::int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  SLIDESTREAM_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

StreamEncoders::StreamEncoders(std::span<const DeviceImage> images, const DeviceLayout& layout,
                               std::span<std::byte> memory) {
  std::size_t used = 0;
  for (const DeviceImage& image : images) {
    if (!image.is_encoded || of(image) != nullptr) continue;
    const cuda::JpegEncoderLimits limits = image.encoder_limits(layout.pyramids.at_once);
    const std::span<std::byte> own = take(memory, used, DeviceArena::aligned(cuda::JpegEncoder::device_bytes(limits)));
    encoders_.push_back({image.format, std::make_unique<cuda::JpegEncoder>(limits, image.options.quality, own)});
  }
}

cuda::JpegEncoder* StreamEncoders::of(const DeviceImage& image) const noexcept {
  if (!image.is_encoded) return nullptr;
  const auto found = std::ranges::find(encoders_, image.format, &Encoder::format);
  return found == encoders_.end() ? nullptr : found->encoder.get();
}

ChainPyramids::ChainPyramids(std::span<const DeviceImage> all, const Level& level, std::span<std::byte> memory) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PyramidLayout layout({level.width, level.height}, all[i].options.tile, all[i].options.levels);
    const std::int64_t bytes = share_of(all, i, static_cast<std::int64_t>(memory.size()));
    Image image = {layout, KeptRows(layout, all[i].pixel_bytes()), rows_at_a_time(all[i], layout, bytes), nullptr, {}};
    const std::span<std::byte> own = take(memory, used, static_cast<std::size_t>(bytes));
    image.rows = own.data();
    image.pyramid = std::make_unique<cuda::DevicePyramid>(layout, all[i].format, image.rows_at_a_time,
                                                          own.subspan(static_cast<std::size_t>(image.kept.bytes)));
    images.push_back(std::move(image));
  }
}

SlotPyramids::SlotPyramids(std::span<const DeviceImage> images, const DeviceLayout& layout, const Memory& memory)
    : images_(images), at_once_(layout.pyramids.at_once), memory_(memory) {}

void SlotPyramids::begin() {
  made_.clear();
  band_used_ = encoded_used_ = words_used_ = places_used_ = 0;
}

PixelView<MemorySpace::device> SlotPyramids::view_of(const Made& made, const DeviceImage& image, int level) {
  const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(level)];
  const Size size = made.layout.size(level);
  return {made.at + rows.offset, rows.pitch, {0, rows.first, size.width, rows.count}, size, image.format};
}

PixelView<MemorySpace::device> SlotPyramids::lay_out(std::size_t index, ChainPyramids& chain, const OutputRange& rows,
                                                     cudaStream_t stream) {
  const DeviceImage& image = images_[index];
  const ChainPyramids::Image& kept = chain.images[index];
  Made made = {index, kept.layout, PyramidRows(kept.layout, image.pixel_bytes(), rows.first, rows.end()), nullptr};
  made.at = take(memory_.band, band_used_, static_cast<std::size_t>(made.rows.bytes)).data();
  for (int level = 0; level < kept.layout.levels(); ++level) {
    const BatchLevel& of_level = made.rows.levels[static_cast<std::size_t>(level)];
    copy_on_device(made.at + of_level.offset, kept.rows + kept.kept.offsets[static_cast<std::size_t>(level)],
                   of_level.kept * of_level.pitch, stream);
  }
  PixelView<MemorySpace::device> view = view_of(made, image, 0);
  view.data += (rows.first - view.rect.y) * view.pitch;
  view.rect = {0, rows.first, view.rect.width, rows.count};
  made_.push_back(std::move(made));
  return view;
}

void SlotPyramids::finish(std::size_t index, ChainPyramids& chain, const StreamEncoders& encoders,
                          cudaStream_t stream) {
  const DeviceImage& image = images_[index];
  ChainPyramids::Image& kept = chain.images[index];
  Made& made = *std::ranges::find(made_, index, &Made::image);
  std::vector<PixelView<MemorySpace::device>> levels;
  levels.reserve(made.rows.levels.size());
  for (int level = 0; level < kept.layout.levels(); ++level) levels.push_back(view_of(made, image, level));
  const BatchLevel& base = made.rows.levels.front();
  for (std::int64_t y = base.first + base.kept; y < base.first + base.count; y += kept.rows_at_a_time) {
    PixelView<MemorySpace::device> band = levels.front();
    band.data += (y - base.first) * band.pitch;
    band.rect = {0, y, band.rect.width, std::min(kept.rows_at_a_time, base.first + base.count - y)};
    kept.pyramid->enqueue(band, std::span(levels).subspan(1), stream);
  }
  cuda::JpegEncoder* const encoder = encoders.of(image);
  for (int level = 0; level < kept.layout.levels(); ++level) {
    const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(level)];
    copy_on_device(kept.rows + kept.kept.offsets[static_cast<std::size_t>(level)],
                   made.at + rows.offset + (rows.count - rows.left) * rows.pitch, rows.left * rows.pitch, stream);
    if (encoder != nullptr) encode(made, image, level, *encoder, stream);
  }
}

void SlotPyramids::encode(Made& made, const DeviceImage& image, int level, cuda::JpegEncoder& encoder,
                          cudaStream_t stream) {
  const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(level)];
  const std::int64_t columns = made.layout.columns(level);
  const std::int64_t tiles = rows.tile_rows * columns;
  const auto side = static_cast<std::uint32_t>(image.options.tile);
  std::vector<Run>& runs = made.runs.emplace_back();
  for (std::int64_t first = 0; first < tiles; first += static_cast<std::int64_t>(at_once_)) {
    Run run;
    run.first = first;
    run.count = std::min(static_cast<std::int64_t>(at_once_), tiles - first);
    const auto count = static_cast<std::size_t>(run.count);
    auto* const places = reinterpret_cast<cuda::JpegTilePosition*>(
        take(memory_.places, places_used_, count * sizeof(cuda::JpegTilePosition)).data());
    for (std::int64_t i = 0; i < run.count; ++i) {
      places[i] = {static_cast<std::uint32_t>((first + i) % columns) * side,
                   static_cast<std::uint32_t>(rows.first_tile + (first + i) / columns) * side};
    }
    run.encoded = take(memory_.encoded, encoded_used_, count * static_cast<std::size_t>(image.encoded_tile_bytes()));
    run.word = words_used_ / sizeof(std::uint64_t);
    auto* const words =
        reinterpret_cast<std::uint64_t*>(take(memory_.words, words_used_, (count + 2) * sizeof(std::uint64_t)).data());
    encoder.enqueue(view_of(made, image, level), {places, count},
                    {run.encoded, {words, count + 1}, reinterpret_cast<std::uint32_t*>(words + count + 1)}, stream);
    runs.push_back(run);
  }
}

void SlotPyramids::fetch_words(cudaStream_t stream) {
  if (words_used_ == 0) return;
  SLIDESTREAM_CUDA(
      cudaMemcpyAsync(memory_.host_words.data(), memory_.words.data(), words_used_, cudaMemcpyDeviceToHost, stream));
}

/// Fills parcels, one after the other.
class SlotPyramids::Packing {
 public:
  Packing(const SlotPyramids& slot, std::size_t most_bytes)
      : slot_(slot),
        words_(reinterpret_cast<const std::uint64_t*>(slot.memory_.host_words.data())),
        most_bytes_(most_bytes) {}

  void add(const Made& made, const PyramidRows::TileRow& row) {
    const std::int64_t columns = made.layout.columns(row.level);
    if (made.runs.empty()) return add_pixels(made, row, 0, columns);
    const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(row.level)];
    const std::int64_t begin = (row.row - rows.first_tile) * columns;
    for (const Run& run : made.runs[static_cast<std::size_t>(row.level)]) {
      const std::int64_t first = std::max(begin, run.first);
      const std::int64_t end = std::min(begin + columns, run.first + run.count);
      if (first >= end) continue;
      if (fits(made, run)) {
        add_encoded(made, row, run, first - begin, end - begin, begin);
      } else {
        add_pixels(made, row, first - begin, end - begin);
      }
    }
  }

  std::vector<std::shared_ptr<Parcel>> parcels;

 private:
  bool fits(const Made& made, const Run& run) const {
    const std::uint64_t* const offsets = words_ + run.word;
    const auto units = static_cast<std::uint32_t>(offsets[run.count + 1]);
    return cuda::fits(slot_.images_[made.image].encoder_limits(slot_.at_once_), offsets[run.count], run.encoded.size(),
                      units);
  }

  std::size_t room() const {
    return parcels.empty() ? 0 : most_bytes_ - std::min(most_bytes_, aligned(parcels.back()->bytes));
  }
  void begin_parcel() { parcels.push_back(std::make_shared<Parcel>()); }

  Parcel::Piece& begin_piece(const Made& made, int level, TileIndex first, std::int64_t columns, std::size_t bytes) {
    Parcel& parcel = *parcels.back();
    Parcel::Piece& piece = parcel.pieces.emplace_back();
    piece.image = made.image;
    piece.level = level;
    piece.first = first;
    piece.columns = columns;
    piece.offset = aligned(parcel.bytes);
    parcel.bytes = piece.offset + bytes;
    return piece;
  }

  void add_encoded(const Made& made, const PyramidRows::TileRow& row, const Run& run, std::int64_t first,
                   std::int64_t end, std::int64_t begin) {
    // Of the tile in column 0 of the row.
    const std::uint64_t* const offsets = words_ + run.word + (begin - run.first);
    while (first < end) {
      std::int64_t stop = first;
      while (stop < end && offsets[stop + 1] - offsets[first] <= room()) ++stop;
      if (stop == first) {
        if (offsets[first + 1] - offsets[first] > most_bytes_) {
          add_pixels(made, row, first, first + 1);
          ++first;
        } else {
          begin_parcel();
        }
        continue;
      }
      const std::uint64_t bytes = offsets[stop] - offsets[first];
      Parcel::Piece& piece = begin_piece(made, row.level, {first, row.row}, stop - first, bytes);
      for (std::int64_t i = first; i < stop; ++i) piece.ends.push_back(offsets[i + 1] - offsets[first]);
      piece.from = run.encoded.data() + offsets[first];
      piece.row_bytes = static_cast<std::int64_t>(bytes);
      first = stop;
    }
  }

  void add_pixels(const Made& made, const PyramidRows::TileRow& row, std::int64_t first, std::int64_t end) {
    const DeviceImage& image = slot_.images_[made.image];
    const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(row.level)];
    if (image.is_cut()) first = add_tiles(made, row, first, end);
    while (first < end) {
      const Rect tile = made.layout.rect(row.level, {first, row.row});
      const std::int64_t width = made.layout.size(row.level).width - tile.x;
      const std::int64_t side = made.layout.tile();
      const std::int64_t tile_bytes = side * image.pixel_bytes() * tile.height;
      const std::int64_t stop = std::min(end, first + static_cast<std::int64_t>(room()) / tile_bytes);
      if (stop == first) {
        begin_parcel();
        continue;
      }
      const std::int64_t row_bytes = std::min((stop - first) * side, width) * image.pixel_bytes();
      Parcel::Piece& piece = begin_piece(made, row.level, {first, row.row}, stop - first,
                                         static_cast<std::size_t>(row_bytes * tile.height));
      piece.pitch = row_bytes;
      piece.from = made.at + rows.offset + (tile.y - rows.first) * rows.pitch + tile.x * image.pixel_bytes();
      piece.from_pitch = rows.pitch;
      piece.row_bytes = row_bytes;
      piece.rows = tile.height;
      first = stop;
    }
  }

  /// Tiles that lie inside the image, each on its own as its file has it. \return the first that doesn't.
  std::int64_t add_tiles(const Made& made, const PyramidRows::TileRow& row, std::int64_t first, std::int64_t end) {
    const DeviceImage& image = slot_.images_[made.image];
    const BatchLevel& rows = made.rows.levels[static_cast<std::size_t>(row.level)];
    const Size size = made.layout.size(row.level);
    const std::int64_t side = made.layout.tile();
    if ((row.row + 1) * side > size.height) return first;
    end = std::min(end, size.width / side);
    while (first < end) {
      const std::int64_t stop = std::min(end, first + static_cast<std::int64_t>(room()) / image.raw_tile_bytes());
      if (stop == first) {
        begin_parcel();
        continue;
      }
      Parcel::Piece& piece = begin_piece(made, row.level, {first, row.row}, stop - first,
                                         static_cast<std::size_t>((stop - first) * image.raw_tile_bytes()));
      for (std::int64_t tile = 1; tile <= stop - first; ++tile) {
        piece.ends.push_back(static_cast<std::uint64_t>(tile * image.raw_tile_bytes()));
      }
      piece.pitch = piece.row_bytes = side * image.pixel_bytes();
      piece.from = made.at + rows.offset + (row.row * side - rows.first) * rows.pitch + first * piece.row_bytes;
      piece.from_pitch = rows.pitch;
      piece.rows = side;
      first = stop;
    }
    return first;
  }

  const SlotPyramids& slot_;
  const std::uint64_t* words_;
  std::size_t most_bytes_;
};

std::vector<std::shared_ptr<Parcel>> SlotPyramids::parcels(std::size_t most_bytes) const {
  Packing packing(*this, most_bytes);
  for (const Made& made : made_) {
    for (const PyramidRows::TileRow& row : made.rows.published) packing.add(made, row);
  }
  return std::move(packing.parcels);
}

void copy_parcel(const Parcel& parcel, cudaStream_t stream) {
  for (const Parcel::Piece& piece : parcel.pieces) {
    std::byte* const to = parcel.slot->memory().data() + piece.offset;
    if (piece.rows == 1 || piece.pitch == piece.from_pitch) {
      SLIDESTREAM_CUDA(cudaMemcpyAsync(to, piece.from, static_cast<std::size_t>(piece.row_bytes * piece.rows),
                                       cudaMemcpyDeviceToHost, stream));
      continue;
    }
    // All rows at once, or a tile after the other.
    const std::int64_t tiles = piece.ends.empty() ? 1 : piece.columns;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      SLIDESTREAM_CUDA(cudaMemcpy2DAsync(to + tile * piece.rows * piece.pitch, static_cast<std::size_t>(piece.pitch),
                                         piece.from + tile * piece.row_bytes,
                                         static_cast<std::size_t>(piece.from_pitch),
                                         static_cast<std::size_t>(piece.row_bytes),
                                         static_cast<std::size_t>(piece.rows), cudaMemcpyDeviceToHost, stream));
    }
  }
}

}  // namespace slidestream
