#include "slide/tiff/grey_planes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <slidestream/error.hpp>
#include <utility>

#include "slide/decode_memory.hpp"
#include "slide/file.hpp"
#include "slide/luminance.hpp"
#include "slide/pixels.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/tile_job.hpp"

namespace slidestream {
namespace {

constexpr std::size_t colour_planes = 3;
using Planes = std::array<std::shared_ptr<const Slide>, colour_planes>;

/// A slide of each plane. Tiles are read and decoded by them, and put side by side.
class PlanesContainer final : public Container {
 public:
  explicit PlanesContainer(Planes planes) : planes_(std::move(planes)) {}

  IccProfile icc_profile(std::size_t level) const override { return planes_.front()->icc_profile(level); }
  AssociatedImage read_associated(std::size_t index, const std::string&) const override {
    return planes_.front()->read_associated(index);
  }
  std::uint64_t kept_bytes() const noexcept override {
    std::uint64_t bytes = 0;
    for (const auto& plane : planes_) bytes += impl_of(*plane).container->kept_bytes();
    return bytes;
  }

  void decode(const TileJob& job, std::span<const std::byte>, TileScratch&) const override {
    const DecodeMemory::Lease memory =
        memory_for(job, decoding_bytes(job.slide.coded_level(job.level_index), job.coding));
    const auto width = static_cast<std::size_t>(job.out.width);
    const std::size_t pixels = width * static_cast<std::size_t>(job.out.height);
    std::vector<std::uint8_t> samples(colour_planes * pixels);
    TileDecoder decoder;
    for (std::size_t i = 0; i < colour_planes; ++i) {
      HostPixels out = job.out;
      out.format = luminance_format;
      out.pitch = static_cast<std::ptrdiff_t>(width);
      out.data = samples.data() + i * pixels;
      read_plane(*planes_[i], job, decoder, out);
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

 private:
  static void read_plane(const Slide& plane, const TileJob& job, TileDecoder& decoder, const HostPixels& out) {
    const TileRange range = plane.tile(job.level_index, job.index);
    if (range.length == 0) throw TileError("it is missing in one of the planes that are its colours");
    if (!plane.contains(range)) throw TileError("its bytes lie outside the file");
    if (claims_too_many_bytes(plane.coded_level(job.level_index), range)) {
      throw TileError("claims more bytes than its pixels could need");
    }
    std::vector<std::byte> bytes(range.length);
    plane.read(range.offset, bytes);
    decoder.decode(plane, job.level_index, job.index, bytes, job.from_x, job.from_y, out);
  }

  Planes planes_;
};

bool are_alike(const Level& a, const Level& b) {
  return a.width == b.width && a.height == b.height && a.tile_width == b.tile_width && a.tile_height == b.tile_height &&
         a.colour == b.colour;
}

}  // namespace

bool are_red_green_blue(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, colour_planes> words = {"red", "green", "blue"};
  return std::ranges::equal(names, words, [](const std::string& name, std::string_view word) {
    std::string small = name;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return small == word || small == word.substr(0, 1);
  });
}

void combine_planes(Slide::Impl& slide, const OpenOptions& options) {
  OpenOptions of_plane = options;
  of_plane.to_srgb = of_plane.shrink_on_load = false;
  // The memory of a tile is taken for all of its planes at once.
  of_plane.decode_memory = nullptr;
  Planes planes;
  for (std::size_t i = 0; i < colour_planes; ++i) {
    of_plane.channel = static_cast<int>(i);
    planes[i] = Slide::open(slide.info.path, of_plane);
  }
  const SlideInfo& first = planes.front()->info();
  for (const auto& plane : planes) {
    if (!std::ranges::equal(plane->info().levels, first.levels, are_alike)) {
      throw_slide_error(slide.info.path, "its red, green and blue planes differ in levels or tiles; set " +
                                             std::string(options.channel_name) + " to choose one, 0 to 2");
    }
  }
  slide.info = first;
  slide.info.channels.clear();
  slide.codings.clear();
  for (std::size_t i = 0; i < first.levels.size(); ++i) {
    Level& level = slide.info.levels[i];
    level.codec = Codec::planes;
    level.colour = Colour::rgb;
    LevelCoding coding;
    coding.samples = colour_planes;
    coding.plane_bytes = decoding_bytes(first.levels[i], coding_of(*planes.front(), i));
    // One byte of the file stands for a tile in three parts, which the container reads itself.
    for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
      const bool is_missing =
          std::ranges::all_of(planes, [&](const auto& plane) { return plane->tile(i, tile).length == 0; });
      coding.tiles.push_back(is_missing ? TileRange{} : TileRange{1, 1});
    }
    slide.codings.push_back(std::move(coding));
  }
  slide.container = std::make_unique<PlanesContainer>(std::move(planes));
}

}  // namespace slidestream
