#pragma once

#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// Whether the file has a tile of a level. Reads no pixels.
bool has_any_tile(const Slide& slide, std::size_t level);

/// A line with the numbers of tiles that smaller levels have lost (`count_lost_tiles`), or about a level 0 without any
/// tile; empty: there is nothing to say. Reads no pixels.
std::string lost_tiles_line(const Slide& slide);

}  // namespace slidestream
