#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "ledger/artifact_files.hpp"
#include "ledger/database.hpp"
#include "ledger/identity.hpp"
#include "ledger/owner.hpp"
#include "ledger/side_inputs.hpp"
#include "ledger/start_notes.hpp"
#include "ledger/stored_map.hpp"

namespace slidestream {

/// One slide of a run's manifest.
struct ManifestEntry {
  std::string path;                           ///< as it was named
  std::string canonical;                      ///< the file behind it: what tells slides apart
  bool mine = true;                           ///< of this process's shard; for `join`, still to be done
  std::uint64_t bytes = 0;                    ///< of its file, for `join`, which doesn't look
  std::int64_t kept = 1;                      ///< for `join`: the column `mine`
  std::optional<std::int64_t> ended_at = {};  ///< for `join`: when it ended, if it isn't imported
};

/// What a run finds in its ledger.
struct LedgerStart {
  std::vector<std::size_t> todo;  ///< places in the manifest, in order
  std::size_t mine = 0;           ///< slides of this shard
  std::size_t done = 0;           ///< of them, done before
  std::size_t failed = 0;         ///< of them, failed before, and not tried again
  std::size_t incomplete = 0;     ///< of those done before, slides that an operator failed on, and not tried again
  std::size_t left_out = 0;       ///< slides that ended in earlier runs here and that the manifest hasn't
  std::size_t of_others = 0;      ///< slides that ended in earlier runs here and that are now other shards'
  bool list_damaged = false;      ///< since it was written, slides have left the list or come to it
  bool joined = false;            ///< what is there was joined from other folders
  std::uint64_t bytes = 0;        ///< of this shard's files
  std::uint64_t bytes_left = 0;   ///< of the files of `todo`
  std::vector<std::uint64_t> todo_bytes;  ///< of each file of `todo`
  std::vector<std::string> changed;       ///< paths of slides that had ended and are another file now
  std::vector<std::string> other_inputs;  ///< of those whose file is the same: their outlines or mpp are others
  /// By place in the manifest: how many processes died in a row while they worked on the slide, perhaps among others.
  std::map<std::size_t, std::int64_t> deaths;
  /// The same of starts that ended without memory or threads.
  std::map<std::size_t, std::int64_t> shortages;
  std::set<std::size_t> unwritten;    ///< places of slides that a run ended at, as a file of theirs couldn't be written
  std::vector<std::string> unmade;    ///< what is wrong with files that were made of slides, which are to be done again
  std::size_t links = 0;              ///< files of slides that are done and stay so, which are links
  std::string first_link;             ///< the first of these
  std::vector<std::string> vanished;  ///< paths of slides that were done and can't be looked at now
  std::vector<std::string> lacking;   ///< what is wrong with files of such slides, which nothing makes again
  std::vector<std::string> damaged;   ///< what is wrong with rows that can't be read; their slides are to be done
};

class FolderLock;

/// What a slide failed by that is given up: more may be left of it than of others that failed.
inline constexpr const char* cause_of_deaths =
    "the process died twice while it worked on this slide, and again on it alone";
inline constexpr const char* cause_of_shortages =
    "memory or threads lacked in two starts that worked on this slide, and in one that had it alone; raise the limit "
    "of "
    "memory, or lower pipeline.memory_mib and pipeline.threads";

/// Files that runs write into their folders: the ledger, what SQLite and a run have beside it, and tables.
std::vector<std::string> files_of_runs();

/// The memory of a run: `run.sqlite` in the output folder, one row per slide. Slides that ended are kept in one
/// transaction per call of `keep`. A change is on the disk when its call returns, except where the call says that it
/// doesn't wait for the storage, and except beats. The ledger belongs to one process at a time; each transaction checks
/// that. All members may be called from any thread.
class Ledger {
 public:
  struct Options {
    /// How an owner that can't be asked (another machine's or container's) is watched for a sign of life. `begin` asks
    /// its `is_stopped`, too, and calls its `on_watch` once if it takes longer than `told_after`; so does the opening
    /// of a file of `told_bytes`.
    OwnerWatch watch = {};
    std::chrono::milliseconds told_after{1000};
    std::uint64_t told_bytes = std::uint64_t{256} << 20;
    /// For what is joined: the settings that it was made with, when these aren't this program's.
    std::vector<std::pair<std::string, std::string>> settings = {};
    /// Called with one line by `move_aside` where the ledger lists files that no run makes, or where nothing says that
    /// files of slides are a run's. These stay.
    std::function<void(const std::string&)> on_passed_over = {};
    /// How much of maps' values `begin` compares with their digests: it stays quick, whatever maps there are.
    std::uint64_t most_map_bytes = std::uint64_t{1} << 30;
  };

  /// Opens the ledger of `config.output.dir`, or makes it, and takes it over from a dead process. Waits for a sign of
  /// life where nothing else tells whether one is dead.
  /// \throws ConfigError when a slide was begun and its settings are others (naming the first and both values), it is
  /// of an earlier version (naming both), a living process has it (naming host and number), or results lie there
  /// without it; OutputError when it can't be used.
  Ledger(const Config& config, const Options& options);
  explicit Ledger(const Config& config) : Ledger(config, Options{}) {}
  /// Gives it back.
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// \throws ConfigError where results lie in `config.output.dir` without their ledger, or a move aside was
  /// interrupted. Waits for a process that starts or moves at this moment. \param held  of the folder
  static void check_folder(const Config& config);
  static void check_folder(const Config& config, const FolderLock& held);
  /// Whether `config.output.dir` has results or a ledger, which `move_aside` would move.
  static bool has_results(const Config& config);
  /// Moves what an earlier run left in `config.output.dir` into its folder `earlier-N` and returns that; empty where
  /// there was nothing. All of it moves, or nothing. Of folders with files of slides what the ledger doesn't list
  /// stays; where it can't be read or is gone, they move as they are, if something else says that a run was there.
  /// \throws ConfigError when a living process has it; OutputError.
  static std::string move_aside(const Config& config, const Options& options);

  /// Enters the manifest and finds what is to be done. A slide whose artifacts aren't all there in their sizes is, and
  /// one whose map isn't what was written, as far as maps are looked at. \throws DamagedError where one can't be read;
  /// WatchStopped where it was asked to stop, and nothing was changed.
  /// \param retried_cause  also what failed by a cause with this text is tried again; empty: none
  /// \param shards  how many there are of which the manifest has one; 0: it isn't split
  LedgerStart begin(const std::vector<ManifestEntry>& manifest, bool retry_failed, std::string_view retried_cause = {},
                    int shards = 0);

  /// Slides of the manifest, and no other shard's, that failed by a cause with this text.
  std::size_t failed_by(std::string_view cause);

  /// Slides that aren't to be done now and whose files a process had begun when it died; and those given up.
  struct LeftSlides {
    std::unordered_set<std::string> names;                ///< what the names of their images begin with
    std::unordered_map<std::string, Artifact> artifacts;  ///< that the ledger still lists of them, by file
  };
  /// For after `begin`.
  LeftSlides left_slides();

  /// Keeps which slides the run ended at, as a file of theirs couldn't be written: the next start has them in
  /// `LedgerStart::unwritten`.
  void note_unwritten(const std::set<std::size_t>& slides);

  /// Has a slide of the manifest done again although it was done: its map can't be read.
  void redo(std::size_t slide);

  /// A slide's map that the ledger has.
  struct ListedMap {
    std::string file;  ///< in the folder `maps`
    std::optional<std::uint64_t> digest;
  };
  /// Maps that the ledger has.
  struct ListedMaps {
    std::unordered_map<std::string, ListedMap> slides;  ///< by canonical path
    std::unordered_map<std::string, WindowMap> files;   ///< in the folder `maps`; without values
  };

  /// Makes the ledger that of joined runs, in one transaction: enters a manifest, whose files aren't looked at, and
  /// calls `work`, which calls `import` for every slide that was found. Then `check` gets what `image_names` is going
  /// to give, and the maps that the ledger is going to list. Nothing changes when either throws. \throws ConfigError
  /// where that would lose something: a run's own results, or slides of an earlier joining that aren't imported this
  /// time. The manifest's that are `mine` may stay out: a ledger that is joined has them to do.
  /// \param former  canonical paths of slides that the joined ledgers have, and not among their inputs any more
  void join(const std::vector<ManifestEntry>& manifest, const std::function<void()>& work,
            const std::function<void(const std::vector<std::string>& names, const ListedMaps& maps)>& check,
            const std::unordered_set<std::string>& former = {});
  /// A slide that another ledger has.
  struct Imported {
    SlideResult result;  ///< without the map's values; artifacts as paths in this ledger's folder, or absolute
    std::string image_name;
    std::optional<SlideIdentity> identity;
    std::int64_t attempts = 0;
    std::int64_t ended_at = 0;
    std::optional<std::uint64_t> map_digest;  ///< as it was written
    MapParts map;
    bool is_joined = false;  ///< from joined results
  };
  ListedMaps listed_maps();
  enum class Import { added, known, different, damaged };
  /// Takes over a slide of the manifest while `join` works. One that is done goes before one that failed; of two that
  /// say the same, the one is kept that any order of imports keeps. `different`: both are done and don't say the same.
  /// `damaged`: its map isn't what was written. `work` has to throw then.
  Import import(std::size_t slide, const Imported& other);
  /// Whether what was imported says this. \param map_digest  as it was written
  bool has_imported(std::size_t slide, const SlideResult& result, std::optional<std::uint64_t> map_digest);
  /// Changes `ManifestEntry::kept` of a slide while `join` works.
  void set_kept(std::size_t slide, std::int64_t kept);

  /// What the names of a slide's images and map begin with. The first call gives each slide of the manifest one that is
  /// no other slide's in this folder (`fill_image_names`), and keeps them all: they stay, whatever later manifests are.
  std::string image_name(std::size_t slide);
  /// Those of all slides of the manifest.
  std::vector<std::string> image_names();

  /// Notes that a slide of the manifest is being worked on, and the state of its file. With `input.content_hash` it
  /// reads that file. Doesn't wait for the ledger's storage.
  void started(std::size_t slide);
  /// Notes that what is there under the names of the slide's files was checked, and that they may have these names from
  /// now on. Doesn't wait for the storage.
  void files_begun(std::size_t slide);
  /// Looks whether a slide that is done is what it was when it started. One that isn't becomes a failed one, and its
  /// artifacts are removed. A slide that failed, or whose file couldn't be looked at then, doesn't change.
  void check_unchanged(std::size_t slide, SlideResult& result);
  /// A slide that ended, with its map and the name that the map's file is to have.
  struct Ended {
    std::size_t slide = 0;
    const SlideResult* result = nullptr;
  };
  /// Files that a slide had, and has no more.
  struct EarlierFiles {
    std::string path;  ///< of the slide
    SetAside where;
  };
  /// Keeps slides that ended and were looked at, in one transaction. Files that they had, and have no more, are moved
  /// into `earlier_of_failed`. Returns what became of them, for slides whose files were moved or had to be.
  std::vector<EarlierFiles> keep(std::span<const Ended> slides);
  /// Looks at one and keeps it, as `keep`.
  std::vector<EarlierFiles> ended(std::size_t slide, SlideResult& result);
  /// Notes the name of a map's file that was written again.
  void map_renamed(std::size_t slide, const std::string& name);
  /// Notes that the run was asked to stop: where the process dies from now on, that is no slide's fault. Doesn't wait
  /// for the storage.
  void note_stop() noexcept { notes_->add_stop(); }
  /// Notes that the run ends as memory or threads lack: that counts of the slides that are under way then. Also where
  /// nothing can be written to the ledger any more.
  void note_shortage() noexcept { notes_->add_shortage(); }
  /// For a signal handler and where memory lacks, which may write `stop_note` and `shortage_note` to it. Valid while
  /// the ledger lives.
  int stop_descriptor() const noexcept { return notes_->descriptor(); }
  /// Shows others that this process lives, and makes sure that the ledger is still its own: to be called regularly.
  /// Where the journal is a write-ahead log, it may be lost with the power. \throws OutputError when another took over,
  /// or the file isn't where it was.
  void beat();
  /// Enters starts that no commit has entered for a second: `status` tells of them.
  void enter_starts();
  /// Makes sure that the file is where it was, so that what is written beside it is written into the same folder.
  /// Doesn't wait for a transaction, which may wait for the caller. \throws OutputError.
  void check_place();
  /// Whether the folder isn't this process's any more: another took over, or it was moved or deleted.
  bool is_lost() const noexcept { return lost_; }

  /// Whether the file has its name still, as far as the system says now; any thread.
  bool is_in_place() const noexcept { return !lost_ && number_of(file()) == number_; }

  const std::filesystem::path& file() const noexcept { return database_.file(); }

  /// Whether the file wasn't there before.
  bool is_new() const noexcept { return is_new_; }
  /// What decides the run's results, as `ledger_settings` when it was opened.
  const std::vector<std::pair<std::string, std::string>>& settings() const noexcept { return settings_; }

 private:
  /// Of two processes that start at once the second sees whether the first has the ledger.
  Ledger(const Config& config, const Options& options, const FolderLock& held);

  /// What tells a file from another that has its name now.
  struct FileNumber {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileNumber&) const = default;
  };
  /// Of no file: zeros. Nothing where that can't be said.
  static std::optional<FileNumber> number_of(const std::filesystem::path& file) noexcept;

  struct Slide {
    std::int64_t id = 0;
    std::string path;
    SlideIdentity identity;   ///< when it was started
    bool known = false;       ///< the file could be looked at then
    bool incomplete = false;  ///< at the beginning: done before, and one of its operators failed
    bool is_retried = false;  ///< at the beginning: what failed before is tried again
    bool had_begun = false;   ///< at the beginning: an earlier attempt came to its files, and has no result
  };

  void check_settings(const Config& config, const Options& options);
  struct EntryStatements;
  std::string enter(EntryStatements& with, std::size_t place, const ManifestEntry& entry,
                    std::optional<SlideIdentity>& now, std::string_view retried_cause, LedgerStart& start);
  bool has_damaged_map(std::int64_t slide, std::optional<std::uint64_t> digest, const WindowMap& size);
  bool is_other_file(EntryStatements& with, const SlideIdentity& before, SlideIdentity& now, bool done,
                     const Slide& slide, const std::string& path) const;
  void forget_image_names();
  std::vector<std::string> name_images();
  ListedMaps read_listed_maps();
  void redo_row(std::int64_t id);
  void mend_once();
  void check_start(std::chrono::steady_clock::time_point since, std::size_t slides);
  void forget_manifest(const std::vector<ManifestEntry>& manifest);
  void check_that_joining_loses_nothing(const std::vector<ManifestEntry>& manifest,
                                        const std::unordered_set<std::string>& former);
  void release();
  void keep_row(const Ended& ended);
  bool may_have_left(const Slide& slide, const SlideResult& result);
  /// A transaction of this process: the ledger still belongs to it. What is only `hurried` may be lost with the power.
  enum class Durability { full, hurried };
  void change(const std::function<void()>& work, Durability durability = Durability::full);

  /// The state of a slide's file, and of what is read besides; nothing where the file can't be looked at.
  std::optional<SlideIdentity> look(const std::string& path) const;

  std::vector<std::pair<std::string, std::string>> settings_;
  OwnerWatch watch_;
  std::chrono::milliseconds told_after_;  ///< as in `Options`
  bool has_told_ = false;                 ///< that the ledger is read
  ContentHashPolicy hash_policy_;
  SideInputs side_inputs_;
  std::size_t bins_;
  std::uint64_t map_bytes_left_;  ///< that `begin` still compares
  bool portable_names_;           ///< of files
  std::atomic<bool> lost_ = false;
  FileNumber number_;                     ///< of the ledger's file
  std::mutex names_mutex_;                ///< of `image_names_`; taken before `mutex_`
  std::vector<std::string> image_names_;  ///< as the manifest; empty until the first is asked for
  bool is_new_;
  std::mutex mutex_;  ///< of what follows
  Database database_;
  bool wal_ = false;
  bool has_mended_ = false;  ///< indices were looked at, since something is damaged
  std::string token_;        ///< this process's, in the ledger
  std::optional<StartNotes> notes_;
  std::vector<Slide> slides_;  ///< as the manifest
  std::vector<char> joined_;   ///< of them, what was imported: 1, or 2 from joined results
  std::vector<std::byte> histogram_;
};

}  // namespace slidestream
