#pragma once

#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// A line with the numbers of tiles that smaller levels have lost (`count_lost_tiles`), or about a level 0 without any
/// tile; empty: there is nothing to say. Reads no pixels.
std::string lost_tiles_line(const Slide& slide);

}  // namespace slidestream
