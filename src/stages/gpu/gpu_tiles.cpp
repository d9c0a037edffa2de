#include "stages/gpu/gpu_tiles.hpp"

#include <algorithm>
#include <cstring>

#include "codec/tile_rule.hpp"
#include "cuda/tiles/fronts.hpp"
#include "cuda/tiles/place.hpp"
#include "cuda/tiles/place_converted.hpp"
#include "planning/device_tail.hpp"
#include "runtime/cuda/check.hpp"
#include "slide/level_coding.hpp"
#include "stages/gpu/gpu_set.hpp"

namespace slidestream {
namespace {

static_assert(sizeof(cuda::PlacedTile) <= DeviceTail::descriptor_bytes);

static_assert(DeviceLayout::alignment == runtime::cuda::DeviceArena::alignment);

/// The device's decoder reads whole pieces of so many bytes.
constexpr std::size_t kReadBytes = 16;

std::size_t whole_reads(std::size_t bytes) { return (bytes + kReadBytes - 1) / kReadBytes * kReadBytes; }

const Level& level_of(const Batch& batch) { return batch.slide->slide->info().levels[batch.slide->level]; }
const LevelCoding& coding_of(const Batch& batch) { return coding_of(*batch.slide->slide, batch.slide->level); }

cuda::SampleLayout sample_layout(const Batch& batch) {
  const Level& level = level_of(batch);
  const int samples = coding_of(batch).samples;
  return {static_cast<std::uint32_t>(level.tile_width * samples), static_cast<std::uint32_t>(samples), level.colour};
}

/// As many bytes as the headers of a level's JPEG tiles seldom exceed: with the level's tables apart, or in each. Of a
/// tile that was read to the device and whose header is longer the CPU says what it is.
std::size_t header_bytes(const Batch& batch) { return coding_of(batch).jpeg_tables.empty() ? 1024 : 256; }

/// Headers are asked for so many tiles ahead, and so much of each.
constexpr std::size_t ahead = 12;
constexpr std::size_t cache_line = 64;
constexpr std::size_t lines_of_header = 2;
constexpr std::size_t lines_with_tables = 8;

/// Of all headers that are under way at a time, and of what says where they are.
constexpr std::size_t header_room = std::size_t{4} << 20;

void flag(Batch& batch, std::size_t tile) { batch.flagged.push_back(static_cast<std::uint32_t>(tile)); }

}  // namespace

std::size_t SlotDecoder::scratch_bytes(const TileLimits& limits) {
  return DecoderScratch(limits, cuda::JpegBatchDecoder::device_bytes(jpeg_limits(limits))).size;
}

SlotDecoder::SlotDecoder(const TileLimits& limits, const ByPlane<std::span<std::byte>>& planes,
                         std::span<std::byte> compressed, std::span<std::byte> scratch, std::span<std::byte> pinned)
    : limits_(limits),
      wanted_(limits.planes),
      plane_(wanted_[rgb_plane] ? rgb_plane : luminance_plane),
      luminance_behind_(wanted_[rgb_plane] && wanted_[luminance_plane]
                            ? planes[luminance_plane].data() - planes[rgb_plane].data()
                            : 0),
      compressed_(compressed),
      verdicts_(scratch.first(limits.tiles * sizeof(std::uint32_t))),
      host_verdicts_(pinned.first(verdicts_.size())),
      upload_(pinned.subspan(DeviceLayout::aligned(verdicts_.size()))) {
  const DecoderScratch parts(limits, 0);
  if (limits.converts) {
    constexpr std::size_t bytes = DeviceLayout::aligned(cuda::ConversionMemory::pinned_bytes);
    colours_.emplace(scratch.subspan(parts.colours), upload_.last(bytes));
    upload_ = upload_.first(upload_.size() - bytes);
  }
  jpeg_decoder_ = std::make_unique<cuda::JpegBatchDecoder>(jpeg_limits(limits), scratch.subspan(parts.jpeg));
  if (limits.wave > 0) {
    jpeg2000_decoder_ =
        std::make_unique<cuda::Jpeg2000BatchDecoder>(jpeg2000_limits(limits), scratch.subspan(parts.jpeg2000));
  }
  numbers_.reserve(limits.tiles);
}

HeaderRoom::HeaderRoom() : device_(header_room), host_(header_room), pinned_(host_.bytes()) {}

void SlotDecoder::fetch_headers(Batch& batch, const HeaderRoom& room, cudaStream_t stream) const {
  if (level_of(batch).codec != Codec::jpeg) return;
  const std::size_t most = header_bytes(batch);
  const std::size_t at_a_time = header_room / (sizeof(cuda::TileFront) + most);
  const std::size_t places = at_a_time * sizeof(cuda::TileFront);
  auto* const fronts = reinterpret_cast<cuda::TileFront*>(room.host().data());
  const std::byte* const host = room.host().data() + places;
  std::byte* const device = room.device().data() + places;
  std::byte* to = batch.slot.memory().data();
  for (std::size_t first = 0; first < batch.tiles.size(); first += at_a_time) {
    const std::size_t count = std::min(at_a_time, batch.tiles.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      const BatchTile& tile = batch.tiles[first + i];
      const bool there = tile.source == BatchTile::Source::file;
      fronts[i] = {tile.offset, there ? static_cast<std::uint32_t>(std::min(tile.length, most)) : 0, 0};
    }
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(room.device().data(), fronts, count * sizeof(cuda::TileFront), cudaMemcpyHostToDevice, stream));
    cuda::gather_fronts(device, most, compressed_.data(),
                        reinterpret_cast<const cuda::TileFront*>(room.device().data()), count, stream);
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(room.host().data() + places, device, count * most, cudaMemcpyDeviceToHost, stream));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < count; ++i) {
      // One behind the other: together they are no longer than the tiles, which have room in the slot.
      BatchTile& tile = batch.tiles[first + i];
      tile.front_offset = static_cast<std::size_t>(to - batch.slot.memory().data());
      tile.front_length = fronts[i].bytes;
      std::memcpy(to, host + i * most, fronts[i].bytes);
      to += fronts[i].bytes;
    }
  }
}

void SlotDecoder::describe(Batch& batch) {
  batch.flagged.clear();
  batch.flagged.reserve(batch.tiles.size());
  numbers_.clear();
  switch (level_of(batch).codec) {
    case Codec::jpeg:
      return describe_jpeg(batch);
    case Codec::jpeg2000:
      return describe_jpeg2000(batch);
    default:
      return describe_plain(batch);
  }
}

cuda::JpegPlacement SlotDecoder::placement_of(const Batch& batch, const BatchTile& tile) const {
  cuda::JpegPlacement placement;
  placement.from_x = static_cast<std::uint32_t>(tile.from_x);
  placement.from_y = static_cast<std::uint32_t>(tile.from_y);
  placement.width = static_cast<std::uint32_t>(tile.out[plane_].width);
  placement.height = static_cast<std::uint32_t>(tile.out[plane_].height);
  placement.luminance_offset = static_cast<std::uint64_t>(tile.place[luminance_plane]);
  placement.luminance_pitch = static_cast<std::uint32_t>(batch.panel().pitch[luminance_plane]);
  // Where colours may be converted, luminance that is wanted alone goes beside RGB that nobody wants.
  if (limits_.converts && plane_ == luminance_plane) return placement;
  placement.offset = static_cast<std::uint64_t>(tile.place[plane_]);
  placement.pitch = static_cast<std::uint32_t>(batch.panel().pitch[plane_]);
  // From the batch's own rows of RGB to those of luminance.
  placement.luminance_offset +=
      static_cast<std::uint64_t>(luminance_behind_ + batch.own_offset(luminance_plane) - batch.own_offset(rgb_plane));
  return placement;
}

template <class Described, class Add>
void SlotDecoder::describe_coded(Batch& batch, Described& described, const Add& add) {
  const std::byte* const slot = batch.slot.memory().data();
  const LevelCoding& coding = coding_of(batch);
  const std::size_t lines = coding.jpeg_tables.empty() ? lines_with_tables : lines_of_header;
  for (std::size_t i = 0; i < batch.tiles.size(); ++i) {
    // Another processor wrote it, and a header is looked at once: it is asked for ahead.
    if (i + ahead < batch.tiles.size()) {
      const std::byte* const header = slot + batch.tiles[i + ahead].front_offset;
      for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(header + line * cache_line);
    }
    const BatchTile& tile = batch.tiles[i];
    const cuda::JpegPlacement placement = placement_of(batch, tile);
    if (tile.source == BatchTile::Source::missing && described.add_white(placement)) {
      if (tile.owned) ++batch.missing_tiles;
      continue;
    }
    std::span<const std::byte> front;
    std::size_t before = 0;  // of the tile's own bytes: an item's header
    if (tile.source == BatchTile::Source::file) {
      front = coded_front(coding, batch.slot.memory().subspan(tile.front_offset, tile.front_length), tile.length);
      before = tile.front_length - front.size();
    }
    if (!front.empty() && add(front, tile.length - before, tile.offset + before, tile.index, placement)) {
      numbers_.push_back(static_cast<std::uint32_t>(i));
    } else {
      // The CPU's decoder says what it is.
      flag(batch, i);
    }
  }
}

void SlotDecoder::describe_jpeg(Batch& batch) {
  jpeg2000_.reset();
  if (!jpeg_) jpeg_.emplace(jpeg_limits(limits_), upload_);
  jpeg_->clear();
  const Level& level = level_of(batch);
  const LevelCoding& coding = coding_of(batch);
  const cuda::JpegLevelTables tables(coding.jpeg_tables);
  describe_coded(batch, *jpeg_,
                 [&](std::span<const std::byte> front, std::size_t length, std::size_t offset, std::int64_t index,
                     const cuda::JpegPlacement& placement) {
                   return jpeg_->add_front(front, length, offset, tables,
                                           demand_for(level, coding.tiles_say_colour, index),
                                           placement) == cuda::JpegReason::none;
                 });
  jpeg_->finish(jpeg_decoder_->lanes());
}

void SlotDecoder::describe_jpeg2000(Batch& batch) {
  jpeg_.reset();
  if (!jpeg2000_) jpeg2000_.emplace(jpeg2000_limits(limits_), upload_);
  jpeg2000_->clear(conversion_of(*batch.slide->slide) != nullptr);
  const Level& level = level_of(batch);
  describe_coded(batch, *jpeg2000_,
                 [&](std::span<const std::byte> bytes, std::size_t, std::size_t offset, std::int64_t index,
                     const cuda::JpegPlacement& placement) {
                   // All of it is there: parts of a tile are found by going through its bytes.
                   return jpeg2000_->add(bytes, offset, demand_for(level, false, index), placement) ==
                          cuda::Jpeg2000Reason::none;
                 });
}

void SlotDecoder::describe_plain(Batch& batch) {
  jpeg_.reset();
  jpeg2000_.reset();
  auto* described = reinterpret_cast<cuda::PlacedTile*>(upload_.data());
  const Level& level = level_of(batch);
  const cuda::SampleLayout layout = sample_layout(batch);
  const auto first_sample = static_cast<std::uint64_t>(coding_of(batch).first_sample);
  for (std::size_t i = 0; i < batch.tiles.size(); ++i) {
    const BatchTile& tile = batch.tiles[i];
    cuda::PlacedTile& placed = described[i];
    placed = {};
    const bool missing = tile.source == BatchTile::Source::missing;
    const bool whole =
        tile.source == BatchTile::Source::file &&
        tile.length >= least_uncompressed_bytes(demand_for(level, false, tile.index), static_cast<int>(layout.samples));
    if (!missing && !whole) {
      flag(batch, i);
      continue;
    }
    if (missing && tile.owned) ++batch.missing_tiles;
    if (whole) {
      placed.source = tile.offset + static_cast<std::uint64_t>(tile.from_y) * layout.row_bytes +
                      static_cast<std::uint64_t>(tile.from_x) * layout.samples + first_sample;
    }
    placed.destination = static_cast<std::uint64_t>(tile.place[luminance_plane]);
    placed.rgb_destination = static_cast<std::uint64_t>(tile.place[rgb_plane]);
    placed.width = static_cast<std::uint32_t>(tile.out[luminance_plane].width);
    placed.height = static_cast<std::uint32_t>(tile.out[luminance_plane].height);
  }
}

template <class Described>
void SlotDecoder::fetch_verdicts(const Described& described, cudaStream_t stream) {
  if (described.tiles() == 0) return;
  SLIDESTREAM_CUDA(cudaMemcpyAsync(host_verdicts_.data(), verdicts_.data(), described.tiles() * sizeof(std::uint32_t),
                                   cudaMemcpyDeviceToHost, stream));
}

void SlotDecoder::decode(const Batch& batch, const ByPlane<std::byte*>& own_rows, cudaStream_t stream) {
  cuda::DeviceColours colours;
  if (colours_) colours = colours_->load(conversion_of(*batch.slide->slide), jpeg2000_.has_value(), stream);
  if (level_of(batch).codec == Codec::none) return place(batch, own_rows, colours, stream);
  auto* const plane = reinterpret_cast<std::uint8_t*>(own_rows[plane_]);
  auto* const verdicts = reinterpret_cast<std::uint32_t*>(verdicts_.data());
  const std::span<const std::byte> compressed = compressed_.first(whole_reads(batch.compressed_end));
  if (jpeg_) {
    jpeg_decoder_->enqueue(plane, verdicts, *jpeg_, compressed, stream, colours);
    fetch_verdicts(*jpeg_, stream);
  } else {
    jpeg2000_decoder_->enqueue(plane, verdicts, *jpeg2000_, compressed, stream, colours);
    fetch_verdicts(*jpeg2000_, stream);
  }
}

void SlotDecoder::place(const Batch& batch, const ByPlane<std::byte*>& own_rows, const cuda::DeviceColours& colours,
                        cudaStream_t stream) {
  std::byte* const on_device = compressed_.data() + batch.descriptors_offset;
  SLIDESTREAM_CUDA(cudaMemcpyAsync(on_device, upload_.data(), batch.tiles.size() * sizeof(cuda::PlacedTile),
                                   cudaMemcpyHostToDevice, stream));
  const auto* described = reinterpret_cast<const cuda::PlacedTile*>(on_device);
  const auto to = [&](std::size_t plane) { return reinterpret_cast<std::uint8_t*>(own_rows[plane]); };
  const auto& pitch = batch.panel().pitch;
  if (colours.program != nullptr) {
    const cuda::ConvertedPlanes planes = {to(rgb_plane), to(luminance_plane), pitch[rgb_plane], pitch[luminance_plane]};
    cuda::place_converted_tiles(planes, compressed_.data(), described, batch.tiles.size(), sample_layout(batch),
                                colours, stream);
    return;
  }
  constexpr ByPlane<decltype(&cuda::place_tiles)> put = {cuda::place_tiles, cuda::place_rgb_tiles};
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    if (!wanted_[plane]) continue;
    put[plane](to(plane), pitch[plane], compressed_.data(), described, batch.tiles.size(), sample_layout(batch),
               stream);
  }
}

void SlotDecoder::check(Batch& batch) const noexcept {
  // Both codecs' none is zero; of tiles without a codec there are no numbers.
  static_assert(static_cast<int>(cuda::JpegReason::none) == 0 && static_cast<int>(cuda::Jpeg2000Reason::none) == 0);
  if (numbers_.empty()) return;
  const auto* verdicts = reinterpret_cast<const std::uint32_t*>(host_verdicts_.data());
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (verdicts[i] != 0) flag(batch, numbers_[i]);
  }
  // The first bad tile is the cause of a failure, and what comes behind it isn't decoded.
  std::ranges::sort(batch.flagged);
}

}  // namespace slidestream
