#include "cuda/jpeg2000/codestream_header.hpp"

#include <optional>

#include "codec/jp2_file.hpp"

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t soc = 0xFF4F, siz = 0xFF51, cod = 0xFF52, coc = 0xFF53, tlm = 0xFF55, plt = 0xFF58,
                        qcd = 0xFF5C, qcc = 0xFF5D, com = 0xFF64, sot = 0xFF90, sod = 0xFF93, eoc = 0xFFD9;

using Reason = Jpeg2000Reason;

constexpr std::uint32_t most_tile_side = 1U << 30;

/// Big-endian numbers; zero beyond the end.
struct Reader {
  std::span<const std::byte> bytes;

  std::uint32_t u8(std::size_t at) const noexcept {
    return at < bytes.size() ? std::to_integer<std::uint32_t>(bytes[at]) : 0;
  }
  std::uint32_t u16(std::size_t at) const noexcept { return u8(at) << 8 | u8(at + 1); }
  std::uint32_t u32(std::size_t at) const noexcept { return u16(at) << 16 | u16(at + 2); }
  std::size_t size() const noexcept { return bytes.size(); }
  Reader part(std::size_t at, std::size_t length) const noexcept { return {bytes.subspan(at, length)}; }
};

/// The main header as it is read, segment by segment. Segments are without marker and length.
class MainHeader {
 public:
  explicit MainHeader(Jpeg2000Parameters& parameters) : parameters_(parameters) {}

  Reason read(std::uint32_t marker, const Reader& segment) noexcept {
    switch (marker) {
      case cod:
        return read_cod(segment);
      case coc:
        return read_coc(segment);
      case qcd:
        return read_qcd(segment);
      case qcc:
        return read_qcc(segment);
      case tlm:
        return read_tlm(segment);
      case com:
        return Reason::none;
      default:
        return Reason::odd_marker;
    }
  }

  Reason read_siz(const Reader& segment) noexcept {
    if (segment.size() < 36) return Reason::damaged_header;
    const std::uint32_t count = segment.u16(34);
    if (segment.size() != 36 + 3 * std::size_t{count}) return Reason::damaged_header;
    if ((segment.u16(0) & 0x4000U) != 0) return Reason::block_style;
    if (count < 1 || count > most_jpeg2000_components) return Reason::components;
    const std::uint32_t width = segment.u32(2), height = segment.u32(6);
    if (width == 0 || height == 0) return Reason::damaged_header;
    if ((segment.u32(10) | segment.u32(14) | segment.u32(26) | segment.u32(30)) != 0) return Reason::grid;
    // OpenJPEG's sums overflow for large ones.
    const std::uint32_t tile_width = segment.u32(18), tile_height = segment.u32(22);
    if (tile_width < width || tile_height < height || tile_width > most_tile_side || tile_height > most_tile_side) {
      return Reason::grid;
    }
    if (width > most_jpeg2000_side || height > most_jpeg2000_side) return Reason::size;
    parameters_.width = width;
    parameters_.height = height;
    parameters_.component_count = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      Jpeg2000Component& component = parameters_.components[i];
      if (segment.u8(36 + 3 * i) != 7) return Reason::precision;
      component.dx = static_cast<std::uint8_t>(segment.u8(37 + 3 * i));
      component.dy = static_cast<std::uint8_t>(segment.u8(38 + 3 * i));
      if (component.dx == 0 || component.dy == 0) return Reason::damaged_header;
    }
    return parameters_.components[0].dx == 1 && parameters_.components[0].dy == 1 ? Reason::none : Reason::components;
  }

  /// Once all segments are read.
  Reason conclude() const noexcept {
    if (!has_cod_ || !has_qcd_) return Reason::damaged_header;
    for (std::uint32_t i = 0; i < parameters_.component_count; ++i) {
      const Jpeg2000Component& component = parameters_.components[i];
      if (component.levels == 0 || component.levels > most_jpeg2000_levels) return Reason::levels;
      if (component.reversible != (step_style_[i] == 0)) return Reason::quantisation;
      if (step_style_[i] != 1 && step_count_[i] < 1U + 3U * component.levels) return Reason::quantisation;
    }
    if (!parameters_.colour_transform) return Reason::none;
    // OpenJPEG complains of a transform of components that don't go together.
    if (parameters_.component_count < 3) return Reason::damaged_header;
    for (std::uint32_t i = 1; i < 3; ++i) {
      const Jpeg2000Component& component = parameters_.components[i];
      if (component.dx != 1 || component.dy != 1) return Reason::components;
      if (component.reversible != parameters_.components[0].reversible) return Reason::components;
    }
    return Reason::none;
  }

 private:
  /// The part that COD and COC share, from the number of levels on.
  static Reason read_coding(const Reader& segment, bool precincts, Jpeg2000Component& component) noexcept {
    const std::uint32_t levels = segment.u8(0);
    if (levels > most_jpeg2000_levels) return Reason::levels;
    if (segment.size() != 5 + (precincts ? levels + 1 : 0)) return Reason::damaged_header;
    const std::uint32_t width_log = segment.u8(1) + 2, height_log = segment.u8(2) + 2;
    if (width_log > 6 || height_log > 6) return Reason::block_size;
    if ((segment.u8(3) & ~std::uint32_t{BlockStyle::all}) != 0) return Reason::block_style;
    if (segment.u8(4) > 1) return Reason::damaged_header;
    component.levels = static_cast<std::uint8_t>(levels);
    component.block_width_log = static_cast<std::uint8_t>(width_log);
    component.block_height_log = static_cast<std::uint8_t>(height_log);
    component.block_style = static_cast<std::uint8_t>(segment.u8(3));
    component.reversible = segment.u8(4) == 1;
    for (std::uint32_t r = 0; r <= levels; ++r) {
      const std::uint32_t size = precincts ? segment.u8(5 + r) : 0xFFU;
      component.precinct_width_log[r] = static_cast<std::uint8_t>(size & 15U);
      component.precinct_height_log[r] = static_cast<std::uint8_t>(size >> 4);
      if (r > 0 && ((size & 15U) == 0 || size >> 4 == 0)) return Reason::damaged_header;
    }
    return Reason::none;
  }

  Reason read_cod(const Reader& segment) noexcept {
    if (has_cod_ || segment.size() < 10 || (segment.u8(0) & ~7U) != 0) return Reason::damaged_header;
    const std::uint32_t style = segment.u8(0);
    parameters_.sop_markers = (style & 2U) != 0;
    parameters_.eph_markers = (style & 4U) != 0;
    if (segment.u8(1) > 4 || segment.u8(4) > 1) return Reason::damaged_header;
    parameters_.progression = static_cast<Progression>(segment.u8(1));
    parameters_.layers = segment.u16(2);
    if (parameters_.layers == 0) return Reason::damaged_header;
    parameters_.colour_transform = segment.u8(4) == 1;
    Jpeg2000Component coding;
    const Reason reason = read_coding(segment.part(5, segment.size() - 5), (style & 1U) != 0, coding);
    if (reason != Reason::none) return reason;
    for (std::uint32_t i = 0; i < parameters_.component_count; ++i) {
      Jpeg2000Component& component = parameters_.components[i];
      coding.dx = component.dx;
      coding.dy = component.dy;
      coding.guard_bits = component.guard_bits;
      coding.steps = component.steps;
      component = coding;
    }
    has_cod_ = true;
    return Reason::none;
  }

  /// The component that COC or QCC is about; it must come behind COD or QCD, once.
  static bool takes_turn(std::uint32_t component, std::uint32_t count, bool has_common, std::uint32_t& seen) noexcept {
    if (!has_common || component >= count || (seen >> component & 1U) != 0) return false;
    seen |= 1U << component;
    return true;
  }

  Reason read_coc(const Reader& segment) noexcept {
    if (segment.size() < 7 || segment.u8(1) > 1) return Reason::damaged_header;
    const std::uint32_t i = segment.u8(0);
    if (!takes_turn(i, parameters_.component_count, has_cod_, seen_coc_)) return Reason::damaged_header;
    return read_coding(segment.part(2, segment.size() - 2), segment.u8(1) == 1, parameters_.components[i]);
  }

  Reason read_steps(const Reader& segment, std::uint32_t i) noexcept {
    Jpeg2000Component& component = parameters_.components[i];
    if (segment.size() < 2) return Reason::damaged_header;
    const std::uint32_t style = segment.u8(0) & 31U;
    const std::size_t bytes = segment.size() - 1;
    if (style > 2 || (style == 1 && bytes != 2) || (style == 2 && bytes % 2 != 0)) return Reason::quantisation;
    const std::size_t count = style == 0 ? bytes : bytes / 2;
    if (count > 97) return Reason::quantisation;  // OpenJPEG warns
    component.guard_bits = static_cast<std::uint8_t>(segment.u8(0) >> 5);
    for (std::uint32_t band = 0; band < most_jpeg2000_bands; ++band) {
      std::uint32_t step = 0;
      if (style == 0) step = segment.u8(1 + band) >> 3 << 11;
      if (style == 2) step = segment.u16(1 + 2 * band);
      if (style == 1) {  // derived from the first: equation E-5
        const std::uint32_t first = segment.u16(1), less = band == 0 ? 0 : (band - 1) / 3;
        step = (first >> 11 > less ? (first >> 11) - less : 0) << 11 | (first & 0x7FFU);
      }
      component.steps[band] = static_cast<std::uint16_t>(step);
    }
    step_style_[i] = static_cast<std::uint8_t>(style);
    step_count_[i] = static_cast<std::uint8_t>(count);
    return Reason::none;
  }

  Reason read_qcd(const Reader& segment) noexcept {
    if (has_qcd_) return Reason::damaged_header;
    has_qcd_ = true;
    Reason reason = Reason::none;
    for (std::uint32_t i = 0; i < parameters_.component_count && reason == Reason::none; ++i) {
      reason = read_steps(segment, i);
    }
    return reason;
  }

  Reason read_qcc(const Reader& segment) noexcept {
    if (segment.size() < 3) return Reason::damaged_header;
    const std::uint32_t i = segment.u8(0);
    if (!takes_turn(i, parameters_.component_count, has_qcd_, seen_qcc_)) return Reason::damaged_header;
    return read_steps(segment.part(1, segment.size() - 1), i);
  }

  /// Lengths of tile-parts: nothing of them is needed, but OpenJPEG wants whole entries.
  static Reason read_tlm(const Reader& segment) noexcept {
    if (segment.size() < 2) return Reason::damaged_header;
    const std::uint32_t sizes = segment.u8(1);
    const std::uint32_t entry = (sizes >> 4 & 3U) + 2 * ((sizes >> 6 & 1U) + 1);
    return (segment.size() - 2) % entry == 0 ? Reason::none : Reason::damaged_header;
  }

  Jpeg2000Parameters& parameters_;
  bool has_cod_ = false;
  bool has_qcd_ = false;
  std::uint32_t seen_coc_ = 0;
  std::uint32_t seen_qcc_ = 0;
  std::array<std::uint8_t, most_jpeg2000_components> step_style_{};
  std::array<std::uint8_t, most_jpeg2000_components> step_count_{};
};

/// Walks a tile-part's own header from `at` on. \returns where its packets begin; 0 where something is odd.
std::size_t packets_of(const Reader& reader, std::size_t at, std::size_t end) noexcept {
  while (at + 2 <= end) {
    const std::uint32_t marker = reader.u16(at);
    if (marker == sod) return at + 2;
    const std::size_t length = reader.u16(at + 2);
    if ((marker != com && marker != plt) || length < 2 || at + 2 + length > end) return 0;
    // OpenJPEG wants at least an index, and the last length to end.
    if (marker == plt && (length < 3 || (length > 3 && (reader.u8(at + 1 + length) & 0x80U) != 0))) return 0;
    at += 2 + length;
  }
  return 0;
}

}  // namespace

const char* describe(Jpeg2000Reason reason) noexcept {
  switch (reason) {
    case Reason::none:
      return "none";
    case Reason::not_a_codestream:
      return "not a JPEG 2000 codestream";
    case Reason::damaged_header:
      return "a damaged header";
    case Reason::odd_marker:
      return "a marker that stands in few files";
    case Reason::precision:
      return "samples of other than 8 bits, unsigned";
    case Reason::components:
      return "components that don't fit";
    case Reason::size:
      return "a frame of another size, or a large one";
    case Reason::grid:
      return "several tiles, or an offset on the reference grid";
    case Reason::levels:
      return "no wavelet transform, or too many levels";
    case Reason::block_style:
      return "an unusual style of code-blocks";
    case Reason::block_size:
      return "code-blocks of an unusual size";
    case Reason::quantisation:
      return "unusual quantisation";
    case Reason::too_many_parts:
      return "too many layers, precincts, code-blocks or tile-parts";
    case Reason::tile_parts:
      return "tile-parts that don't add up";
    case Reason::no_room:
      return "no room in the batch";
    case Reason::bad_packet:
      return "a bad packet";
    case Reason::bit_planes:
      return "too many bit planes or passes";
    case Reason::bad_stuffing:
      return "bad stuffing";
    case Reason::left_over:
      return "data left over";
    case Reason::out_of_memory:
      return "too little memory for the code-blocks";
  }
  return "unknown";
}

std::span<const std::byte> find_jpeg2000_codestream(std::span<const std::byte> bytes) noexcept {
  if (!is_jp2_file(bytes)) return bytes;
  const std::optional<Jp2File> file = read_jp2_file(bytes);
  // What palettes, channels and other colours mean is the CPU's to say.
  if (!file || file->has_palette || file->describes_channels || file->says_others) return {};
  // Behind SOC and the first fields of SIZ. The CPU refuses grey of three components.
  constexpr std::size_t component_count_at = 40;
  const Reader codestream{file->codestream};
  if (file->says_grey && codestream.u16(component_count_at) >= 3) return {};
  return file->codestream;
}

Jpeg2000Reason parse_jpeg2000_tile_parts(std::span<const std::byte> bytes, std::size_t main_bytes,
                                         Jpeg2000Header& header) noexcept {
  const Reader reader{bytes};
  std::size_t at = main_bytes;
  std::uint32_t stated = 0;
  std::uint32_t seen = 0;
  header.part_count = 0;
  while (reader.u16(at) != eoc) {
    if (at + 14 > bytes.size() || reader.u16(at) != sot || reader.u16(at + 2) != 10) return Reason::tile_parts;
    if (reader.u16(at + 4) != 0 || reader.u8(at + 10) != seen) return Reason::tile_parts;
    const std::uint32_t count = reader.u8(at + 11);
    if (count != 0 && stated != 0 && count != stated) return Reason::tile_parts;
    if (count != 0) stated = count;
    std::size_t length = reader.u32(at + 6);
    if (length == 0) length = bytes.size() - 2 - at;  // up to EOC
    if (length < 14 || length > bytes.size() - at) return Reason::tile_parts;
    const std::size_t begin = packets_of(reader, at + 12, at + length);
    at += length;
    if (begin == 0) return Reason::tile_parts;
    ++seen;
    if (begin == at) continue;
    if (header.part_count == most_jpeg2000_tile_parts) return Reason::too_many_parts;
    header.parts[header.part_count++] = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at)};
  }
  if (at + 2 > bytes.size()) return Reason::tile_parts;
  return header.part_count > 0 && (stated == 0 || stated == seen) ? Reason::none : Reason::tile_parts;
}

Jpeg2000Reason parse_jpeg2000_header(std::span<const std::byte> bytes, Jpeg2000Header& header) noexcept {
  const Reader reader{bytes};
  if (bytes.size() < 4 || bytes.size() > UINT32_MAX || reader.u16(0) != soc || reader.u16(2) != siz) {
    return Reason::not_a_codestream;
  }
  header = {};
  MainHeader main(header.parameters);
  std::size_t at = 2;
  while (reader.u16(at) != sot) {
    const std::uint32_t marker = reader.u16(at);
    const std::size_t length = reader.u16(at + 2);
    if (length < 2 || at + 2 + length > bytes.size()) return Reason::damaged_header;
    const Reader segment = reader.part(at + 4, length - 2);
    const Reason reason = at == 2 ? main.read_siz(segment) : main.read(marker, segment);
    if (reason != Reason::none) return reason;
    at += 2 + length;
  }
  const Reason reason = main.conclude();
  if (reason != Reason::none) return reason;
  header.main_bytes = at;
  return parse_jpeg2000_tile_parts(bytes, at, header);
}

Jpeg2000Reason judge_jpeg2000(const Jpeg2000Parameters& parameters, const TileDemand& demand,
                              PixelsOf& pixels_of) noexcept {
  const auto& parts = parameters.components;
  const auto differs = [&parts](std::size_t i) { return parts[i].dx != parts[0].dx || parts[i].dy != parts[0].dy; };
  const bool apart = parameters.component_count >= 3 && (differs(1) || differs(2));
  const CodedFrame frame{parameters.width,
                         parameters.height,
                         parameters.component_count,
                         parameters.colour_transform && !parts[0].reversible,
                         parameters.colour_transform,
                         apart && !parameters.colour_transform};
  const FrameVerdict verdict = judge_frame(demand, frame);
  if (verdict.fault == FrameFault::components) return Reason::components;
  if (verdict.fault == FrameFault::size) return Reason::size;
  if (verdict.fault == FrameFault::colour) return Reason::components;
  pixels_of = verdict.pixels;
  return Reason::none;
}

}  // namespace slidestream::cuda
