#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
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
  /// Removes the file.
  ~StartNotes();
  StartNotes(const StartNotes&) = delete;
  StartNotes& operator=(const StartNotes&) = delete;

  /// \param id  of the slide's row \throws OutputError
  void add(std::int64_t id);

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
  std::mutex mutex_;  ///< of what follows
  std::vector<std::int64_t> waiting_;
  std::chrono::steady_clock::time_point since_;  ///< the first of them waits
  std::size_t before_ = 0;                       ///< notes that the ledger has
};

/// Whether a process has notes beside the ledger: one that works, or that died. One that ended has removed them, also
/// where it couldn't give the ledger back, as on a full disk.
bool has_notes(const Database& database);

/// Rows of slides that a process noted, alive or dead, and that aren't entered.
std::vector<std::int64_t> notes_to_enter(Database& database);

/// Enters what a dead process noted and didn't live to enter, in a transaction of its own, and removes its file. For
/// the ledger's new owner. \throws OutputError
void enter_left_notes(Database& database);

}  // namespace slidestream
