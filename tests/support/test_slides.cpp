#include "support/test_slides.hpp"

#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace slidestream::test {
namespace {

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, TiffCloser>;

TiffHandle open_tiff(const std::filesystem::path& file, const char* mode) {
  TiffHandle tiff(TIFFOpen(file.c_str(), mode));
  if (!tiff) throw std::runtime_error("can't open " + file.string());
  return tiff;
}

/// Calls `visit(tile, x, y, width, height)` for every tile of the image.
template <class Visit>
void for_each_tile(const Image& image, const TestSlideOptions& options, Visit visit) {
  std::uint32_t tile = 0;
  for (std::int64_t y = 0; y < image.height; y += options.tile_height) {
    for (std::int64_t x = 0; x < image.width; x += options.tile_width, ++tile) {
      visit(tile, x, y, std::min<std::int64_t>(options.tile_width, image.width - x),
            std::min<std::int64_t>(options.tile_height, image.height - y));
    }
  }
}

bool is_missing(const TestSlideOptions& options, std::uint32_t tile) {
  return std::find(options.missing.begin(), options.missing.end(), tile) != options.missing.end();
}

/// libtiff decodes grey JPEG by libjpeg-turbo with the accurate IDCT: its pixels are the truth.
void read_back(const std::filesystem::path& file, Image& image, const TestSlideOptions& options) {
  const TiffHandle tiff = open_tiff(file, "r");
  std::vector<std::uint8_t> buffer(std::size_t{options.tile_width} * options.tile_height);
  for_each_tile(
      image, options, [&](std::uint32_t tile, std::int64_t x, std::int64_t y, std::int64_t w, std::int64_t h) {
        if (is_missing(options, tile)) return;
        if (TIFFReadEncodedTile(tiff.get(), tile, buffer.data(), static_cast<tmsize_t>(buffer.size())) < 0) {
          throw std::runtime_error("can't read back " + file.string());
        }
        for (std::int64_t row = 0; row < h; ++row) {
          std::memcpy(&image.pixels[static_cast<std::size_t>((y + row) * image.width + x)],
                      &buffer[static_cast<std::size_t>(row) * options.tile_width], static_cast<std::size_t>(w));
        }
      });
}

}  // namespace

void write_test_slide(const std::filesystem::path& file, Image& image, const TestSlideOptions& options) {
  {
    const TiffHandle tiff = open_tiff(file, "w");
    TIFFSetField(tiff.get(), TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(image.width));
    TIFFSetField(tiff.get(), TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(image.height));
    TIFFSetField(tiff.get(), TIFFTAG_TILEWIDTH, options.tile_width);
    TIFFSetField(tiff.get(), TIFFTAG_TILELENGTH, options.tile_height);
    TIFFSetField(tiff.get(), TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff.get(), TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(tiff.get(), TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff.get(), TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    const int compression = options.coding == Coding::none  ? COMPRESSION_NONE
                            : options.coding == Coding::lzw ? COMPRESSION_LZW
                                                            : COMPRESSION_JPEG;
    TIFFSetField(tiff.get(), TIFFTAG_COMPRESSION, compression);
    std::vector<std::uint8_t> buffer(std::size_t{options.tile_width} * options.tile_height);
    for_each_tile(
        image, options, [&](std::uint32_t tile, std::int64_t x, std::int64_t y, std::int64_t w, std::int64_t h) {
          std::fill(buffer.begin(), buffer.end(), std::uint8_t{77});  // padding must never enter a result
          for (std::int64_t row = 0; row < h; ++row) {
            std::uint8_t* pixels = &image.pixels[static_cast<std::size_t>((y + row) * image.width + x)];
            if (is_missing(options, tile)) std::memset(pixels, 255, static_cast<std::size_t>(w));
            std::memcpy(&buffer[static_cast<std::size_t>(row) * options.tile_width], pixels,
                        static_cast<std::size_t>(w));
          }
          if (is_missing(options, tile)) return;
          if (TIFFWriteEncodedTile(tiff.get(), tile, buffer.data(), static_cast<tmsize_t>(buffer.size())) < 0) {
            throw std::runtime_error("can't write " + file.string());
          }
        });
  }
  if (options.coding == Coding::jpeg) read_back(file, image, options);
}

std::vector<std::string> varied_slides(const TemporaryFolder& folder, int count, std::int64_t part) {
  std::vector<std::string> slides;
  constexpr std::uint32_t tile_sizes[][2] = {{64, 64}, {240, 240}, {256, 32}, {48, 112}};
  for (int i = 0; i < count; ++i) {
    Image image =
        textured_image((700 + 133 * (i % 5)) / part, (1500 + 40 * (i % 3)) / part, static_cast<std::uint64_t>(i));
    slides.push_back(folder / ("s" + std::to_string(i) + ".tif"));
    write_test_slide(slides.back(), image,
                     {.tile_width = tile_sizes[i % 4][0],
                      .tile_height = tile_sizes[i % 4][1],
                      .coding = static_cast<Coding>(i % 3)});
  }
  return slides;
}

std::vector<std::string> equal_slides(const TemporaryFolder& folder, int count, Coding coding, std::int64_t width) {
  std::vector<std::string> slides;
  const Image image = textured_image(width, 700, 9);
  for (int i = 0; i < count; ++i) {
    slides.push_back(folder / ((i % 3 == 1 ? "victim" : "sound") + std::to_string(i) + ".tif"));
    Image decoded = image;
    write_test_slide(slides.back(), decoded, {.coding = coding});
  }
  return slides;
}

std::vector<std::string> mixed_slides(const TemporaryFolder& folder, int count, std::int64_t width) {
  std::vector<std::string> slides;
  const Image image = textured_image(width, 700, 9);
  for (int i = 0; i < count; ++i) {
    slides.push_back(folder / ("mixed" + std::to_string(i) + ".tif"));
    Image decoded = image;
    write_test_slide(slides.back(), decoded, {.coding = static_cast<Coding>(i % 3)});
  }
  return slides;
}

}  // namespace slidestream::test
