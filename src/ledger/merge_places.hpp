#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/database.hpp"
#include "ledger/ledger.hpp"

/// Which of the ledgers that are joined decides a slide. Joined ledgers keep it in the column `mine`, so that merges of
/// merges decide as one merge does.

namespace slidestream {

/// How much what a ledger has of a slide counts: nothing beside one that has more.
enum class Standing {
  leftover,  ///< of an earlier run in another shard's folder, maybe of an earlier file
  result,    ///< of a run without shards
  shard,     ///< a shard has the slide to do
};

/// What one ledger says of a slide. Joined results say what folders said as they were read.
struct SlideClaim {
  static constexpr std::int64_t now = std::numeric_limits<std::int64_t>::max();
  Standing standing = Standing::leftover;
  std::int64_t read_at = now;  ///< in microseconds, as `ended_at`
  bool is_doubted = false;     ///< a run without shards had a later result than the shard, and another

  /// \param mine  the column; of a folder's own run 0 or 1
  static SlideClaim of(std::int64_t mine, bool is_shard);
  /// The column `mine` of joined results.
  std::int64_t mine() const;
};

/// A slide of any manifest.
struct Place {
  std::int64_t position = 0;  ///< the first that a manifest gives it
  std::string path;
  std::uint64_t bytes = 0;                 ///< of its file, the most that a ledger knows
  std::size_t shards = 0;                  ///< so many ledgers that are shards' list it
  bool is_own = false;                     ///< one of these has it to do
  bool has_ended = false;                  ///< a ledger of any standing ended it once
  Standing standing = Standing::leftover;  ///< the highest of a ledger; what follows is of those that have it
  std::optional<std::int64_t> once_ended;  ///< when it last ended, also if it is to be done again
  std::int64_t ended_at = 0;               ///< the same of those that haven't to do it again; 0: none
  std::int64_t read_at = 0;                ///< the last claim
  std::int64_t done_at = -1;               ///< the last of one that has done it; -1: none
  std::int64_t undone_at = -1;             ///< the last claim that it is to be done; again, unless a shard's; -1: none
  std::int64_t doubted_at = -1;            ///< the last that is doubted; -1: none

  /// A result that ended after joined results read the folders does away with what these say.
  bool counts(const SlideClaim& claim) const { return claim.standing == standing && claim.read_at >= ended_at; }
  bool is_undone() const { return undone_at >= ended_at; }
  bool is_doubted() const { return !is_undone() && doubted_at >= ended_at; }
};
using Places = std::map<std::string, Place>;  ///< by canonical path

/// \throws OutputError.
void add_places(Database& database, bool is_shard, Places& places);

/// By position where the manifests agree; paths settle the rest. \param now  when the ledgers were opened
std::vector<ManifestEntry> make_manifest(const Places& places, std::int64_t now);

}  // namespace slidestream
