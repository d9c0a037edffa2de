#pragma once

#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// A line with the numbers of tiles that smaller levels have lost (`count_lost_tiles`); empty: they have lost none.
std::string lost_tiles_line(const Slide& slide);

}  // namespace slidestream
