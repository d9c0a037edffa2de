#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace slidestream {

class PrivateCopy;

/// Larger values, and rows, are neither read nor written. Parts of maps are the largest, of 64 MiB.
inline constexpr std::size_t largest_ledger_value = std::size_t{80} << 20;

/// A file is no ledger that can be read: it is damaged, something else, or a newer program's.
class UnreadableError : public OutputError {
 public:
  using OutputError::OutputError;
};

/// Bytes of the file, or all of them, aren't what a ledger has.
class DamagedError : public UnreadableError {
 public:
  using UnreadableError::UnreadableError;
};

/// How a connection may use a database.
enum class DatabaseAccess {
  create,      ///< read and write; made when missing
  read_write,  ///< of one that is there
  read,        ///< as it is, also while another process writes; makes no file beside one that it can't write
  immutable,   ///< as it is, without locks: of one that nobody writes
};

/// A connection to an SQLite database, used by one thread at a time. Every member throws OutputError, which names the
/// file and SQLite's reason, with the system's where there is one; UnreadableError where the file is the reason,
/// DamagedError where that is damaged. Without memory it is std::bad_alloc.
class Database {
 public:
  /// `busy`: how long it waits for another connection's lock.
  Database(const std::filesystem::path& file, DatabaseAccess access,
           std::chrono::milliseconds busy = std::chrono::seconds(60));
  /// To read what a dead process left in `file`, which errors name: the copy is opened and recovered.
  Database(const std::filesystem::path& file, std::unique_ptr<PrivateCopy> copy);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::filesystem::path& file() const noexcept { return file_; }

  /// How long it waits for another connection's lock from now on.
  void set_patience(std::chrono::milliseconds busy) noexcept;

  /// Statements without values or rows.
  void execute(const char* sql);
  std::int64_t last_row() const noexcept;
  /// Rows that the last statement changed.
  std::int64_t changed() const noexcept;

  [[noreturn]] void fail(int code) const;
  /// Of what is in the file.
  [[noreturn]] void fail_damaged(const std::string& what) const;
  /// Whether a value to be written is within the bound.
  void require_fits(std::size_t bytes) const;
  sqlite3* handle() const noexcept { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };

  void open(const std::string& name, int flags, std::chrono::milliseconds busy);

  std::filesystem::path file_;
  DatabaseAccess access_;
  std::unique_ptr<PrivateCopy> copy_;  ///< goes after the connection
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. Values are bound by number from 1, columns read by number from 0.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view text);
  /// The bytes stay the caller's, and must live until the statement is reset.
  Statement& bind_blob(int index, std::span<const std::byte> bytes);
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);

  /// The next row; false when there is none, after which the statement can be used again.
  bool step();
  /// Runs it to its end.
  void run();
  void reset() noexcept;

  enum class Type { integer, real, text, blob, null };
  Type type(int column) const noexcept;
  bool is_null(int column) const noexcept { return type(column) == Type::null; }
  std::int64_t integer(int column) const noexcept;
  double real(int column) const noexcept;
  /// Text or blob; valid until the next step.
  std::string_view bytes(int column) const noexcept;
  std::string text(int column) const { return std::string(bytes(column)); }

 private:
  struct Finalise {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };

  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
};

/// BEGIN IMMEDIATE, undone unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace slidestream
