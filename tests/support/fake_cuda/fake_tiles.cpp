// Kernels that put tiles into their places, with the CPU's own code.

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/colour/convert_colour.hpp"
#include "cuda/colour/every_colour.hpp"
#include "cuda/tiles/fronts.hpp"
#include "cuda/tiles/place.hpp"
#include "cuda/tiles/place_converted.hpp"
#include "cuda/tiles/windows.hpp"
#include "runtime/cuda/check.hpp"
#include "slide/luminance.hpp"
#include "slide/pixels.hpp"
#include "support/fake_cuda/fake_cuda.hpp"

namespace slidestream::cuda {

namespace {

/// `convert(to, from, count, samples, colour)` makes a row's pixels, `pixel_bytes` each.
template <class Convert>
void place_with(const Convert& convert, std::size_t pixel_bytes, std::uint64_t PlacedTile::*destination,
                std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  if (const test::FakeTimes* const times = test::fake_times()) {
    std::size_t bytes_placed = 0;
    for (const PlacedTile* tile = tiles; tile != tiles + count; ++tile) {
      bytes_placed += std::size_t{tile->width} * tile->height * layout.samples;
    }
    const double seconds = times->placed_byte * static_cast<double>(bytes_placed);
    SLIDESTREAM_CUDA(test::fake_timed_launch(stream, seconds, [] {}));
    return;
  }
  const auto work = [=] {
    for (const PlacedTile* tile = tiles; tile != tiles + count; ++tile) {
      for (std::uint32_t y = 0; y < tile->height; ++y) {
        std::uint8_t* to = plane + tile->*destination + static_cast<std::ptrdiff_t>(y) * pitch;
        if (tile->source == PlacedTile::white) {
          std::memset(to, 255, pixel_bytes * tile->width);
        } else {
          convert(to, reinterpret_cast<const std::uint8_t*>(bytes) + tile->source + std::size_t{y} * layout.row_bytes,
                  tile->width, static_cast<int>(layout.samples), layout.colour);
        }
      }
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

}  // namespace

void place_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                 std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  place_with(interleaved_to_luminance, 1, &PlacedTile::destination, plane, pitch, bytes, tiles, count, layout, stream);
}
void place_rgb_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                     std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  place_with(interleaved_to_rgb, 3, &PlacedTile::rgb_destination, plane, pitch, bytes, tiles, count, layout, stream);
}

void place_converted_tiles(const ConvertedPlanes& planes, const std::byte* bytes, const PlacedTile* tiles,
                           std::size_t count, const SampleLayout& layout, const DeviceColours& colours,
                           cudaStream_t stream) {
  const auto convert = [program = colours.program](std::uint8_t* to, const std::uint8_t* from, std::int64_t width,
                                                   int samples, Colour colour) {
    interleaved_to_rgb(to, from, width, samples, colour);
    for (std::int64_t x = 0; x < width; ++x, to += 3) {
      const Rgb rgb = converted_by_steps(*program, {to[0], to[1], to[2]});
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
  };
  const auto convert_to_luminance = [convert](std::uint8_t* to, const std::uint8_t* from, std::int64_t width,
                                              int samples, Colour colour) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * width));
    convert(rgb.data(), from, width, samples, colour);
    interleaved_to_luminance(to, rgb.data(), width, 3, Colour::rgb);
  };
  if (planes.rgb != nullptr) {
    place_with(convert, 3, &PlacedTile::rgb_destination, planes.rgb, planes.rgb_pitch, bytes, tiles, count, layout,
               stream);
  }
  if (planes.luminance != nullptr) {
    place_with(convert_to_luminance, 1, &PlacedTile::destination, planes.luminance, planes.luminance_pitch, bytes,
               tiles, count, layout, stream);
  }
}

// What every colour becomes, decoders ask the program for.
void make_every_colour(const ColourProgram*, std::uint32_t*, cudaStream_t) {}

void place_windows(const std::uint8_t* decoded, const WindowPiece* pieces, std::size_t count, const WindowShape& shape,
                   cudaStream_t stream) {
  const auto work = [=] {
    const std::size_t plane = std::size_t{shape.width} * shape.height;
    const std::size_t to_pixel = shape.planar ? 1 : 3, to_channel = shape.planar ? plane : 1;
    for (const WindowPiece* piece = pieces; piece != pieces + count; ++piece) {
      for (std::size_t y = 0; y < piece->height; ++y) {
        const std::size_t first = (piece->y + y) * shape.width + piece->x;
        for (std::size_t x = 0; x < piece->width; ++x) {
          std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(piece->window) + (first + x) * to_pixel;
          for (std::size_t channel = 0; channel < 3; ++channel) {
            to[channel * to_channel] = piece->source == WindowPiece::value
                                           ? static_cast<std::uint8_t>(piece->fill)
                                           : decoded[piece->source + y * piece->pitch + 3 * x + channel];
          }
        }
      }
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

void gather_fronts(std::byte* to, std::size_t room, const std::byte* compressed, const TileFront* fronts,
                   std::size_t count, cudaStream_t stream) {
  const auto work = [=] {
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(compressed + fronts[i].offset, fronts[i].bytes, to + i * room);
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

}  // namespace slidestream::cuda
