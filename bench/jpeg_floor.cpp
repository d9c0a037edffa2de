// What libjpeg-turbo alone takes to decode a slide's tiles to grey and to encode an image's grey tiles at quality 75,
// over threads: `jpeg_floor SLIDE IMAGE THREADS`; or to decode them to RGB: `jpeg_floor SLIDE THREADS`. Nothing is
// read, computed, reduced or written meanwhile. IMAGE is a pyramid of grey JPEG tiles, such as `pipeline SLIDE -s
// operators.run=sobel -s image.format=ome-tiff` makes. Prints a line a step: its name, seconds of the wall clock, and
// seconds of the processors.
#include "jpeg_alone.hpp"

#include <tiffio.h>

#include <cstdint>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>

namespace slidestream::bench {
namespace {

constexpr int quality = 75;

struct Tiles {
  std::vector<unsigned char> tables;
  std::vector<std::vector<unsigned char>> tiles;
  std::uint32_t side = 0;
};

/// Of each directory of the main chain.
std::vector<Tiles> read_levels(const char* file) {
  TIFF* tiff = TIFFOpen(file, "r");
  if (tiff == nullptr) throw std::runtime_error(std::string("can't open ") + file);
  std::vector<Tiles> levels;
  do {
    Tiles level;
    if (TIFFIsTiled(tiff) == 0) continue;
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &level.side);
    std::uint32_t length = 0;
    void* tables = nullptr;
    if (TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &length, &tables) != 0) {
      level.tables.assign(static_cast<unsigned char*>(tables), static_cast<unsigned char*>(tables) + length);
    }
    level.tiles.resize(TIFFNumberOfTiles(tiff));
    for (std::uint32_t i = 0; i < level.tiles.size(); ++i) {
      level.tiles[i].resize(TIFFGetStrileByteCount(tiff, i));
      TIFFReadRawTile(tiff, i, level.tiles[i].data(), static_cast<tmsize_t>(level.tiles[i].size()));
    }
    levels.push_back(std::move(level));
  } while (TIFFReadDirectory(tiff) != 0);
  TIFFClose(tiff);
  if (levels.empty()) throw std::runtime_error(std::string(file) + " has no tiles");
  return levels;
}

std::vector<std::vector<unsigned char>> pixels_of(const Tiles& level) {
  PlainDecoder decoder(level.tables, JCS_GRAYSCALE);
  std::vector<std::vector<unsigned char>> pixels;
  pixels.reserve(level.tiles.size());
  for (const auto& tile : level.tiles) pixels.push_back(decoder.decode(tile));
  return pixels;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Step>
void report(const char* name, const Step& step) {
  const double before = processor_seconds();
  const double wall = step();
  std::printf("%s %.4f %.4f\n", name, wall, processor_seconds() - before);
}

double encode(const Tiles& level, const std::vector<std::vector<unsigned char>>& pixels, int threads) {
  return time_over_threads(threads, pixels.size(), 8, [&] {
    return [&pixels, encoder = std::make_unique<GreyEncoder>(static_cast<int>(level.side), quality)](std::size_t i) {
      encoder->encode(pixels[i]);
    };
  });
}

void report_decoding(const Tiles& level, J_COLOR_SPACE colour, int threads) {
  report("decode", [&] {
    return time_over_threads(threads, level.tiles.size(), 8, [&] {
      return [&level, decoder = std::make_unique<PlainDecoder>(level.tables, colour)](std::size_t i) {
        decoder->decode(level.tiles[i]);
      };
    });
  });
}

void run(const char* slide_file, const char* image_file, int threads) {
  const Tiles slide = read_levels(slide_file).front();
  const std::vector<Tiles> image = read_levels(image_file);
  std::vector<std::vector<std::vector<unsigned char>>> pixels;
  pixels.reserve(image.size());
  for (const Tiles& level : image) pixels.push_back(pixels_of(level));
  report_decoding(slide, JCS_GRAYSCALE, threads);
  report("encode", [&] { return encode(image[0], pixels[0], threads); });
  report("levels", [&] {
    double seconds = 0.0;
    for (std::size_t i = 1; i < image.size(); ++i) seconds += encode(image[i], pixels[i], threads);
    return seconds;
  });
}

}  // namespace
}  // namespace slidestream::bench

int main(int count, char** values) {
  try {
    if (count != 3 && count != 4) throw std::runtime_error("usage: jpeg_floor SLIDE [IMAGE] THREADS");
    using namespace slidestream::bench;
    if (count == 3) {
      report_decoding(read_levels(values[1]).front(), JCS_RGB, std::stoi(values[2]));
    } else {
      run(values[1], values[2], std::stoi(values[3]));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jpeg_floor: %s\n", error.what());
    return 1;
  }
  return 0;
}
