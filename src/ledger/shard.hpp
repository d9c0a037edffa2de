#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/database.hpp"

namespace slidestream {

/// One of several equal parts of a manifest, for as many processes.
struct Shard {
  enum class By {
    path,  ///< by a hash of the canonical path: slides stay in their shard when others come and go
    size,  ///< parts of about the same number of bytes
  };
  int number = 1;  ///< from 1
  int count = 1;
  By by = By::path;
};

/// "2/8" is the second of eight. \throws ConfigError.
Shard parse_shard(std::string_view text);

/// For every slide the number of its shard, 1 to `count`. The same on every machine for the same paths, and by size
/// for the same sizes, in any order. `sizes` is asked for when `by` is size, and is as long as `paths` then.
std::vector<int> shards_of(const std::vector<std::string>& paths, const std::vector<std::uint64_t>& sizes, int count,
                           Shard::By by);

/// Notes in a ledger, within a transaction, how many shards its last start was one of. 0: it had all slides.
void store_shards(Database& database, int count);
/// 0 where that isn't known, too.
std::int64_t stored_shards(Database& database);

}  // namespace slidestream
