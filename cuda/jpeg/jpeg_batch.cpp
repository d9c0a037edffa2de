#include "cuda/jpeg/jpeg_batch.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/jpeg/octets.hpp"

namespace slidestream::cuda {
namespace {

// Bits of a scan are counted in 32 bits, with room for what a decoder runs past the end.
constexpr std::uint64_t most_scan_bytes = std::uint64_t{1} << 28;
// Smaller pieces of a tile spend their time on finding where codes begin.
constexpr std::uint64_t least_piece_bytes = 768;
// Cutting costs about two more passes over the data: a tile must be so many times what each lane would get if all got
// the same.
constexpr std::uint64_t least_shares = 6;
// Where all blocks have the same codes, as in RGB, less was gained.
constexpr std::uint64_t least_shares_uniform = 16;
// And pieces are so many to a lane: bytes say little of how many blocks they hold, so that lanes need turns.
constexpr std::uint64_t pieces_per_lane = 4;
// Work is ordered by size, in steps of so many bytes.
constexpr std::uint32_t size_step = 256;
constexpr std::uint32_t size_classes = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Blocks of components are counted in so many bits beside which others stand: see decode.cu.
constexpr std::uint64_t most_component_blocks = std::uint64_t{1} << 28;

bool same_frame(const JpegHeader& a, const JpegHeader& b) {
  return a.component_count == b.component_count && a.components == b.components && a.tables == b.tables;
}

}  // namespace

JpegUploadLayout::JpegUploadLayout(const JpegBatchLimits& given) : limits(given) {
  if (limits.segments == 0) {
    limits.segments =
        limits.tiles + static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.compressed_bytes / 512, 1U << 30));
  }
  std::size_t at = 0;
  const auto take = [&at](std::size_t count, std::size_t bytes) {
    const std::size_t begin = at;
    at += aligned(count * bytes);
    return begin;
  };
  // Three modes at most a coding: luminance has three, RGB two.
  groups = take(3 * std::size_t{limits.codings}, sizeof(JpegDeviceGroup));
  tiles = take(limits.tiles, sizeof(JpegDeviceTile));
  rectangles =
      take((limits.with_luminance ? 2 : 1) * std::size_t{limits.white_rectangles}, sizeof(JpegDeviceRectangle));
  codings = take(limits.codings, sizeof(JpegCoding));
  queue = take(limits.segments, sizeof(std::uint32_t));
  luminance = take(limits.with_luminance ? limits.tiles : 0, sizeof(JpegDeviceLuminance));
  size = at;
}

std::size_t JpegBatch::upload_bytes(const JpegBatchLimits& limits) { return JpegUploadLayout(limits).size; }

JpegBatch::JpegBatch(const JpegBatchLimits& limits, std::span<std::byte> upload) : layout_(limits), upload_(upload) {
  group_of_tile_.resize(limits.tiles);
  order_.resize(limits.tiles);
  groups_of_coding_.resize(lane_modes * std::size_t{limits.codings}, -1);
  group_keys_.reserve(3 * std::size_t{limits.codings});
  clear();
}

void JpegBatch::clear() {
  tile_count_ = rectangle_count_ = group_count_ = segment_count_ = chunk_count_ = 0;
  compressed_end_ = 0;
  most_pieces_ = block_count_ = most_stretches_ = octet_kinds_ = 0;
  has_last_ = false;
  group_keys_.clear();
  std::fill(groups_of_coding_.begin(), groups_of_coding_.end(), -1);
  // Codings are kept: the next batch is likely to be of the same slide. But they mustn't fill all there is.
  if (2 * coding_count_ > layout_.limits.codings) {
    coding_count_ = 0;
    by_hash_.clear();
    keys_.clear();
  }
}

JpegReason JpegBatch::make_coding(const JpegHeader& header, PixelsOf pixels_of, std::uint32_t& coding) {
  const JpegCodingKey key(header, layout_.limits.format, pixels_of);
  const std::span<const std::byte> bytes = key.bytes();
  const std::uint64_t hash = key.hash();
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto i = first; i != last; ++i) {
    const std::vector<std::byte>& known = keys_[i->second];
    if (std::equal(known.begin(), known.end(), bytes.begin(), bytes.end())) {
      coding = i->second;
      return JpegReason::none;
    }
  }
  if (coding_count_ == layout_.limits.codings) return JpegReason::no_room;
  JpegCoding& made = part<JpegCoding>(layout_.codings)[coding_count_];
  const JpegReason reason = make_jpeg_coding(header, layout_.limits.format, pixels_of, made);
  if (reason != JpegReason::none) return reason;
  keys_.emplace_back(bytes.begin(), bytes.end());
  by_hash_.emplace(hash, coding_count_);
  coding = coding_count_++;
  return JpegReason::none;
}

JpegReason JpegBatch::coding_for(const JpegHeader& header, PixelsOf pixels_of, std::uint32_t& coding) {
  // Only within a batch: after it the bytes that the references lead to may be others.
  if (has_last_ && pixels_of == last_pixels_of_ && same_frame(header, last_header_)) {
    coding = last_coding_;
    return JpegReason::none;
  }
  const JpegReason reason = make_coding(header, pixels_of, coding);
  if (reason != JpegReason::none) return reason;
  has_last_ = true;
  last_header_ = header;
  last_pixels_of_ = pixels_of;
  last_coding_ = coding;
  return JpegReason::none;
}

std::uint32_t JpegBatch::group_for(std::uint32_t coding, LaneMode mode) {
  std::int32_t& known = groups_of_coding_[lane_modes * std::size_t{coding} + static_cast<std::size_t>(mode)];
  if (known < 0) {
    known = static_cast<std::int32_t>(group_keys_.size());
    group_keys_.push_back(coding * 8 + static_cast<std::uint32_t>(mode));
  }
  return static_cast<std::uint32_t>(known);
}

JpegReason JpegBatch::add_front(std::span<const std::byte> front, std::uint64_t length, std::uint64_t offset,
                                const JpegLevelTables& tables, TileDemand demand, const JpegPlacement& placement) {
  if (tables.reason != JpegReason::none) return tables.reason;
  if (tile_count_ == layout_.limits.tiles) return JpegReason::no_room;
  demand.format = layout_.limits.format;
  JpegHeader header;
  PixelsOf pixels_of{};
  JpegReason reason = parse_jpeg_tile(front, tables.references, demand, header, pixels_of);
  if (reason != JpegReason::none) return reason;
  const bool inside = std::uint64_t{placement.from_x} + placement.width <= header.width &&
                      std::uint64_t{placement.from_y} + placement.height <= header.height;
  if (!inside || placement.width == 0 || placement.height == 0) return JpegReason::size;
  const std::uint64_t scan_bytes = length - header.scan_offset;
  if (scan_bytes > most_scan_bytes) return JpegReason::no_room;
  std::uint32_t coding = 0;
  reason = coding_for(header, pixels_of, coding);
  if (reason != JpegReason::none) return reason;

  const JpegCoding& made = part<JpegCoding>(layout_.codings)[coding];
  const JpegGeometry geometry = jpeg_geometry(made, header.width, header.height, header.restart_interval);
  const std::uint64_t cycles = std::uint64_t{geometry.cycles_across} * geometry.cycle_rows;
  // Every block takes two bits at least.
  if (cycles * geometry.blocks_in_cycle > 4 * scan_bytes) return JpegReason::wrong_length;
  const std::uint32_t per_interval = header.restart_interval / mcus_per_cycle(geometry.mode, made);
  const std::uint64_t intervals = per_interval == 0 ? 1 : (cycles + per_interval - 1) / per_interval;
  const std::uint64_t chunks = (scan_bytes + 15) / 16 + 1;
  if (intervals > layout_.limits.segments - segment_count_ ||
      16 * (chunk_count_ + chunks) > layout_.limits.compressed_bytes + 32 * std::uint64_t{layout_.limits.tiles}) {
    return JpegReason::no_room;
  }
  const std::uint64_t blocks = made.makes_rgb != 0 ? component_bytes(header) / 64 : 0;
  if (block_count_ + blocks > std::min(layout_.limits.component_bytes / 64, most_component_blocks)) {
    return JpegReason::no_room;
  }

  JpegDeviceTile& tile = part<JpegDeviceTile>(layout_.tiles)[tile_count_];
  std::memset(&tile, 0, sizeof(tile));
  tile.scan_offset = offset + header.scan_offset;
  tile.scan_bytes = static_cast<std::uint32_t>(scan_bytes);
  const auto origin = [&placement](std::uint64_t rectangle, std::uint32_t pitch, std::size_t pixel_bytes) {
    return static_cast<std::int64_t>(rectangle) - std::int64_t{placement.from_y} * pitch -
           std::int64_t{placement.from_x} * static_cast<std::int64_t>(pixel_bytes);
  };
  tile.origin = origin(placement.offset, placement.pitch, layout_.limits.format.pixel_bytes());
  if (layout_.limits.with_luminance) {
    part<JpegDeviceLuminance>(layout_.luminance)[tile_count_] = {
        origin(placement.luminance_offset, placement.luminance_pitch, 1), placement.luminance_pitch, 0};
  }
  tile.first_chunk = chunk_count_;
  tile.pitch = placement.pitch;
  tile.coding = coding;
  tile.first_row = static_cast<std::uint16_t>(placement.from_y);
  tile.rows = static_cast<std::uint16_t>(placement.height);
  tile.first_column = static_cast<std::uint16_t>(placement.from_x);
  tile.columns = static_cast<std::uint16_t>(placement.width);
  tile.segments = static_cast<std::uint32_t>(intervals);
  tile.cycles_across = static_cast<std::uint16_t>(geometry.cycles_across);
  tile.cycle_rows = static_cast<std::uint16_t>(geometry.cycle_rows);
  tile.cycles_per_interval = per_interval;
  tile.flags = static_cast<std::uint16_t>((pixels_of == PixelsOf::first_inverted ? JpegDeviceTile::inverted : 0) |
                                          (made.uniform != 0 ? JpegDeviceTile::uniform : 0));
  tile.blocks_in_cycle = static_cast<std::uint16_t>(geometry.blocks_in_cycle);
  tile.first_block = block_count_;
  tile.frame_width = static_cast<std::uint16_t>(header.width);
  tile.frame_height = static_cast<std::uint16_t>(header.height);
  if (made.makes_rgb != 0) {
    const bool aligned = (tile.origin | static_cast<std::int64_t>(tile.pitch)) % 16 == 0 && tile.first_column == 0;
    const auto kind = static_cast<unsigned>(aligned ? octet_kind(made, header.width) : OctetKind::none);
    tile.flags = static_cast<std::uint16_t>(tile.flags | kind << JpegDeviceTile::kind_shift);
    octet_kinds_ |= 1U << kind;
    most_stretches_ = std::max(most_stretches_, stretch_count(tile));
  }
  block_count_ += static_cast<std::uint32_t>(blocks);
  group_of_tile_[tile_count_] = group_for(coding, geometry.mode);
  compressed_end_ = std::max(compressed_end_, offset + length);
  chunk_count_ += static_cast<std::uint32_t>(chunks);
  segment_count_ += tile.segments;
  ++tile_count_;
  return JpegReason::none;
}

bool JpegBatch::add_white(const JpegPlacement& placement) {
  const JpegBatchLimits& limits = layout_.limits;
  const std::size_t room = (limits.with_luminance ? 2 : 1) * std::size_t{limits.white_rectangles};
  return add_white_rectangles(placement, limits.format, limits.with_luminance,
                              {part<JpegDeviceRectangle>(layout_.rectangles), room}, rectangle_count_);
}

void JpegBatch::cut_into_pieces(std::uint32_t lanes) {
  JpegDeviceTile* tiles = part<JpegDeviceTile>(layout_.tiles);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < tile_count_; ++i) bytes += tiles[i].scan_bytes;
  if (lanes == 0) lanes = 1;
  const std::uint64_t piece = std::max(least_piece_bytes, bytes / (pieces_per_lane * lanes));
  for (std::uint32_t i = 0; i < tile_count_; ++i) {
    JpegDeviceTile& tile = tiles[i];
    if (tile.cycles_per_interval != 0) continue;
    const std::uint64_t pieces = (tile.scan_bytes + piece - 1) / piece;
    const bool uniform = (tile.flags & JpegDeviceTile::uniform) != 0;
    const std::uint64_t shares = uniform ? least_shares_uniform : least_shares;
    if (pieces < 4 || tile.scan_bytes < shares * (bytes / lanes) ||
        pieces - 1 > layout_.limits.segments - segment_count_)
      continue;
    tile.piece_bytes = static_cast<std::uint32_t>(piece);
    tile.segments = static_cast<std::uint32_t>(pieces);
    segment_count_ += tile.segments - 1;
    most_pieces_ = std::max(most_pieces_, tile.segments);
  }
  std::uint32_t segment = 0;
  for (std::uint32_t i = 0; i < tile_count_; ++i) {
    tiles[i].first_segment = segment;
    segment += tiles[i].segments;
  }
}

void JpegBatch::order_queue() {
  const JpegDeviceTile* tiles = part<JpegDeviceTile>(layout_.tiles);
  // Long segments first, so that none is begun when the others are done. A counting sort.
  const auto size_class = [tiles](std::uint32_t i) {
    const std::uint32_t bytes = tiles[i].scan_bytes / tiles[i].segments;
    return size_classes - 1 - std::min(bytes / size_step, size_classes - 1);
  };
  counts_.assign(size_classes + 1, 0);
  for (std::uint32_t i = 0; i < tile_count_; ++i) ++counts_[size_class(i) + 1];
  for (std::uint32_t c = 0; c < size_classes; ++c) counts_[c + 1] += counts_[c];
  for (std::uint32_t i = 0; i < tile_count_; ++i) order_[counts_[size_class(i)]++] = i;

  // Groups of one mode stand together; then each segment goes to its group's part of the queue.
  const auto known = static_cast<std::uint32_t>(group_keys_.size());
  counts_.assign(2 * std::size_t{known}, 0);
  std::uint32_t* segments = counts_.data();
  std::uint32_t* next = counts_.data() + known;
  for (std::uint32_t i = 0; i < tile_count_; ++i) segments[group_of_tile_[i]] += tiles[i].segments;
  JpegDeviceGroup* groups = part<JpegDeviceGroup>(layout_.groups);
  const JpegCoding* codings = part<JpegCoding>(layout_.codings);
  std::uint32_t begin = 0;
  group_count_ = 0;
  for (std::uint32_t m = 0; m < lane_modes; ++m) {
    Mode& mode = modes_[m];
    mode = {group_count_, 0, 0, 0};
    for (std::uint32_t g = 0; g < known; ++g) {
      if (group_keys_[g] % 8 != m) continue;
      const std::uint32_t coding = group_keys_[g] / 8;
      groups[group_count_++] = {coding, begin, begin + segments[g], 0};
      next[g] = begin;
      begin += segments[g];
      ++mode.groups;
      mode.segments += segments[g];
      mode.lookup_words = std::max<std::uint32_t>(mode.lookup_words, codings[coding].lookup_words);
    }
  }
  // Neighbouring segments go to lanes of one warp. Those of one tile are alike, and a warp of lanes that all have empty
  // glass takes long: so segments of several tiles take turns.
  constexpr std::uint32_t tiles_in_turn = 64;
  std::uint32_t* queue = part<std::uint32_t>(layout_.queue);
  for (std::uint32_t first = 0; first < tile_count_; first += tiles_in_turn) {
    const std::uint32_t end = std::min(first + tiles_in_turn, tile_count_);
    bool more = true;
    for (std::uint32_t s = 0; more; ++s) {
      more = false;
      for (std::uint32_t j = first; j < end; ++j) {
        const JpegDeviceTile& tile = tiles[order_[j]];
        if (s < tile.segments) queue[next[group_of_tile_[order_[j]]]++] = tile.first_segment + s;
        more |= s + 1 < tile.segments;
      }
    }
  }
}

void JpegBatch::finish(std::uint32_t lanes) {
  cut_into_pieces(lanes);
  order_queue();
}

}  // namespace slidestream::cuda
