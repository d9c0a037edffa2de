#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace slidestream {

class Database;

/// Which slides a process has started: a line each in the file run.sqlite-started, beside the ledger. A commit for each
/// would wait for the storage, five times where it has no write-ahead log. The ledger's next transaction takes over
/// what was noted. Where the process dies before, the next one does (`enter_left_notes`); the power takes it away.
/// Thread-safe.
class StartNotes {
 public:
  /// Begins a file of its own. \param token  of the process, in the ledger \throws OutputError
  StartNotes(const std::filesystem::path& ledger, std::string token);
  /// Removes the file, unless it has a shortage that the ledger hasn't.
  ~StartNotes();
  StartNotes(const StartNotes&) = delete;
  StartNotes& operator=(const StartNotes&) = delete;

  /// \param id  of the slide's row \throws OutputError
  void add(std::int64_t id);
  /// The slide's files may have their names from now on. \param id  of its row \throws OutputError
  void add_files(std::int64_t id);

  /// The process was asked to stop: what it dies of from now on is the stop's, and no slide's.
  void add_stop() noexcept;
  /// The process ends as memory or threads lack: that counts of the slides it works on, and is no death. Where the
  /// ledger isn't given back, the notes stay for the next process.
  void add_shortage() noexcept;
  bool has_shortage() const noexcept { return has_shortage_; }
  /// The ledger has all that is to be kept.
  void given_back() noexcept { has_shortage_ = false; }
  /// For a signal handler, which may write `stop_note` to it as `add_stop` does, and for `shortage_note`.
  int descriptor() const noexcept { return descriptor_; }

  /// Enters what was noted and isn't in the ledger, within a transaction of the caller's. \returns how many
  std::size_t enter(Database& database);
  /// As many are in the ledger: the transaction was committed.
  void entered(std::size_t count);
  /// Whether one has waited for a second.
  bool wait_long();

 private:
  std::filesystem::path file_;
  std::string token_;
  int descriptor_ = -1;
  std::atomic<bool> has_shortage_ = false;
  std::mutex mutex_;  ///< of what follows
  std::vector<std::int64_t> waiting_;
  std::chrono::steady_clock::time_point since_;  ///< the first of them waits
  std::size_t before_ = 0;                       ///< notes that the ledger has
};

/// A line of its own in the notes, also behind one that was cut short.
inline constexpr std::string_view stop_note = "\nstop\n";
inline constexpr std::string_view shortage_note = "\nshortage\n";

/// Whether the process that has the ledger noted that it was asked to stop.
bool was_asked_to_stop(Database& database);

/// Whether a process has notes beside the ledger: one that works, or that died. One that ended has removed them, also
/// where it couldn't give the ledger back, as on a full disk.
bool has_notes(const Database& database);

/// Rows of slides that a process noted, alive or dead, and that aren't entered. A negative one stands for the files of
/// the slide.
std::vector<std::int64_t> notes_to_enter(Database& database);

/// Whether notes may be lost of the process that has the ledger, which is dead: with the power, or as it ended where it
/// couldn't write. Asked before `claim` makes another the owner.
bool may_have_lost_notes(Database& database);

/// Takes it that the process came to the files of every slide that has no result, in a transaction of its own.
void replace_lost_notes(Database& database);

/// Rows of slides whose files may have their names, though the ledger doesn't list them: a process checked what was
/// there and began them, and since then the slide wasn't done, nor did it fail when nothing was there.
std::unordered_set<std::int64_t> slides_with_files(Database& database);

/// The slide has a result: what the ledger lists of it counts. Within a transaction of the caller's.
void forget_files(Database& database, std::int64_t id);

/// Enters what a dead process noted and didn't live to enter, in a transaction of its own, and removes its file. Where
/// it had been asked to stop, its slides wait as those of one that ended. So they do where it ended without memory or
/// threads, which is counted. For the ledger's new owner. \throws OutputError
void enter_left_notes(Database& database);

}  // namespace slidestream
