#pragma once

#include <cstdint>
#include <vector>

namespace slidestream {

struct ComparedLevels;
struct LevelCell;

/// Places of a smaller level that are black all over.
struct BlackPlaces {
  std::int64_t looked_at = 0;  ///< in the larger level
  std::int64_t lost = 0;       ///< those that aren't black there
};

/// Some of the cells that are black all over, spread over them. Scanners leave gaps black, but in all levels.
BlackPlaces look_at_black_places(const ComparedLevels& levels, const std::vector<LevelCell>& cells);

}  // namespace slidestream
