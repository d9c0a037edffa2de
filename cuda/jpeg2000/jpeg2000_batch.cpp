#include "cuda/jpeg2000/jpeg2000_batch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace slidestream::cuda {
namespace {

// For an area: all code-blocks of 32 x 32 samples that a component of 256 x 256 samples has.
constexpr std::uint32_t usual_blocks = 80;
// For an area: pieces beyond the first one of each code-block.
constexpr std::uint32_t usual_pieces = 16;
// For a tile, on average: the planes of signs and "pending", and 12 bit planes. For each further component of RGB:
// those two and 9 bit planes.
constexpr std::uint32_t usual_planes = 14, usual_colour_planes = 11;
// Two for each of up to 160 multiprocessors: so many tiles of three components are made at a time.
constexpr std::uint32_t most_colour_tiles = 320;
// For a tile.
constexpr std::uint32_t usual_state_words = 2560;
constexpr std::uint32_t words_of_plane = small_jpeg2000_side * small_jpeg2000_side / 32;
// The areas of a component of the largest tiles. By default a wave has room for the areas and code-blocks of one such
// tile at least. In small waves `colour_tiles` or `state_words` may be too few for it.
constexpr std::uint32_t most_areas =
    most_jpeg2000_side / small_jpeg2000_side * (most_jpeg2000_side / small_jpeg2000_side);

/// `tiles` rounded up to a multiple of 32. `parse_packets` interleaves the states of 32 tiles.
constexpr std::uint64_t whole_groups(std::uint64_t tiles) { return (tiles + 31) / 32 * 32; }

std::uint32_t decoded_areas(const Jpeg2000Coding& coding) {
  std::uint32_t areas = 0;
  for (std::uint32_t c = 0; c < coding.components; ++c) areas += coding.decoded[c].areas();
  return areas;
}

/// The side of the square that a large tile is made in, a power of two; 0 if the tile isn't large.
std::uint32_t large_side(const Jpeg2000Coding& coding) {
  if (coding.large == 0) return 0;
  return std::bit_ceil(std::max<std::uint32_t>({coding.width, coding.height, small_jpeg2000_side}));
}

}  // namespace

Jpeg2000UploadLayout::Jpeg2000UploadLayout(const Jpeg2000BatchLimits& given) : limits(given) {
  if (limits.wave_tiles == 0 || limits.wave_tiles > limits.tiles) limits.wave_tiles = limits.tiles;
  if (limits.wave_bytes == 0 || limits.wave_bytes > limits.compressed_bytes)
    limits.wave_bytes = limits.compressed_bytes;
  const std::uint32_t of_a_tile = limits.format == rgb_format ? most_decoded_components : 1;
  const std::uint64_t planes_of_a_tile = usual_planes + (of_a_tile - 1) * usual_colour_planes;
  if (limits.areas == 0) limits.areas = std::max(of_a_tile * limits.wave_tiles, most_decoded_components * most_areas);
  if (limits.state_words == 0) limits.state_words = whole_groups(limits.wave_tiles) * usual_state_words;
  if (limits.parts == 0) limits.parts = 2 * limits.tiles + most_jpeg2000_tile_parts;
  if (limits.blocks == 0) limits.blocks = usual_blocks * limits.areas + most_small_blocks;
  if (limits.pieces == 0) limits.pieces = usual_pieces * limits.areas + 4096;
  if (limits.plane_words == 0) {
    const std::uint64_t areas = std::max(limits.wave_tiles, most_areas) + 1;
    limits.plane_words = areas * planes_of_a_tile * words_of_plane;
  }
  if (limits.colour_tiles == 0) {
    limits.colour_tiles = std::clamp(limits.wave_tiles / (of_a_tile == 1 ? 8 : 4), 1U, most_colour_tiles);
  }
  limits.plane_words = std::min<std::uint64_t>(limits.plane_words, UINT32_MAX);
  std::size_t at = 0;
  const auto take = [&at](std::size_t bytes) {
    const std::size_t begin = at;
    at += (bytes + 63) / 64 * 64;
    return begin;
  };
  tiles = take(sizeof(Jpeg2000DeviceTile) * std::size_t{limits.tiles});
  parts = take(sizeof(Jpeg2000TilePart) * std::size_t{limits.parts});
  rectangles =
      take(sizeof(JpegDeviceRectangle) * (limits.with_luminance ? 2 : 1) * std::size_t{limits.white_rectangles});
  codings = take(sizeof(Jpeg2000Coding) * std::size_t{limits.codings});
  size = at;
}

std::size_t Jpeg2000Batch::upload_bytes(const Jpeg2000BatchLimits& limits) { return Jpeg2000UploadLayout(limits).size; }

Jpeg2000Batch::Jpeg2000Batch(const Jpeg2000BatchLimits& limits, std::span<std::byte> upload)
    : layout_(limits), upload_(upload) {
  if (upload.size() < layout_.size) throw std::length_error("too little memory for a batch of JPEG 2000 tiles");
  known_.reserve(layout_.limits.codings);
}

void Jpeg2000Batch::clear(bool converts) {
  converts_ = converts;
  tile_count_ = rectangle_count_ = part_count_ = 0;
  waves_.clear();
  compressed_end_ = 0;
  has_ = {};
  has_styles_ = false;
  // The next batch is likely of the same slide: codings stay until there is no room for another one.
  if (coding_count_ < layout_.limits.codings) return;
  coding_count_ = 0;
  known_.clear();
  last_main_.clear();
}

Jpeg2000Reason Jpeg2000Batch::coding_for(std::uint32_t components, std::uint32_t& coding) {
  const Known wanted{header_.parameters, components};
  const auto known = std::find(known_.begin(), known_.end(), wanted);
  coding = static_cast<std::uint32_t>(known - known_.begin());
  if (known != known_.end()) return Jpeg2000Reason::none;
  if (coding_count_ == layout_.limits.codings) return Jpeg2000Reason::no_room;
  auto* made = new (part<Jpeg2000Coding>(layout_.codings) + coding_count_) Jpeg2000Coding{};
  const Jpeg2000Reason reason = make_coding(header_.parameters, components, *made);
  if (reason != Jpeg2000Reason::none) return reason;
  known_.push_back(wanted);
  ++coding_count_;
  return Jpeg2000Reason::none;
}

Jpeg2000Reason Jpeg2000Batch::judge(TileDemand demand, bool rgb_wanted, Verdict& verdict) const {
  const Jpeg2000BatchLimits& limits = layout_.limits;
  if (limits.format == rgb_format && (rgb_wanted || converts_)) {
    demand.format = rgb_format;
    const Jpeg2000Reason reason = judge_jpeg2000(header_.parameters, demand, verdict.rgb);
    if (reason != Jpeg2000Reason::none) return reason;
    verdict.components = components_for(verdict.rgb);
    // It stays so where colours are converted. Else luminance is judged below, or nobody wants it.
    verdict.luminance = verdict.rgb;
  }
  if (limits.format == luminance_format || (limits.with_luminance && !converts_)) {
    demand.format = luminance_format;
    const Jpeg2000Reason reason = judge_jpeg2000(header_.parameters, demand, verdict.luminance);
    if (reason != Jpeg2000Reason::none) return reason;
    verdict.components = std::max(verdict.components, components_for(verdict.luminance));
  }
  return Jpeg2000Reason::none;
}

Jpeg2000Reason Jpeg2000Batch::parse(std::span<const std::byte> bytes, const TileDemand& demand, bool rgb_wanted,
                                    Verdict& verdict, std::uint32_t& coding) {
  const bool known = !last_main_.empty() && bytes.size() > last_main_.size() &&
                     std::memcmp(bytes.data(), last_main_.data(), last_main_.size()) == 0;
  Jpeg2000Reason reason =
      known ? parse_jpeg2000_tile_parts(bytes, last_main_.size(), header_) : parse_jpeg2000_header(bytes, header_);
  if (reason != Jpeg2000Reason::none) {
    if (!known) last_main_.clear();
    return reason;
  }
  reason = judge(demand, rgb_wanted, verdict);
  if (known && reason != Jpeg2000Reason::none) return reason;
  if (known && part<Jpeg2000Coding>(layout_.codings)[last_coding_].components == verdict.components) {
    coding = last_coding_;
    return reason;
  }
  last_main_.clear();
  if (reason == Jpeg2000Reason::none) reason = coding_for(verdict.components, coding);
  if (reason != Jpeg2000Reason::none) return reason;
  last_main_.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_.main_bytes));
  last_coding_ = coding;
  return reason;
}

Jpeg2000Wave& Jpeg2000Batch::wave_for(const Jpeg2000Coding& coding, std::uint32_t areas, std::size_t bytes) {
  const Jpeg2000BatchLimits& limits = layout_.limits;
  const std::uint32_t state_words = packet_state_words(coding);
  const auto fits = [&](const Jpeg2000Wave& wave) {
    return wave.tiles < limits.wave_tiles && wave.areas + areas <= limits.areas &&
           wave.blocks + coding.blocks <= limits.blocks && wave.bytes + bytes <= limits.wave_bytes &&
           whole_groups(wave.tiles + 1U) * std::max(wave.state_words, state_words) <= limits.state_words;
  };
  if (waves_.empty() || !fits(waves_.back())) {
    Jpeg2000Wave next;
    next.first_tile = tile_count_;
    waves_.push_back(next);
  }
  Jpeg2000Wave& wave = waves_.back();
  ++wave.tiles;
  wave.areas += areas;
  wave.blocks += coding.blocks;
  wave.bytes += bytes;
  wave.state_words = std::max(wave.state_words, state_words);
  wave.large_side = std::max(wave.large_side, large_side(coding));
  return wave;
}

Jpeg2000Reason Jpeg2000Batch::add(std::span<const std::byte> bytes, std::uint64_t offset, const TileDemand& demand,
                                  const JpegPlacement& placement) {
  const std::span<const std::byte> file = bytes;
  bytes = find_jpeg2000_codestream(file);
  if (bytes.empty()) return Jpeg2000Reason::not_a_codestream;
  offset += static_cast<std::uint64_t>(bytes.data() - file.data());
  const std::uint64_t end = offset + bytes.size();
  if (tile_count_ == layout_.limits.tiles || end > layout_.limits.compressed_bytes || end > UINT32_MAX) {
    return Jpeg2000Reason::no_room;
  }
  std::uint32_t coding = 0;
  Verdict verdict;
  const Jpeg2000Reason reason = parse(bytes, demand, placement.pitch > 0, verdict, coding);
  if (reason != Jpeg2000Reason::none) return reason;
  const Jpeg2000Coding& made = part<Jpeg2000Coding>(layout_.codings)[coding];
  const std::uint32_t areas = decoded_areas(made);
  if (placement.width == 0 || placement.height == 0 || std::uint64_t{placement.from_x} + placement.width > made.width ||
      std::uint64_t{placement.from_y} + placement.height > made.height) {
    return Jpeg2000Reason::size;
  }
  if (part_count_ + header_.part_count > layout_.limits.parts || made.blocks > layout_.limits.blocks ||
      areas > layout_.limits.areas || 32 * std::uint64_t{packet_state_words(made)} > layout_.limits.state_words ||
      large_floats(large_side(made)) > colour_floats * layout_.limits.colour_tiles ||
      bytes.size() > layout_.limits.wave_bytes) {
    return Jpeg2000Reason::no_room;
  }
  std::copy_n(header_.parts.begin(), header_.part_count, part<Jpeg2000TilePart>(layout_.parts) + part_count_);
  Jpeg2000DeviceTile& tile = part<Jpeg2000DeviceTile>(layout_.tiles)[tile_count_];
  tile = {};
  const auto origin = [&placement](std::uint64_t rectangle, std::uint32_t pitch, std::int64_t pixel_bytes) {
    return static_cast<std::int64_t>(rectangle) - std::int64_t{placement.from_y} * pitch -
           pixel_bytes * placement.from_x;
  };
  const bool is_rgb = layout_.limits.format == rgb_format;
  if (is_rgb) {
    tile.rgb_origin = origin(placement.offset, placement.pitch, 3);
    tile.rgb_pitch = placement.pitch;
  }
  if (!is_rgb || layout_.limits.with_luminance) {
    tile.luminance_pitch = is_rgb ? placement.luminance_pitch : placement.pitch;
    tile.luminance_origin = origin(is_rgb ? placement.luminance_offset : placement.offset, tile.luminance_pitch, 1);
  }
  tile.luminance_of = verdict.luminance;
  tile.rgb_of = verdict.rgb;
  tile.converted = converts_ ? 1 : 0;
  tile.offset = static_cast<std::uint32_t>(offset);
  tile.coding = coding;
  tile.first_part = part_count_;
  tile.first_block = wave_for(made, areas, bytes.size()).blocks - made.blocks;
  tile.parts = static_cast<std::uint16_t>(header_.part_count);
  tile.first_row = static_cast<std::uint16_t>(placement.from_y);
  tile.rows = static_cast<std::uint16_t>(placement.height);
  tile.first_column = static_cast<std::uint16_t>(placement.from_x);
  tile.columns = static_cast<std::uint16_t>(placement.width);
  part_count_ += header_.part_count;
  has_[made.reversible][static_cast<std::size_t>(way_of(tile, made))] = true;
  has_styles_ = has_styles_ || made.styled != 0;
  compressed_end_ = std::max(compressed_end_, end);
  ++tile_count_;
  return Jpeg2000Reason::none;
}

bool Jpeg2000Batch::add_white(const JpegPlacement& placement) {
  const Jpeg2000BatchLimits& limits = layout_.limits;
  const std::size_t room = (limits.with_luminance ? 2 : 1) * std::size_t{limits.white_rectangles};
  return add_white_rectangles(placement, limits.format, limits.with_luminance,
                              {part<JpegDeviceRectangle>(layout_.rectangles), room}, rectangle_count_);
}

}  // namespace slidestream::cuda
