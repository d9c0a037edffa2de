#include "slide/codestream.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

#include "codec/jp2_file.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_codestream_tiles = 4096;  // OpenJPEG allocates some KiB for each before it decodes any
constexpr unsigned most_components = 16;
constexpr unsigned most_tile_parts = 255;  // of a tile (ISO/IEC 15444-1, A.4.2): one byte numbers and counts them

/// Big-endian numbers at checked places.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const noexcept { return bytes_.size(); }

  std::uint64_t number(std::size_t at, unsigned length) const {
    if (at > size() || length > size() - at) throw TileError("the JPEG 2000 data end inside a header");
    std::uint64_t value = 0;
    for (unsigned i = 0; i < length; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at + i]);
    return value;
  }
  std::uint8_t u8(std::size_t at) const { return static_cast<std::uint8_t>(number(at, 1)); }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::uint16_t soc = 0xFF4F, cap = 0xFF50, siz = 0xFF51, cod = 0xFF52, coc = 0xFF53, qcd = 0xFF5C,
                        qcc = 0xFF5D, sot = 0xFF90, sod = 0xFF93, eoc = 0xFFD9;

/// Throws unless a header may have the marker. Of part 2, OpenJPEG keeps the arrays of component transforms, and copies
/// them for each tile. Of one that it doesn't know it looks into the segment, for others.
void check_marker(std::uint16_t marker) {
  constexpr std::array<std::uint16_t, 16> known = {cap,    siz,    cod,    coc,   0xFF55, 0xFF57,  // CAP; TLM, PLM
                                                   0xFF58, 0xFF59, qcd,    qcc,   0xFF5E, 0xFF5F,  // PLT to POC
                                                   0xFF60, 0xFF61, 0xFF63, 0xFF64};                // PPM, PPT, CRG, COM
  if (std::ranges::find(known, marker) != known.end()) return;
  if (marker == 0xFF74 || marker == 0xFF75 || marker == 0xFF77) {
    throw TileError("the JPEG 2000 codestream has multiple component transforms of part 2, which aren't supported");
  }
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string name;
  for (unsigned shift = 16; shift > 0; shift -= 4) name += digits[marker >> (shift - 4) & 15U];
  throw TileError("a JPEG 2000 header has the marker " + name + ", which isn't supported");
}

/// Without the zeros behind EOC: one makes a DICOM fragment even, and a tile-part may reach up to EOC.
std::span<const std::byte> without_zeros_behind(std::span<const std::byte> bytes) {
  std::size_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == std::byte{0}) --end;
  const bool has_end = end >= 2 && Reader(bytes).u16(end - 2) == eoc;
  return has_end ? bytes.first(end) : bytes;
}

std::span<const std::byte> find_codestream(std::span<const std::byte> bytes, Codestream& stream) {
  const Reader reader(bytes);
  if (bytes.size() >= 4 && reader.u16(0) == soc && reader.u16(2) == siz) return bytes;
  if (!is_jp2_file(bytes)) throw TileError("the data begin neither like a JPEG 2000 codestream nor like a JP2 file");
  const std::optional<Jp2File> file = read_jp2_file(bytes);
  if (!file) throw TileError("a box of the JP2 file is cut");
  if (file->has_palette) throw TileError("the JP2 file has a palette, which isn't supported");
  if (file->reorders_channels) throw TileError("the JP2 file reorders its channels, which isn't supported");
  if (file->unsupported != nullptr) {
    throw TileError(std::string("the JP2 file's colours are ") + file->unsupported + ", which isn't supported");
  }
  if (file->codestream.size() < 4) throw TileError("the JP2 file has no codestream");
  stream.jp2_says_grey = file->says_grey;
  stream.jp2_says_ycbcr = file->says_ycbcr;
  return file->codestream;
}

/// Reads the SIZ segment at `at`, and returns the number of tiles.
std::uint64_t read_size(const Reader& reader, std::size_t at, Codestream& stream) {
  const std::uint64_t x1 = reader.u32(at + 6), y1 = reader.u32(at + 10);
  const std::uint64_t tile_width = reader.u32(at + 22), tile_height = reader.u32(at + 26);
  const std::uint64_t tile_x0 = reader.u32(at + 30), tile_y0 = reader.u32(at + 34);
  stream.x0 = reader.u32(at + 14);
  stream.y0 = reader.u32(at + 18);
  const unsigned components = reader.u16(at + 38);
  const bool sound = x1 > stream.x0 && y1 > stream.y0 && tile_width > 0 && tile_height > 0 && tile_x0 <= stream.x0 &&
                     tile_y0 <= stream.y0 && components > 0;
  if (!sound) throw TileError("the JPEG 2000 header's sizes are damaged");
  if (components > most_components) {
    throw TileError(std::to_string(components) + " JPEG 2000 components, supported are up to 16");
  }
  stream.width = static_cast<std::uint32_t>(x1 - stream.x0);
  stream.height = static_cast<std::uint32_t>(y1 - stream.y0);
  for (unsigned i = 0; i < components; ++i) {
    const unsigned depth = reader.u8(at + 40 + 3 * i);
    Codestream::Component component;
    component.precision = static_cast<int>((depth & 0x7F) + 1);
    component.is_signed = (depth & 0x80) != 0;
    component.dx = reader.u8(at + 41 + 3 * i);
    component.dy = reader.u8(at + 42 + 3 * i);
    if (component.dx == 0 || component.dy == 0) throw TileError("the JPEG 2000 header's sampling is damaged");
    stream.components.push_back(component);
  }
  const std::uint64_t tiles =
      ((x1 - tile_x0 + tile_width - 1) / tile_width) * ((y1 - tile_y0 + tile_height - 1) / tile_height);
  if (tiles > most_codestream_tiles) {
    throw TileError("a JPEG 2000 codestream of " + std::to_string(tiles) + " tiles, supported are up to 4096");
  }
  return tiles;
}

/// What components are cut into: SPcod and SPcoc begin at `at`.
struct Parts {
  std::uint64_t precincts = 0;
  std::uint64_t blocks = 0;
  std::uint64_t most_precincts = 0;  ///< of one resolution
  std::uint64_t resolutions = 0;
  std::uint64_t segments = 0;  ///< of code-blocks, that a layer may begin
};

Parts larger(const Parts& a, const Parts& b) {
  return {std::max(a.precincts, b.precincts), std::max(a.blocks, b.blocks),
          std::max(a.most_precincts, b.most_precincts), std::max(a.resolutions, b.resolutions),
          std::max(a.segments, b.segments)};
}

/// What one header says, of all components (0) and of single ones (1 and their number).
using Said = std::array<std::optional<unsigned>, 1 + most_components>;

/// Wavelet levels, and steps of quantisation, that a header says.
struct Bands {
  Said levels;
  Said steps;

  void read(const Reader& reader, std::size_t at) {
    const std::uint16_t marker = reader.u16(at);
    const bool of_one = marker == coc || marker == qcc;
    const unsigned place = of_one ? 1 + reader.u8(at + 4) : 0;
    if (place > most_components) return;
    if (marker == cod) levels[place] = reader.u8(at + 9);
    if (marker == coc) levels[place] = reader.u8(at + 6);
    if (marker == qcd || marker == qcc) steps[place] = steps_at(reader, at, of_one ? 5 : 4);
  }

 private:
  /// \param style  where Sqcd or Sqcc is, in the segment at `at`, with its marker
  static unsigned steps_at(const Reader& reader, std::size_t at, unsigned style) {
    constexpr unsigned none = 0, expounded = 2;
    const unsigned kind = reader.u8(at + style) & 31U;
    // Derived: one step is enough. Of other styles the standard says nothing.
    if (kind != none && kind != expounded) return std::numeric_limits<unsigned>::max();
    const unsigned end = 2U + reader.u16(at + 2);
    return end <= style + 1 ? 0 : (end - style - 1) / (kind == none ? 1 : 2);
  }
};

/// Throws if a component has more bands than steps (ISO/IEC 15444-1, A.6.4): OpenJPEG takes others, or none, for those
/// that lack. Steps for bands that aren't there are allowed. \param tile  goes before `main`
void check_bands(const Bands& main, const Bands& tile, std::size_t components) {
  for (std::size_t i = 1; i <= components; ++i) {
    const auto said = [i](const Said& of_main, const Said& of_tile) {
      for (const auto& one : {of_tile[i], of_tile[0], of_main[i]}) {
        if (one) return one;
      }
      return of_main[0];
    };
    const auto levels = said(main.levels, tile.levels), steps = said(main.steps, tile.steps);
    if (!levels || !steps || *steps >= 1 + 3 * *levels) continue;
    throw TileError("the JPEG 2000 header has " + std::to_string(*levels) + " wavelet levels, and " +
                    std::to_string(*steps) + " quantisation steps, which are too few");
  }
}

/// The most that the headers say so far, those of tile-parts included: any may add to what others said of a component.
struct Coding {
  std::vector<Parts> components;
  std::uint64_t layers = 0;
  std::uint64_t markers = 0;
  bool any_high_throughput = false;
  bool any_other = false;
  Bands bands;  ///< of the main header
};

/// Throws for code-blocks of HTJ2K that OpenJPEG 2.5.0 isn't safe with. It shares buffers that are too small for other
/// code-blocks, and puts a code-block's bytes of several layers together before it looks for stuffed bits.
void check_high_throughput(const Coding& coding) {
  if (!coding.any_high_throughput) return;
  if (coding.any_other) {
    throw TileError("the JPEG 2000 codestream has code-blocks of HTJ2K and others, which isn't supported");
  }
  if (coding.layers > 1) throw TileError("HTJ2K of " + std::to_string(coding.layers) + " layers, supported is 1");
}

/// Throws if packets of HTJ2K have FF before more than 8F, or at their end. Neither packet headers nor code-blocks have
/// that, and OpenJPEG 2.5.0 ends the process by an assertion if the latter do. SOP and EPH do; they might as well be a
/// code-block's bytes.
void check_stuffing(std::span<const std::byte> packets) {
  for (auto at = std::ranges::find(packets, std::byte{0xFF}); at != packets.end();
       at = std::find(at, packets.end(), std::byte{0xFF})) {
    if (++at == packets.end()) throw TileError("the HTJ2K packets are damaged: they end with FF");
    if (*at == std::byte{0x91} || *at == std::byte{0x92}) {
      throw TileError("the HTJ2K packets are damaged, or have SOP or EPH markers, which aren't supported");
    }
    if (*at > std::byte{0x8F}) throw TileError("the HTJ2K packets are damaged: a marker lies in them");
  }
}

/// About what OpenJPEG allocates for parts before it decodes any: some KiB for each precinct and block, and a mark for
/// each packet that there may be. Then, as it reads packets, records of segments and of where their bytes lie.
std::uint64_t bytes_of(const Coding& coding, std::uint64_t compressed) {
  constexpr std::uint64_t of_part = 2048;
  constexpr std::uint64_t of_segment = 64;
  constexpr std::uint64_t of_marker = 48;  // twice OpenJPEG's record, for when it grows
  std::uint64_t parts = 0, most_precincts = 0, resolutions = 0, segments = 0;
  for (const Parts& component : coding.components) {
    parts += component.precincts + component.blocks;
    most_precincts = std::max(most_precincts, component.most_precincts);
    resolutions = std::max(resolutions, component.resolutions);
    segments += component.segments;
  }
  // The length of each takes three bits or more of a packet's header.
  segments = std::min(segments * coding.layers, compressed * 8 / 3);
  return parts * of_part + 2 * (coding.layers + 1) * most_precincts * resolutions * coding.components.size() +
         segments * of_segment + coding.markers * of_marker;
}

Parts parts_of(const Reader& reader, std::size_t at, bool has_precincts, const Codestream& stream,
               const Codestream::Component& component) {
  constexpr unsigned most_levels = 32;
  constexpr unsigned largest = 15;
  const unsigned levels = reader.u8(at);
  if (levels > most_levels) throw TileError("the JPEG 2000 header's wavelet levels are damaged");
  const unsigned block_width = (reader.u8(at + 1) & 15U) + 2;
  const unsigned block_height = (reader.u8(at + 2) & 15U) + 2;
  const auto divided = [](std::uint64_t size, unsigned shift) {
    return shift > 31 ? 1 : std::max<std::uint64_t>(1, (size + (std::uint64_t{1} << shift) - 1) >> shift);
  };
  const std::uint64_t width = (std::uint64_t{stream.width} + component.dx - 1) / component.dx;
  const std::uint64_t height = (std::uint64_t{stream.height} + component.dy - 1) / component.dy;
  Parts parts;
  parts.resolutions = levels + 1;
  for (unsigned resolution = 0; resolution <= levels; ++resolution) {
    const unsigned sizes = has_precincts ? reader.u8(at + 5 + resolution) : 0xFFU;
    const unsigned across = sizes & 15U, down = sizes >> 4U;
    const unsigned shift = levels - resolution;
    const std::uint64_t here = divided(divided(width, shift), across) * divided(divided(height, shift), down);
    parts.precincts += here;
    parts.most_precincts = std::max(parts.most_precincts, here);
    // Blocks lie in bands, which have half the resolution's size above the lowest, and in one precinct.
    const unsigned half = resolution > 0 ? 1 : 0;
    const auto side = [&](std::uint64_t size, unsigned precinct, unsigned block) {
      const unsigned of_band = precinct >= largest ? largest : precinct > half ? precinct - half : 0;
      return divided(divided(size, shift + half), std::min(of_band, block));
    };
    parts.blocks += (resolution > 0 ? 3 : 1) * side(width, across, block_width) * side(height, down, block_height);
  }
  // A packet adds up to 164 passes to a block. With these styles a segment may have one, else 109.
  constexpr unsigned bypass = 1, terminates_all = 4;
  parts.segments = parts.blocks * ((reader.u8(at + 3) & (bypass | terminates_all)) != 0 ? 164 : 3);
  return parts;
}

/// Reads the COD or COC segment at `at`, of all components or of one.
void read_coding(const Reader& reader, std::size_t at, bool of_all, const Codestream& stream, Coding& coding) {
  coding.components.resize(stream.components.size());
  const auto add = [&](std::size_t number, std::size_t from, unsigned style) {
    const Parts parts = parts_of(reader, from, (style & 1U) != 0, stream, stream.components[number]);
    coding.components[number] = larger(coding.components[number], parts);
    constexpr unsigned high_throughput = 0x40;
    ((reader.u8(from + 3) & high_throughput) != 0 ? coding.any_high_throughput : coding.any_other) = true;
  };
  if (of_all) {
    coding.layers = std::max<std::uint64_t>(coding.layers, reader.u16(at + 6));
    for (std::size_t i = 0; i < stream.components.size(); ++i) add(i, at + 9, reader.u8(at + 4));
  } else if (const unsigned number = reader.u8(at + 4); number < stream.components.size()) {
    add(number, at + 6, reader.u8(at + 5));
  }
  check_high_throughput(coding);
  std::uint64_t precincts = 0, blocks = 0;
  for (const Parts& component : coding.components) {
    precincts += component.precincts;
    blocks += component.blocks;
  }
  if (precincts > most_codestream_precincts || blocks > most_codestream_blocks) {
    throw TileError("a JPEG 2000 codestream of " + std::to_string(precincts) + " precincts and " +
                    std::to_string(blocks) + " code-blocks, supported are up to " +
                    std::to_string(most_codestream_precincts) + " and " + std::to_string(most_codestream_blocks));
  }
}

/// OpenJPEG refuses such a transform, but not where it decodes the first component alone.
void check_colour_transform(const Codestream& stream) {
  if (!stream.colour_transform || stream.components.size() < 3) return;
  const Codestream::Component& first = stream.components[0];
  for (unsigned i = 1; i < 3; ++i) {
    if (stream.components[i].dx != first.dx || stream.components[i].dy != first.dy) {
      throw TileError("the JPEG 2000 codestream transforms the colours of components of different sizes");
    }
  }
}

/// Of the COD segment at `at`.
bool transforms(const Reader& reader, std::size_t at) { return reader.u8(at + 8) == 1; }
bool is_reversible_at(const Reader& reader, std::size_t at) { return reader.u8(at + 13) != 0; }

/// Reads the header of the tile-part at `at`, which ends before `end`, and moves `at` to its SOD. \returns whether it
/// transforms colours, if it says that
std::optional<bool> read_part_header(const Reader& reader, std::size_t& at, std::size_t end, Codestream& stream,
                                     Coding& coding) {
  std::optional<bool> said;
  Bands bands;
  // Others of the tile have no such markers.
  const bool is_first = reader.u8(at + 10) == 0;
  for (at += 12; reader.u16(at) != sod; ++coding.markers) {
    const std::uint16_t kind = reader.u16(at);
    check_marker(kind);
    bands.read(reader, at);
    // A tile's own transform would make component 0 something else there.
    if (kind == cod || kind == coc) {
      stream.irreversible_colour_transform = false;
      read_coding(reader, at, kind == cod, stream, coding);
    }
    if (kind == cod) {
      said = transforms(reader, at);
      stream.is_reversible = is_reversible_at(reader, at);
    }
    at += 2 + std::max<std::size_t>(reader.u16(at + 2), 2);
    if (at >= end) throw TileError("a JPEG 2000 tile-part's header is damaged");
  }
  if (is_first) check_bands(coding.bands, bands, stream.components.size());
  return said;
}

/// Walks the tile-parts from `at` to the end of the codestream.
void check_tile_parts(const Reader& reader, std::size_t at, std::uint64_t tiles, Codestream& stream, Coding& coding) {
  std::vector<std::uint32_t> parts(tiles), expected(tiles);
  std::vector<bool> transformed(tiles, stream.colour_transform);
  bool ended = false;
  while (!ended && at < reader.size()) {
    const std::uint16_t marker = reader.u16(at);
    if (marker == eoc) {
      ended = true;
      break;
    }
    if (marker != sot) throw TileError("the JPEG 2000 data are damaged between tile-parts");
    const unsigned tile = reader.u16(at + 4);
    std::uint64_t length = reader.u32(at + 6), behind = 0;
    if (tile >= tiles) throw TileError("a JPEG 2000 tile-part of a tile that doesn't exist");
    if (length == 0) {  // up to EOC
      length = reader.size() - at;
      if (length < 16 || reader.u16(reader.size() - 2) != eoc) throw TileError("the JPEG 2000 data end without EOC");
      behind = 2;
      ended = true;
    }
    if (length < 14 || length > reader.size() - at) throw TileError("the JPEG 2000 data end inside a tile-part");
    ++parts[tile];
    if (const unsigned count = reader.u8(at + 11); count != 0) expected[tile] = count;
    // A tile's COD counts before the main header's.
    std::size_t packets = at;
    const std::size_t end = at + length;
    transformed[tile] = read_part_header(reader, packets, end, stream, coding).value_or(transformed[tile]);
    packets = std::min(packets + 2, end - behind);
    if (coding.any_high_throughput) check_stuffing(stream.bytes.subspan(packets, end - behind - packets));
    at = end;
  }
  if (!ended) throw TileError("the JPEG 2000 data end without EOC");
  for (std::size_t i = 0; i < tiles; ++i) {
    if (parts[i] == 0 || parts[i] < expected[i]) {
      throw TileError("the JPEG 2000 data end before the last tile-part");
    }
    // Some encoders count modulo 256: that can't tell whether all are there.
    if (expected[i] != 0 && parts[i] > most_tile_parts) {
      throw TileError("a JPEG 2000 tile has more than 255 tile-parts, which the standard doesn't allow");
    }
    if (expected[i] != 0 && parts[i] > expected[i]) {
      throw TileError("a JPEG 2000 tile has " + std::to_string(parts[i]) + " tile-parts, and its headers say " +
                      std::to_string(expected[i]));
    }
  }
  stream.colour_transform = std::ranges::find(transformed, true) != transformed.end();
}

/// Reads the main header of a bare codestream. \returns where its first tile-part begins
std::size_t read_main_header(const Reader& reader, Codestream& stream, std::uint64_t& tiles, Coding& coding) {
  if (reader.u16(0) != soc || reader.u16(2) != siz) throw TileError("the JPEG 2000 codestream doesn't begin with SIZ");
  tiles = read_size(reader, 2, stream);
  std::size_t at = 2;
  for (; reader.u16(at) != sot; ++coding.markers) {
    const std::uint16_t marker = reader.u16(at);
    if (marker < 0xFF00) throw TileError("the JPEG 2000 main header is damaged");
    check_marker(marker);
    coding.bands.read(reader, at);
    if (marker == cod) {
      stream.colour_transform = transforms(reader, at);
      stream.is_reversible = is_reversible_at(reader, at);
      stream.irreversible_colour_transform = stream.colour_transform && !stream.is_reversible;
    }
    if (marker == cap && reader.u16(at + 2) != 6 + 2 * std::popcount(reader.u32(at + 4))) {
      throw TileError("the JPEG 2000 header's capabilities (CAP) are damaged");
    }
    if (marker == cod || marker == coc) read_coding(reader, at, marker == cod, stream, coding);
    at += 2 + std::max<std::size_t>(reader.u16(at + 2), 2);
  }
  return at;
}

}  // namespace

Codestream parse_codestream(std::span<const std::byte> bytes) {
  Codestream stream;
  stream.bytes = without_zeros_behind(find_codestream(bytes, stream));
  const Reader reader(stream.bytes);
  std::uint64_t tiles = 0;
  Coding coding;
  const std::size_t at = read_main_header(reader, stream, tiles, coding);
  check_tile_parts(reader, at, tiles, stream, coding);
  // OpenJPEG copies the parameters of each component for each tile, which may have a list of packed headers.
  constexpr std::uint64_t of_tile = 12288, of_tile_component = 1280;
  stream.work_bytes =
      bytes_of(coding, stream.bytes.size()) + tiles * (of_tile + of_tile_component * stream.components.size());
  check_colour_transform(stream);
  if (stream.jp2_says_grey && stream.components.size() >= 3) {
    throw TileError("the JP2 file is grey, and its codestream has " + std::to_string(stream.components.size()) +
                    " components");
  }
  return stream;
}

Codestream parse_front(std::span<const std::byte> front) {
  if (is_jp2_file(front)) return parse_codestream(front);
  Codestream stream;
  stream.bytes = front;
  const Reader reader(front);
  std::uint64_t tiles = 0;
  Coding coding;
  std::size_t at = read_main_header(reader, stream, tiles, coding);
  const std::uint32_t length = reader.u32(at + 6);
  // 0: up to EOC, which need not be there.
  const std::size_t end = length == 0 ? front.size() : at + length;
  stream.colour_transform = read_part_header(reader, at, end, stream, coding).value_or(stream.colour_transform);
  return stream;
}

}  // namespace slidestream
