#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

namespace slidestream::report {

/// A slide whose thumbnail and map are wanted.
struct PictureSource {
  std::size_t run = 0;
  std::int64_t id = 0;    ///< in the run's ledger
  std::string canonical;  ///< where its file was
  std::string path;       ///< as it was named
  std::int64_t map_columns = 0;
  std::int64_t map_rows = 0;
};

/// Thumbnails and maps of slides, in order, and why some have none.
struct Pictures {
  nlohmann::ordered_json json;
  std::size_t thumbnails_made = 0;
  std::size_t maps_made = 0;
};

/// Makes the pictures so that all together take at most `room` bytes in the page. Every slide has the same share of it:
/// three fifths for its thumbnail and the rest for its map where there are maps; a picture is made as large as its
/// share allows. `read_map` is called from the calling thread alone.
Pictures make_pictures(const std::vector<PictureSource>& sources, std::uint64_t room, int threads,
                       const std::function<bool(const PictureSource&, WindowMap&)>& read_map,
                       const std::function<void(std::size_t done, std::size_t all)>& on_thumbnail);

}  // namespace slidestream::report
