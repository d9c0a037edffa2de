#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "report/picture.hpp"

namespace slidestream::report {

/// An image that was made of a slide, of which a picture is wanted.
struct MadeImage {
  std::size_t file = 0;               ///< its place among the slide's files
  std::filesystem::path folder;       ///< of the results
  std::string name;                   ///< as the ledger names it: in the folder, or absolute
  std::uint64_t bytes = 0;            ///< its size as it was written; 0: not known
  std::optional<Labels> labels = {};  ///< of an image of labels: its classes
  bool is_volume = false;             ///< a 3-D image, of which cuts are shown; its labels over the volume itself

  std::filesystem::path path() const { return folder / name; }
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
  const Config* config = nullptr;  ///< of its run, which lives as long as this; null: that of no run
  bool is_volume = false;          ///< a 3-D image
  bool failed = false;             ///< in its run: its file isn't opened
};

/// What bounds the pictures of a report. A ledger may say anything, so these hold beside a run's own bounds.
struct PictureLimits {
  int threads = 1;
  std::uint64_t decode_bytes = std::uint64_t{512} << 20;  ///< for decoding tiles, over all threads
  std::uint64_t row_bytes = std::uint64_t{256} << 20;     ///< for rows of pixels, over all threads
  /// For one picture, as `input.max_seconds` of its run, if that says less. Waiting for other pictures' rows isn't
  /// counted.
  int most_seconds = 300;
  std::function<bool()> stopped = {};  ///< asked by all threads several times a second; true ends it. May be empty
};

/// Thumbnails, maps and images made of slides, in order, and why some have none.
struct Pictures {
  nlohmann::ordered_json json;
  std::size_t thumbnails_made = 0;
  std::size_t maps_made = 0;
};

/// How a slide is opened for its thumbnail: as its run opened it, with no more tiles than any slide has by default. A
/// ledger may say that OpenSlide isn't loaded, and not which library is: it may come from anybody.
OpenOptions picture_options(const PictureSource& source);

/// Makes the pictures so that all together take at most `room` bytes in the page. Every slide has the same share of it.
/// Of that a thumbnail gets three parts, a map where there are maps two, and each image that was made two; a picture is
/// made as large as its part allows. `read_map` is called from the calling thread alone. \throws StoppedError
Pictures make_pictures(const std::vector<PictureSource>& sources, std::uint64_t room, const PictureLimits& limits,
                       const std::function<bool(const PictureSource&, WindowMap&)>& read_map,
                       const std::function<void(std::size_t done, std::size_t all)>& on_thumbnail);

}  // namespace slidestream::report
