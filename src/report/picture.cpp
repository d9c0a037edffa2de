#include "report/picture.hpp"

#include <csetjmp>
#include <cstdio>
// libjpeg's header needs <cstdio> before it.
#include <jpeglib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/decode_memory.hpp"

namespace slidestream::report {

namespace {

/// A level with more pixels isn't read for a thumbnail: that would take as long as the analysis.
constexpr std::int64_t most_pixels = std::int64_t{1} << 26;
constexpr int jpeg_quality = 78;

/// Sums pixels of a large image into those of a small one.
class BoxAverage {
 public:
  BoxAverage(std::int64_t width, std::int64_t height, int side) : width_(width), height_(height) {
    const std::int64_t longer = std::max(width, height);
    const double scale = longer > side ? static_cast<double>(side) / static_cast<double>(longer) : 1.0;
    image_.width = std::max(1, static_cast<int>(std::lround(static_cast<double>(width) * scale)));
    image_.height = std::max(1, static_cast<int>(std::lround(static_cast<double>(height) * scale)));
    const std::size_t pixels = static_cast<std::size_t>(image_.width) * static_cast<std::size_t>(image_.height);
    sums_.assign(3 * pixels, 0);
    counts_.assign(pixels, 0);
  }

  void add_row(std::int64_t y, const std::uint8_t* row) {
    const std::size_t line = static_cast<std::size_t>(y * image_.height / height_ * image_.width);
    for (std::int64_t x = 0; x < width_; ++x) {
      const std::size_t at = line + static_cast<std::size_t>(x * image_.width / width_);
      for (std::size_t c = 0; c < 3; ++c) sums_[3 * at + c] += row[3 * x + static_cast<std::ptrdiff_t>(c)];
      ++counts_[at];
    }
  }

  ColourImage take() {
    image_.pixels.resize(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const std::uint64_t count = counts_[i / 3];
      image_.pixels[i] = static_cast<std::uint8_t>((sums_[i] + count / 2) / std::max<std::uint64_t>(1, count));
    }
    return std::move(image_);
  }

 private:
  std::int64_t width_;
  std::int64_t height_;
  ColourImage image_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint64_t> counts_;
};

struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

/// Nothing with a destructor lives here: an error leaves by longjmp.
bool encode(const ColourImage& image, int quality, unsigned char** bytes, unsigned long* size) {
  jpeg_compress_struct jpeg;
  JpegFailure failure;
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = [](j_common_ptr common) {
    std::longjmp(reinterpret_cast<JpegFailure*>(common->err)->back, 1);
  };
  failure.manager.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, bytes, size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  // Its own tables are shorter than the standard ones, which small pictures notice.
  jpeg.optimize_coding = TRUE;
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(image.pixels.data()) +
                static_cast<std::size_t>(jpeg.next_scanline) * static_cast<std::size_t>(image.width) * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

/// The smallest level that is large enough for a thumbnail.
std::size_t level_for(const Slide& slide, const std::filesystem::path& path, int side) {
  const std::vector<Level>& levels = slide.info().levels;
  std::size_t number = levels.size();
  // Largest first: the last that is large enough.
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i == 0 || std::max(levels[i].width, levels[i].height) >= side) number = i;
  }
  if (number == levels.size()) throw SlideError(path.string() + ": has no level");
  const Level& level = levels[number];
  if (level.width * level.height > most_pixels) {
    throw SlideError(path.string() + ": its smallest usable level has " + std::to_string(level.width) + " x " +
                     std::to_string(level.height) + " pixels, too many for a thumbnail");
  }
  return number;
}

/// Takes memory for rows, before any for a tile: so no two threads wait for each other.
DecodeMemory::Lease take_rows(const Slide& slide, std::uint64_t bytes, const Reading& reading) {
  if (reading.rows == nullptr) return {};
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  DecodeMemory::Lease lease = reading.rows->take(std::min(bytes, reading.rows->size()), reading.open.give_up);
  if (!lease) throw StoppedError(slide.info().path.string() + ": waited for memory when the report gave it up");
  if (reading.waited) reading.waited(std::chrono::duration<double>(Clock::now() - begin).count());
  return lease;
}

/// Calls `visit` with the rows of a level from top to bottom.
void for_each_row(const Slide& slide, std::size_t number, const PixelFormat& format, const Reading& reading,
                  const std::function<void(std::int64_t, const std::uint8_t*)>& visit) {
  const Level& level = slide.info().levels[number];
  const bool grey = format == luminance_format;
  const std::int64_t pitch = level.width * (grey ? 1 : 3);
  const std::int64_t most_rows = std::min(level.height, std::max<std::int64_t>(level.tile_height, 1));
  const DecodeMemory::Lease lease = take_rows(slide, static_cast<std::uint64_t>(most_rows * pitch), reading);
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(most_rows * pitch));
  for (std::int64_t first = 0; first < level.height; first += most_rows) {
    const HostPixels part = {rows.data(), pitch, level.width, std::min(most_rows, level.height - first), format};
    if (grey) {
      read_luminance(slide, number, 0, first, part);
    } else {
      read_rgb(slide, number, 0, first, part);
    }
    for (std::int64_t y = 0; y < part.height; ++y) visit(first + y, rows.data() + y * pitch);
  }
}

}  // namespace

Rgb class_colour(int label) {
  // After Okabe and Ito, and behind them others that can still be told apart.
  constexpr std::array<Rgb, 16> colours = {{{0, 114, 178},
                                            {213, 94, 0},
                                            {0, 158, 115},
                                            {204, 121, 167},
                                            {230, 159, 0},
                                            {86, 180, 233},
                                            {240, 228, 66},
                                            {60, 60, 60},
                                            {148, 63, 160},
                                            {140, 86, 75},
                                            {188, 189, 34},
                                            {174, 0, 47},
                                            {127, 205, 187},
                                            {255, 152, 150},
                                            {49, 54, 149},
                                            {166, 216, 84}}};
  return colours[static_cast<std::size_t>(label) % colours.size()];
}

ColourImage read_thumbnail(const std::filesystem::path& path, int side, const Reading& reading) {
  OpenOptions options = reading.open;
  // A page shows numbers as sRGB's.
  options.to_srgb = true;
  const auto slide = Slide::open(path, options);
  const std::size_t number = level_for(*slide, path, side);
  const Level& level = slide->info().levels[number];
  BoxAverage average(level.width, level.height, side);
  for_each_row(*slide, number, rgb_format, reading,
               [&](std::int64_t y, const std::uint8_t* row) { average.add_row(y, row); });
  return average.take();
}

ColourImage read_label_thumbnail(const std::filesystem::path& path, int side, Labels classes, const Reading& reading) {
  const auto slide = Slide::open(path, reading.open);
  const std::size_t number = level_for(*slide, path, side);
  const Level& level = slide->info().levels[number];
  const std::int64_t longer = std::max<std::int64_t>({level.width, level.height, 1});
  const std::int64_t shown = std::min<std::int64_t>(longer, side);
  ColourImage image;
  image.width = static_cast<int>(std::max<std::int64_t>(1, level.width * shown / longer));
  image.height = static_cast<int>(std::max<std::int64_t>(1, level.height * shown / longer));
  int made = 0;
  for_each_row(*slide, number, luminance_format, reading, [&](std::int64_t y, const std::uint8_t* row) {
    for (; made < image.height && made * level.height / image.height == y; ++made) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        const int label = row[x * level.width / image.width];
        const bool is_class = label >= classes.first && label < classes.end;
        const Rgb colour = is_class ? class_colour(label) : Rgb{229, 231, 235};
        image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
      }
    }
  });
  return image;
}

ColourImage shrunk(const ColourImage& image, int side) {
  BoxAverage average(image.width, image.height, side);
  for (int y = 0; y < image.height; ++y) {
    average.add_row(y, image.pixels.data() + static_cast<std::ptrdiff_t>(y) * image.width * 3);
  }
  return average.take();
}

std::string jpeg_bytes(const ColourImage& image, int quality) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool made = encode(image, quality, &bytes, &size);
  std::string text;
  if (made) text.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  if (!made) throw Error("libjpeg can't encode a thumbnail");
  return text;
}

std::string fitting_jpeg(const ColourImage& image, std::size_t most) {
  for (const int side : {largest_thumbnail, 224, 192, 160, 144, 128, 112, 96, 80, 64, 48, 32}) {
    if (side < largest_thumbnail && side >= std::max(image.width, image.height)) continue;
    std::string bytes = jpeg_bytes(shrunk(image, side), jpeg_quality);
    if (bytes.size() <= most) return bytes;
  }
  return {};
}

MapPicture map_picture(const WindowMap& map, std::size_t most) {
  MapPicture picture;
  const std::int64_t columns = map.columns;
  const std::int64_t rows = map.rows;
  if (columns <= 0 || rows <= 0 || map.values.size() != static_cast<std::size_t>(columns * rows * 2)) return picture;
  const auto cells = [&](std::int64_t block) { return ((columns + block - 1) / block) * ((rows + block - 1) / block); };
  std::int64_t block = (std::max(columns, rows) + largest_map - 1) / largest_map;
  while (2 * cells(block) > static_cast<std::int64_t>(most) && cells(block) > 1) ++block;
  if (block > 1 && cells(block) < 64 && cells(1) > 64) return picture;
  if (2 * cells(block) > static_cast<std::int64_t>(most)) return picture;
  picture.block = static_cast<int>(block);
  picture.columns = static_cast<int>((columns + block - 1) / block);
  picture.rows = static_cast<int>((rows + block - 1) / block);
  std::vector<double> values(static_cast<std::size_t>(cells(block)));
  for (std::size_t channel = 0; channel < 2; ++channel) {
    MapPicture::Channel& out = picture.channels[channel];
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::int64_t y = 0; y < picture.rows; ++y) {
      for (std::int64_t x = 0; x < picture.columns; ++x) {
        double sum = 0.0;
        int count = 0;
        for (std::int64_t wy = y * block; wy < std::min(rows, (y + 1) * block); ++wy) {
          for (std::int64_t wx = x * block; wx < std::min(columns, (x + 1) * block); ++wx) {
            sum += static_cast<double>(map.values[static_cast<std::size_t>(wy * columns + wx) * 2 + channel]);
            ++count;
          }
        }
        const double value = std::isfinite(sum) ? sum / count : 0.0;
        values[static_cast<std::size_t>(y * picture.columns + x)] = value;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    out.low = low;
    out.high = high;
    const double scale = high > low ? 255.0 / (high - low) : 0.0;
    for (const double value : values) out.cells += static_cast<char>(std::lround((value - low) * scale));
  }
  return picture;
}

}  // namespace slidestream::report
