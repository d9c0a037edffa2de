#include "cuda/encode/encode_tables.hpp"

#include <slidestream/error.hpp>
#include <string>

#include "codec/tile_encoder.hpp"
#include "cuda/jpeg/jpeg_header.hpp"

namespace slidestream::cuda {
namespace {

constexpr double above_a_tie = 1.0 + 1.0 / (1 << 20);

/// Gives each value of a Huffman table its code, as in the standard's annex C.
template <class Place>
void assign_codes(const std::byte* table, const Place& place, CodingTables& tables) {
  const std::byte* value = table + 16;
  std::uint32_t code = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    const auto count = std::to_integer<unsigned>(table[length - 1]);
    for (unsigned i = 0; i < count; ++i, ++code, ++value) {
      tables.codes[place(std::to_integer<unsigned>(*value))] = code << (32 - length) | (32 + length);
    }
  }
}

CodingTables make_coding_tables(const JpegTableReferences& tables, const JpegComponent& component) {
  CodingTables made{};
  const std::byte* const quantisation = tables.quantisation.at(component.quantisation);
  const std::byte* const dc = tables.dc.at(component.dc);
  const std::byte* const ac = tables.ac.at(component.ac);
  if (quantisation == nullptr || dc == nullptr || ac == nullptr || tables.wide.at(component.quantisation) != 0) {
    throw Error("libjpeg's tables aren't those of baseline JPEG");
  }
  for (unsigned i = 0; i < 64; ++i) {
    made.reciprocals[i] = static_cast<float>(above_a_tie / (8 * std::to_integer<int>(quantisation[i])));
  }
  assign_codes(
      dc, [](unsigned size) { return (32 - size) % 32; }, made);
  const auto place = [](unsigned value) {
    const unsigned run = value >> 4;
    const unsigned size = value & 15U;
    if (size == 0) return run == 0 ? CodingTables::end_of_block : CodingTables::sixteen_zeros;
    return 32 * (run + 1) + 32 - size;
  };
  assign_codes(ac, place, made);
  return made;
}

}  // namespace

EncodeTables::EncodeTables(const PixelFormat& format, int quality, int side, ChromaSubsampling subsampling)
    : luminance(), chrominance() {
  const auto encoder = make_tile_encoder(TileCompression::jpeg, format, quality, side, subsampling);
  jpeg_tables = encoder->tables();
  // A single pixel is tile enough: the encoder pads it.
  const std::byte pixel[3] = {};
  const std::vector<std::byte> tile = encoder->encode({pixel, 3, {0, 0, 1, 1}, {1, 1}, format});
  JpegTableReferences references;
  JpegHeader parsed;
  if (parse_jpeg_tables(jpeg_tables, references) != JpegReason::none ||
      parse_jpeg_header(tile, references, parsed) != JpegReason::none || parsed.scan_offset > most_header_bytes) {
    throw Error("libjpeg's tiles begin with what isn't expected there");
  }
  header.assign(tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(parsed.scan_offset));
  luminance = make_coding_tables(parsed.tables, parsed.components[0]);
  if (format.channels == 3) chrominance = make_coding_tables(parsed.tables, parsed.components[1]);
}

}  // namespace slidestream::cuda
