#include "support/host_coders/jpeg_decoder.hpp"

#include <algorithm>
#include <cstring>

#include "codec/luminance.hpp"
#include "cuda/colour/convert_colour.hpp"
#include "cuda/jpeg/component_layout.hpp"
#include "cuda/jpeg/entropy.hpp"
#include "cuda/jpeg/idct.hpp"
#include "cuda/jpeg/jpeg_geometry.hpp"
#include "cuda/jpeg/octets.hpp"
#include "cuda/jpeg/upsampling.hpp"

namespace slidestream::cuda {
namespace {

/// The arena as a step sees it.
class HostArena {
 public:
  explicit HostArena(std::span<std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint32_t load(std::uint32_t address) const { return get<std::uint32_t>(address); }
  std::uint32_t load_if(bool condition, std::uint32_t address, std::uint32_t otherwise) const {
    return condition ? load(address) : otherwise;
  }
  ZigzagEntry load_zigzag(std::uint32_t address) const { return get<ZigzagEntry>(address); }
  void load_cycle_if(bool condition, std::uint32_t address, CycleEntry& entry) const {
    if (condition) entry = get<CycleEntry>(address);
  }
  void store_half_if(bool condition, std::uint32_t address, std::uint32_t value) {
    if (condition) put(address, static_cast<std::uint16_t>(value));
  }
  template <class T>
  T get(std::uint32_t address) const {
    T value;
    std::memcpy(&value, bytes_.subspan(address, sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  void put(std::uint32_t address, const T& value) {
    std::memcpy(bytes_.subspan(address, sizeof(T)).data(), &value, sizeof(T));
  }
  void clear(std::uint32_t address, std::uint32_t size) {
    std::fill_n(bytes_.subspan(address, size).data(), size, std::uint8_t{0});
  }

 private:
  std::span<std::uint8_t> bytes_;
};

/// Where the parts of an arena with one lane lie.
struct HostLayout {
  HostLayout(LaneMode mode, std::uint32_t lookup_words)
      : arena(arena_layout(mode, lookup_words, 0)),
        ring(arena.lanes),
        blocks(ring + EntropyLane::ring_bytes),
        size(blocks + lane_block_bytes(mode)) {}
  ArenaLayout arena;
  std::uint32_t ring;
  std::uint32_t blocks;
  std::uint32_t size;
};

/// Samples of one block, row by row; false when libjpeg-turbo's versions could disagree.
bool transform(const HostArena& arena, std::uint32_t block, std::int32_t dc, std::uint8_t (&samples)[64]) {
  std::uint32_t columns[8][8];
  std::uint32_t range = 0;
  for (std::uint32_t c = 0; c < 8; ++c) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      columns[c][i] = static_cast<std::uint32_t>(std::int32_t{arena.get<std::int16_t>(block + 16 * c + 2 * i)});
    }
    if (c == 0) columns[c][0] = static_cast<std::uint32_t>(dc);
    range |= idct_columns(columns[c]);
  }
  for (std::uint32_t y = 0; y < 8; ++y) {
    std::uint32_t row[8];
    for (std::uint32_t x = 0; x < 8; ++x) row[x] = columns[x][y];
    idct_rows(row);
    for (std::uint32_t x = 0; x < 8; ++x) {
      samples[8 * y + x] = static_cast<std::uint8_t>(std::clamp(static_cast<std::int32_t>(row[x]), 0, 255));
    }
  }
  return (range & pass1_range) == 0;
}

/// Moves whole chunks of a scan into a lane's ring, past the end the last one again, as the device does.
class HostRing {
 public:
  HostRing(const std::vector<std::uint32_t>& words, std::uint32_t first_chunk, std::uint32_t ring)
      : words_(words),
        first_(first_chunk),
        last_(static_cast<std::uint32_t>(words.size() / 4) - 1 - first_chunk),
        ring_(ring) {}

  void load(HostArena& arena, std::uint32_t chunk) const {
    const std::size_t from = 4 * std::size_t{first_ + std::min(chunk, last_)};
    for (std::uint32_t i = 0; i < 4; ++i)
      arena.put(ring_ + 16 * (chunk % EntropyLane::ring_chunks) + 4 * i, words_[from + i]);
  }
  void begin(HostArena& arena) {
    for (std::uint32_t chunk = 0; chunk < EntropyLane::ring_chunks; ++chunk) load(arena, chunk);
  }
  void follow(HostArena& arena, std::uint32_t position) {
    if (position / 128 == current_) return;
    current_ = position / 128;
    load(arena, current_ + EntropyLane::ring_chunks - 1);
  }

 private:
  const std::vector<std::uint32_t>& words_;
  std::uint32_t first_;
  std::uint32_t last_;
  std::uint32_t ring_;
  std::uint32_t current_ = 0;
};

/// The sum. It wraps around where it is too large, which only tiles that are flagged anyway make it.
std::int32_t add_wrapping(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

/// Transforms the blocks of an event and places their pixels.
class EventWriter {
 public:
  EventWriter(const JpegGeometry& geometry, const JpegCoding& coding, const HostTarget& target,
              std::uint32_t first_cycle)
      : geometry_(geometry),
        coding_(coding),
        target_(target),
        cycle_(first_cycle),
        block_(first_cycle * geometry.blocks_in_cycle) {}

  /// False when the result can't be vouched for.
  bool write(HostArena& arena, std::uint32_t blocks) {
    const std::uint32_t per_event = blocks_per_event(geometry_.mode);
    std::uint8_t samples[3][64];
    bool in_range = true;
    for (std::uint32_t b = 0; b < per_event; ++b) {
      std::int32_t& prediction = predictions_[component(b)];
      prediction = add_wrapping(prediction, arena.get<std::int16_t>(blocks + 128 * b));
      in_range &= transform(arena, blocks + 128 * b, prediction, samples[b]);
    }
    if (keeps_components(geometry_.mode)) {
      keep(samples, per_event);
      arena.clear(blocks, 128 * per_event);
      return in_range;
    }
    const std::uint32_t x =
        (cycle_ % geometry_.cycles_across * geometry_.events_across + across_) * geometry_.event_width;
    const std::uint32_t y = (cycle_ / geometry_.cycles_across * geometry_.events_down + down_) * 8;
    for (std::uint32_t b = 0; b < (geometry_.mode == LaneMode::pairs ? 2U : 1U); ++b) {
      for (std::uint32_t i = 0; i < 64; ++i) {
        std::uint8_t value = samples[b][i];
        if (geometry_.mode == LaneMode::rgb) {
          value = luminance(samples[0][i], samples[1][i], samples[2][i]);
        }
        put(x + 8 * b + i % 8, y + i / 8, value);
      }
    }
    arena.clear(blocks, 128 * per_event);
    advance();
    return in_range;
  }

 private:
  /// Of block `b` of the event.
  std::uint32_t component(std::uint32_t b) const {
    if (keeps_components(geometry_.mode)) return coding_.blocks[(block_ + b) % coding_.block_count].component;
    return geometry_.mode == LaneMode::rgb ? b : 0;
  }

  /// Rows of the blocks beside each other.
  void keep(const std::uint8_t (&samples)[3][64], std::uint32_t blocks) {
    std::uint8_t* to = target_.components + std::size_t{64} * block_;
    for (std::uint32_t y = 0; y < 8; ++y) {
      for (std::uint32_t b = 0; b < blocks; ++b, to += 8) std::copy_n(&samples[b][8 * y], 8, to);
    }
    block_ += blocks;
  }

  void put(std::uint32_t x, std::uint32_t y, std::uint8_t value) {
    // Unsigned, so that what lies before the rectangle is far behind it.
    if (x - target_.first_column >= target_.columns || y - target_.first_row >= target_.rows) return;
    target_.plane[target_.origin + std::int64_t{y} * target_.pitch + x] =
        target_.inverted ? static_cast<std::uint8_t>(255 - value) : value;
  }

  void advance() {
    if (++across_ < geometry_.events_across) return;
    across_ = 0;
    if (++down_ < geometry_.events_down) return;
    down_ = 0;
    ++cycle_;
  }

  JpegGeometry geometry_;
  const JpegCoding& coding_;
  HostTarget target_;
  std::uint32_t cycle_;
  std::uint32_t block_;  // the next of the tile's; where components are kept apart
  std::uint32_t across_ = 0;
  std::uint32_t down_ = 0;
  std::int32_t predictions_[3] = {};
};

/// An octet's column whose neighbours come from memory.
class HostColumn : public OctetColumn {
 public:
  HostColumn(const ComponentLayout& layout, const std::uint8_t* samples, std::uint32_t column, bool inverted)
      : OctetColumn(layout, samples, column, inverted), layout_(layout), column_(column) {}

  Chroma chroma(int row, const HalfRow& samples) const {
    return {quartet(1, row, samples.blue), quartet(2, row, samples.red)};
  }

 private:
  Quartet quartet(std::uint32_t c, int row, std::uint32_t samples) const {
    const auto neighbour = [&](std::uint32_t at) {
      return std::uint32_t{samples_[layout_.offset(c, at, 0) + half_row_offset(row)]};
    };
    const bool last = 4 * column_ + 4 == layout_.width(c);
    return make_quartet(samples, neighbour(4 * column_ - (column_ == 0 ? 0 : 1)),
                        neighbour(4 * column_ + (last ? 3 : 4)));
  }

  const ComponentLayout& layout_;
  std::uint32_t column_;
};

/// Where a tile's pixels go, converted where there are `colours`.
struct HostPixelWriter {
  const JpegDeviceTile& tile;
  std::uint8_t* plane;
  const JpegDeviceLuminance* beside;  ///< null: luminance isn't wanted
  const ColourProgram* colours;

  /// \param grey  luminance of what isn't converted
  void write(std::uint32_t x, std::uint32_t y, Rgb rgb, std::uint8_t grey) const {
    if (colours != nullptr) {
      rgb = converted_by_steps(*colours, rgb);
      grey = luminance(rgb.red, rgb.green, rgb.blue);
    }
    if (beside != nullptr) plane[beside->origin + std::int64_t{y} * beside->pitch + x] = grey;
    if (beside != nullptr && tile.pitch == 0) return;
    const std::uint8_t bytes[] = {rgb.red, rgb.green, rgb.blue};
    std::copy_n(bytes, 3, plane + tile.origin + std::int64_t{y} * tile.pitch + 3 * std::int64_t{x});
  }
};

/// Rows of the rectangle that is wanted, octet by octet.
template <OctetKind kind>
void convert_by_octets(const JpegDeviceTile& tile, const ComponentLayout& layout, const std::uint8_t* samples,
                       const HostPixelWriter& writer) {
  const std::uint32_t end_row = std::uint32_t{tile.first_row} + tile.rows;
  const std::uint32_t end_column = std::uint32_t{tile.first_column} + tile.columns;
  for (std::uint32_t column = tile.first_column / 8U; 8 * column < end_column; ++column) {
    const HostColumn source(layout, samples, column, (tile.flags & JpegDeviceTile::inverted) != 0);
    const auto sink = [&](int i, const std::uint32_t(&words)[12], const Octet(&octets)[2]) {
      for (std::uint32_t j = 0; j < 2; ++j) {
        const std::uint32_t y = 2 * static_cast<std::uint32_t>(i) + j;
        if (y < tile.first_row || y >= end_row) continue;
        for (std::uint32_t x = 8 * column; x < std::min(8 * column + 8, end_column); ++x) {
          if (x < tile.first_column) continue;
          const std::uint8_t* const from = reinterpret_cast<const std::uint8_t*>(words + 6 * j) + 3 * (x % 8);
          writer.write(x, y, {from[0], from[1], from[2]},
                       static_cast<std::uint8_t>((x % 8 < 4 ? octets[j].low : octets[j].high) >> (8 * (x % 4))));
        }
      }
    };
    convert_octets<kind, true>(source, tile.first_row / 2, static_cast<int>((end_row + 1) / 2), Interleaver(), sink);
  }
}

void convert_pixel_by_pixel(const JpegDeviceTile& tile, const ComponentLayout& layout, const std::uint8_t* samples,
                            const HostPixelWriter& writer) {
  for (std::uint32_t y = tile.first_row; y < std::uint32_t{tile.first_row} + tile.rows; ++y) {
    for (std::uint32_t x = tile.first_column; x < std::uint32_t{tile.first_column} + tile.columns; ++x) {
      const Rgb rgb = rgb_at(layout, samples, (tile.flags & JpegDeviceTile::inverted) != 0, x, y);
      writer.write(x, y, rgb, luminance_at(layout, samples, rgb, x, y));
    }
  }
}

/// A tile's components to RGB, and to luminance beside it.
void convert(const JpegDeviceTile& tile, const JpegCoding& coding, const std::uint8_t* samples,
             const HostPixelWriter& writer) {
  const ComponentLayout layout(coding, tile);
  switch (kind_of(tile)) {
    case OctetKind::h2v2:
      return convert_by_octets<OctetKind::h2v2>(tile, layout, samples, writer);
    case OctetKind::h2v1:
      return convert_by_octets<OctetKind::h2v1>(tile, layout, samples, writer);
    case OctetKind::full:
      return convert_by_octets<OctetKind::full>(tile, layout, samples, writer);
    case OctetKind::full_rgb:
      return convert_by_octets<OctetKind::full_rgb>(tile, layout, samples, writer);
    case OctetKind::grey:
      return convert_by_octets<OctetKind::grey>(tile, layout, samples, writer);
    case OctetKind::none:
      break;
  }
  convert_pixel_by_pixel(tile, layout, samples, writer);
}

/// Stops at the first marker that isn't the restart marker whose turn it is. \returns why the device can't vouch for
/// the scan: it ends with something other than EOI, before the end of `bytes`. None if it doesn't.
JpegReason unstuff(std::span<const std::byte> bytes, bool restarts, UnstuffedScan& scan) {
  scan.words.clear();
  scan.intervals.assign(1, 0);
  JpegReason reason = JpegReason::none;
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == std::byte{0xFF}) {
      const unsigned next = i + 1 < bytes.size() ? std::to_integer<unsigned>(bytes[i + 1]) : 0xFF;
      if (next != 0) {
        if (restarts && next == 0xD0 + (scan.intervals.size() - 1) % 8) {
          scan.intervals.push_back(count);
          ++i;
          continue;
        }
        if (next != 0xD9) reason = JpegReason::wrong_marker;
        break;
      }
    }
    if (count % 4 == 0) scan.words.push_back(0);
    scan.words.back() |= std::to_integer<std::uint32_t>(bytes[i]) << (24 - 8 * (count % 4));
    ++count;
    if (bytes[i] == std::byte{0xFF}) ++i;  // the stuffed zero
  }
  scan.intervals.push_back(count);
  scan.words.resize((scan.words.size() + 7) / 4 * 4, 0);
  return reason;
}

}  // namespace

void HostJpegDecoder::prepare_arena() {
  const HostLayout layout(geometry_.mode, coding_.lookup_words);
  arena_.assign(layout.size, 0);
  HostArena arena(arena_);
  for (std::uint32_t i = 0; i < zigzag_regions(geometry_.mode) * zigzag_entries; ++i) {
    arena.put(layout.arena.zigzag + 8 * i,
              zigzag_entry(coding_, geometry_.mode, i / zigzag_entries, i % zigzag_entries));
  }
  for (std::uint32_t i = 0; i < geometry_.blocks_in_cycle; ++i) {
    arena.put(layout.arena.cycle + 16 * i, cycle_entry(coding_, geometry_.mode, layout.arena, i));
  }
  for (std::uint32_t i = 0; i < coding_.lookup_words; ++i) {
    arena.put(layout.arena.lookup + 4 * i, lookup_word(coding_, i, layout.arena.lookup));
  }
}

JpegReason HostJpegDecoder::decode_interval(std::size_t index, std::uint32_t first_cycle, std::uint32_t cycles,
                                            const HostTarget& target) {
  const HostLayout layout(geometry_.mode, coding_.lookup_words);
  HostArena arena(arena_);
  const std::uint32_t start = 8 * scan_.intervals[index];
  const std::uint32_t end = 8 * scan_.intervals[index + 1];
  HostRing ring(scan_.words, start / 128, layout.ring);
  ring.begin(arena);
  arena.clear(layout.blocks, lane_block_bytes(geometry_.mode));
  EntropyLane lane;
  lane.begin(arena, layout.ring, layout.arena.cycle, start % 128, cycles * geometry_.blocks_in_cycle);
  EventWriter writer(geometry_, coding_, target, first_cycle);
  const std::uint32_t origin = start / 128 * 128;
  bool in_range = true;
  while (true) {
    lane.step(arena, layout.ring, layout.blocks);
    ring.follow(arena, lane.position);
    if ((lane.state & EntropyLane::waiting) != 0) {
      in_range &= writer.write(arena, layout.blocks);
      lane.state &= ~EntropyLane::waiting;
      if (origin + lane.position - 32 > end) return JpegReason::wrong_length;
    }
    if (lane.state == EntropyLane::finished) break;
  }
  const std::uint32_t position = origin + lane.position - 32;
  if (position > end || end - position >= 8) return JpegReason::wrong_length;
  if (arena.load(layout.blocks + error_offset(geometry_.mode)) != 0) return JpegReason::bad_code;
  return in_range ? JpegReason::none : JpegReason::out_of_range;
}

JpegReason HostJpegDecoder::decode_scan(std::span<const std::byte> bytes, std::uint32_t per_interval,
                                        const HostTarget& target) {
  JpegReason reason = unstuff(bytes, per_interval != 0, scan_);
  if (reason != JpegReason::none) return reason;
  const std::uint32_t cycles = geometry_.cycles_across * geometry_.cycle_rows;
  if (per_interval == 0) per_interval = cycles;
  // Every block takes two bits at least.
  if (std::uint64_t{cycles} * geometry_.blocks_in_cycle * 2 > 8 * std::uint64_t{scan_.intervals.back()})
    return JpegReason::wrong_length;
  if ((cycles + per_interval - 1) / per_interval + 1 != scan_.intervals.size()) return JpegReason::wrong_marker;
  prepare_arena();
  for (std::size_t i = 0; i + 1 < scan_.intervals.size(); ++i) {
    const auto first = static_cast<std::uint32_t>(i) * per_interval;
    reason = decode_interval(i, first, std::min(per_interval, cycles - first), target);
    if (reason != JpegReason::none) return reason;
  }
  return JpegReason::none;
}

JpegReason HostJpegDecoder::decode_tile(const JpegDeviceTile& tile, const JpegDeviceLuminance* luminance,
                                        std::span<const std::byte> scan, std::uint8_t* plane,
                                        const ColourProgram* colours) {
  const bool rgb = coding_.makes_rgb != 0;
  const bool inverted = (tile.flags & JpegDeviceTile::inverted) != 0;
  if (rgb) {
    components_.assign(std::size_t{64} * tile.cycles_across * tile.cycle_rows * tile.blocks_in_cycle, 0);
  }
  const JpegReason reason = decode_scan(scan, tile.cycles_per_interval,
                                        {plane, components_.data(), tile.origin, tile.pitch, tile.first_column,
                                         tile.first_row, tile.columns, tile.rows, inverted});
  if (reason == JpegReason::none && rgb) {
    convert(tile, coding_, components_.data(), {tile, plane, luminance, colours});
  }
  return reason;
}

JpegReason HostJpegDecoder::decode(std::span<const std::byte> bytes, const JpegTableReferences& tables,
                                   const TileDemand& demand) {
  PixelsOf pixels_of{};
  JpegReason reason = parse_jpeg_tile(bytes, tables, demand, header_, pixels_of);
  if (reason == JpegReason::none) reason = make_jpeg_coding(header_, demand.format, pixels_of, coding_);
  if (reason != JpegReason::none) return reason;
  if (bytes.size() > std::size_t{1} << 28) return JpegReason::no_room;
  geometry_ = jpeg_geometry(coding_, header_.width, header_.height, header_.restart_interval);
  pixels_.assign(demand.format.pixel_bytes() * header_.width * header_.height, 0);
  JpegDeviceTile tile{};
  tile.pitch = static_cast<std::uint32_t>(demand.format.pixel_bytes()) * header_.width;
  tile.columns = tile.frame_width = static_cast<std::uint16_t>(header_.width);
  tile.rows = tile.frame_height = static_cast<std::uint16_t>(header_.height);
  tile.cycles_across = static_cast<std::uint16_t>(geometry_.cycles_across);
  tile.cycle_rows = static_cast<std::uint16_t>(geometry_.cycle_rows);
  tile.cycles_per_interval = header_.restart_interval / mcus_per_cycle(geometry_.mode, coding_);
  tile.blocks_in_cycle = static_cast<std::uint16_t>(geometry_.blocks_in_cycle);
  const unsigned kind = coding_.makes_rgb != 0 ? static_cast<unsigned>(octet_kind(coding_, header_.width)) : 0;
  const unsigned inverted = pixels_of == PixelsOf::first_inverted ? JpegDeviceTile::inverted : 0;
  tile.flags = static_cast<std::uint16_t>(inverted | kind << JpegDeviceTile::kind_shift);
  return decode_tile(tile, nullptr, bytes.subspan(header_.scan_offset), pixels_.data(), nullptr);
}

JpegReason HostJpegDecoder::decode(std::uint8_t* plane, const JpegBatch& batch, std::uint32_t number,
                                   std::span<const std::byte> compressed, const ColourProgram* colours) {
  const std::byte* upload = batch.upload().data();
  const auto& tile = reinterpret_cast<const JpegDeviceTile*>(upload + batch.layout().tiles)[number];
  coding_ = reinterpret_cast<const JpegCoding*>(upload + batch.layout().codings)[tile.coding];
  // The frame as far as whole cycles tell it: how many MCUs a cycle has says which mode the tile is decoded in.
  const std::uint32_t mcus = tile.blocks_in_cycle / coding_.block_count;
  geometry_ = jpeg_geometry(coding_, 8U * coding_.horizontal * mcus * tile.cycles_across,
                            8U * coding_.vertical * tile.cycle_rows, mcus * tile.cycles_per_interval);
  const auto* const luminance = reinterpret_cast<const JpegDeviceLuminance*>(upload + batch.layout().luminance);
  return decode_tile(tile, batch.layout().limits.with_luminance ? luminance + number : nullptr,
                     compressed.subspan(tile.scan_offset, tile.scan_bytes), plane, colours);
}

}  // namespace slidestream::cuda
