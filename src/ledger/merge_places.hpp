#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

enum class SlideState { undone, done, failed };

/// What one ledger says of a slide. Joined results say in one row what their folders said when they were read.
struct SlideClaim {
  Standing standing = Standing::leftover;
  bool is_doubted = false;  ///< the merge that joined it wasn't sure

  /// \param mine  the column; of a folder's own run 0 or 1
  static SlideClaim of(std::int64_t mine, bool is_shard);
  /// Whether merges end with 3 for this.
  bool is_uncertain() const { return is_doubted || standing == Standing::leftover; }
  /// The column `mine` of joined results.
  std::int64_t mine() const;
};

/// A slide of any manifest.
struct Place {
  std::int64_t position = 0;  ///< the first that a manifest gives it
  std::string path;
  std::uint64_t bytes = 0;  ///< of its file, the most that a ledger knows
  std::size_t shards = 0;   ///< so many ledgers that are shards' list it
  bool is_own = false;      ///< one of these has it to do
  bool has_ended = false;   ///< a ledger of any standing ended it once
  bool is_joined = false;   ///< one is joined results
  bool is_doubted = false;  ///< of these, one is doubted
  bool do_differ = false;   ///< two don't say the same of it, beside results, which `import` compares
  std::optional<std::pair<bool, SlideState>> said;  ///< by the last that says anything: whether it is a leftover
  Standing standing = Standing::leftover;           ///< the highest of a ledger; what follows is of those
  std::optional<std::int64_t> once_ended;           ///< when it last ended, also if it is to be done again
  std::int64_t ended_at = 0;                        ///< the same of those that haven't to do it again; 0: none
  bool is_undone = false;                           ///< one has it to do; again, unless it is a shard's

  /// Joined results can't tell whether a folder went on since they read it, changed its role, or is another one. Where
  /// they don't say the same as others, whichever holds is unknown.
  bool is_unsettled() const { return is_doubted || (is_joined && do_differ); }
};
using Places = std::map<std::string, Place>;  ///< by canonical path

/// \throws OutputError.
void add_places(Database& database, bool is_shard, bool is_joined, Places& places);

/// By position where the manifests agree; paths settle the rest.
std::vector<ManifestEntry> make_manifest(const Places& places);

}  // namespace slidestream
