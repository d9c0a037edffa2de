#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "report/picture.hpp"

namespace slidestream::report {

/// An image that was made of a slide, of which a picture is wanted.
struct MadeImage {
  std::size_t file = 0;  ///< its place among the slide's files
  std::filesystem::path path;
  std::optional<Labels> labels = {};  ///< of an image of labels: its classes
  int tile = 256;                     ///< of a Deep Zoom image: a tile's side
  bool is_volume = false;             ///< a 3-D image, of which cuts are shown; its labels over the volume itself
};

/// A slide whose thumbnail, map and images are wanted.
struct PictureSource {
  std::size_t run = 0;
  std::int64_t id = 0;    ///< in the run's ledger
  std::string canonical;  ///< where its file was
  std::string path;       ///< as it was named
  std::int64_t map_columns = 0;
  std::int64_t map_rows = 0;
  std::vector<MadeImage> made = {};
  int channel = -1;        ///< `input.channel` of its run
  bool is_volume = false;  ///< a 3-D image
};

/// Thumbnails, maps and images made of slides, in order, and why some have none.
struct Pictures {
  nlohmann::ordered_json json;
  std::size_t thumbnails_made = 0;
  std::size_t maps_made = 0;
};

/// Makes the pictures so that all together take at most `room` bytes in the page. Every slide has the same share of it.
/// Of that a thumbnail gets three parts, a map where there are maps two, and each image that was made two; a picture is
/// made as large as its part allows. `read_map` is called from the calling thread alone.
Pictures make_pictures(const std::vector<PictureSource>& sources, std::uint64_t room, int threads,
                       const std::function<bool(const PictureSource&, WindowMap&)>& read_map,
                       const std::function<void(std::size_t done, std::size_t all)>& on_thumbnail);

}  // namespace slidestream::report
