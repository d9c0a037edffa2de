#include "slide/tiff/plane_tiles.hpp"

#include <array>
#include <slidestream/error.hpp>
#include <string>

#include "slide/decode_memory.hpp"
#include "slide/luminance.hpp"
#include "slide/pixels.hpp"
#include "slide/tile_bytes.hpp"

namespace slidestream {

void decode_planes(const TileJob& job,
                   const std::function<void(std::size_t plane, const HostPixels& out)>& read_plane) {
  constexpr std::array<const char*, colour_planes> names = {"red", "green", "blue"};
  const DecodeMemory::Lease memory =
      memory_for(job, decoding_bytes(job.slide.coded_level(job.level_index), job.coding));
  const auto width = static_cast<std::size_t>(job.out.width);
  const std::size_t pixels = width * static_cast<std::size_t>(job.out.height);
  std::vector<std::uint8_t> samples(colour_planes * pixels);
  for (std::size_t i = 0; i < colour_planes; ++i) {
    HostPixels out = job.out;
    out.format = luminance_format;
    out.pitch = static_cast<std::ptrdiff_t>(width);
    out.data = samples.data() + i * pixels;
    try {
      read_plane(i, out);
    } catch (const TileError& error) {
      throw TileError(std::string("its ") + names[i] + " plane: " + error.what());
    }
  }
  std::vector<std::uint8_t> row(colour_planes * width);
  for (std::int64_t y = 0; y < job.out.height; ++y) {
    const std::uint8_t* const from = samples.data() + static_cast<std::size_t>(y) * width;
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t i = 0; i < colour_planes; ++i) row[colour_planes * x + i] = from[i * pixels + x];
    }
    interleaved_to_pixels(job.row(job.from_y + y), row.data(), job.out.width, colour_planes, Colour::rgb,
                          job.out.format);
    if (std::uint8_t* to = job.luminance_row(job.from_y + y)) {
      interleaved_to_luminance(to, row.data(), job.out.width, colour_planes, Colour::rgb);
    }
  }
}

std::vector<std::byte> read_plane_tile(const Slide& slide, const Level& coded, const TileRange& range) {
  if (range.length == 0) throw TileError("it is missing");
  if (!slide.contains(range)) throw TileError("its bytes lie outside the file");
  if (claims_too_many_bytes(coded, range)) throw TileError("it claims more bytes than its pixels could need");
  std::vector<std::byte> bytes(range.length);
  slide.read(range.offset, bytes);
  return bytes;
}

}  // namespace slidestream
