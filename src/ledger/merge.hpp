#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "ledger/ledger.hpp"
#include "output/views.hpp"

namespace slidestream {

struct MergeOptions {
  bool fresh = false;  ///< moves what is in the folder for joined results aside, once the folders were found to fit
  /// Asked between slides and while it waits. True: nothing is merged, or, once all is, the files of results aren't
  /// written. May be empty.
  std::function<bool()> stopped;
  /// Called with a line where it waits for a run in that folder that can't be asked whether it lives. May be empty.
  std::function<void(const std::string&)> on_watch = {};
  /// Writes more files from the joined ledger, with the merged run's configuration. It is called while the merge has
  /// the ledger open: who only reads it, and is the last, leaves an empty log beside it. May be empty.
  std::function<void(const Config&)> write = {};
};

/// What a merge found.
struct MergeResult {
  Config config;                     ///< of the merged run
  Corpus corpus{0};                  ///< of all slides
  std::size_t twice = 0;             ///< slides that several folders have, with the same result
  std::vector<std::string> missing;  ///< paths of slides of the manifest that no folder has, or one has to do
  std::map<std::string, std::string> not_counted;  ///< by path of one missing: a folder whose result doesn't count
  std::set<std::string> repeats;                   ///< paths of those missing that a folder once ended
  std::size_t uncertain = 0;       ///< folders, and slides, of which more may be to do than the ledgers say
  std::size_t absent = 0;          ///< files of slides that aren't found: absent, another kind or size, not to be seen
  std::uint64_t absent_bytes = 0;  ///< that these had
  std::vector<std::string> warnings;  ///< one line each
  std::string aside;                  ///< where the earlier results are now; empty: there were none, or it wasn't asked
  bool stopped = false;               ///< nothing was merged
  std::string not_written;            ///< why a file of results isn't there, though all is merged; empty: all are
};

/// Joins the ledgers of several output folders in `out`, all or nothing, and writes the files of results there. They
/// follow from `folders` alone, in any order: what an earlier merge left in `out` is replaced.
/// \throws ConfigError when they can't be joined: other settings, versions or numbers of shards, the same slide with
/// different results, `out` holds slides that none of them has, or something there has a map's name and isn't in its
/// ledger; OutputError when one can't be read or the ledger in `out` can't be written.
MergeResult merge_ledgers(const std::vector<std::string>& folders, const std::string& out,
                          const MergeOptions& options = {});

}  // namespace slidestream
