#include "slide/tiff/grey_planes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <slidestream/error.hpp>
#include <utility>

#include "slide/decode_memory.hpp"
#include "slide/file.hpp"
#include "slide/tiff/plane_tiles.hpp"
#include "slide/tile_job.hpp"

namespace slidestream {
namespace {

using Planes = std::array<std::shared_ptr<const Slide>, colour_planes>;

/// A slide of each plane. Tiles are read and decoded by them, and put side by side.
class PlanesContainer final : public Container {
 public:
  explicit PlanesContainer(Planes planes) : planes_(std::move(planes)) {}

  IccProfile icc_profile(std::size_t level) const override { return planes_.front()->icc_profile(level); }
  AssociatedImage read_associated(const Slide::Impl& slide, std::size_t index) const override {
    return impl_of(*planes_.front()).container->read_associated(slide, index);
  }
  std::uint64_t kept_bytes() const noexcept override {
    std::uint64_t bytes = 0;
    for (const auto& plane : planes_) bytes += table_bytes(*plane);
    return bytes;
  }

  void decode(const TileJob& job, std::span<const std::byte>, TileScratch&) const override {
    TileDecoder decoder;
    decode_planes(job, [&](std::size_t i, const HostPixels& out) {
      const Slide& plane = *planes_[i];
      const std::vector<std::byte> bytes =
          read_plane_tile(plane, plane.coded_level(job.level_index), plane.tile(job.level_index, job.index));
      decoder.decode(plane, job.level_index, job.index, bytes, job.from_x, job.from_y, out);
    });
  }

 private:
  Planes planes_;
};

bool are_alike(const Level& a, const Level& b) {
  return a.width == b.width && a.height == b.height && a.tile_width == b.tile_width && a.tile_height == b.tile_height &&
         a.colour == b.colour;
}

}  // namespace

std::optional<ColourPlaces> places_of_colours(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, colour_planes> words = {"red", "green", "blue"};
  if (names.size() != words.size()) return std::nullopt;
  ColourPlaces places{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto found = std::ranges::find_if(names, [word = words[i]](const std::string& name) {
      std::string small = name;
      std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      return small == word || small == word.substr(0, 1);
    });
    if (found == names.end()) return std::nullopt;
    places[i] = static_cast<std::size_t>(found - names.begin());
  }
  return places;
}

void combine_planes(Slide::Impl& slide, const OpenOptions& options, const ColourPlaces& places) {
  OpenOptions of_plane = options;
  of_plane.to_srgb = of_plane.shrink_on_load = false;
  // The memory of a tile is taken for all of its planes at once.
  of_plane.decode_memory = nullptr;
  Planes planes;
  for (std::size_t i = 0; i < colour_planes; ++i) {
    of_plane.channel = static_cast<int>(places[i]);
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
    coding.plane_codec = first.levels[i].codec;
    coding.plane_bytes = decoding_bytes(first.levels[i], coding_of(*planes.front(), i));
    for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
      const bool is_missing =
          std::ranges::all_of(planes, [&](const auto& plane) { return plane->tile(i, tile).length == 0; });
      for (const auto& plane : planes) coding.coded_bytes += plane->tile(i, tile).length;
      coding.tiles.push_back(is_missing ? TileRange{} : in_planes);
    }
    slide.codings.push_back(std::move(coding));
  }
  slide.container = std::make_unique<PlanesContainer>(std::move(planes));
}

}  // namespace slidestream
