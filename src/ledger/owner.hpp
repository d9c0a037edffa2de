#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <slidestream/error.hpp>
#include <string>

#include "ledger/database.hpp"

namespace slidestream {

/// A process, told from all others, also from those that had its number before it or have it on another machine.
struct ProcessIdentity {
  std::string host;
  std::string boot;       ///< the kernel's number for this start of the machine
  std::string pid_space;  ///< containers count processes each for themselves
  std::int64_t pid = 0;
  std::int64_t start = 0;  ///< clock ticks since the machine's start

  bool operator==(const ProcessIdentity&) const = default;
  std::string name() const { return host + ", process " + std::to_string(pid); }
};

ProcessIdentity this_process();

/// Whether that process lives; nothing when it can't be told from here: it is another machine's or container's.
std::optional<bool> is_alive(const ProcessIdentity& process);

/// Who writes a ledger, as its table `owner` has it.
struct Owner {
  ProcessIdentity process;
  std::int64_t beats = 0;    ///< grows while it lives
  std::int64_t beat_at = 0;  ///< seconds since 1970, by its clock
  std::int64_t since = 0;    ///< seconds since 1970, by its clock
};

std::optional<Owner> read_owner(Database& database);

/// How an owner is watched that can't be asked.
struct OwnerWatch {
  std::chrono::milliseconds least{45'000};    ///< as long at least: clocks differ and jump
  std::chrono::milliseconds silence{60'000};  ///< and until its last beat is as old; many times the time between two
  /// Called with a line that says what is waited for. May be empty.
  std::function<void(const std::string&)> on_watch = {};
  /// Asked while it waits; true: it waits no longer. May be empty.
  std::function<bool()> is_stopped = {};
  std::chrono::milliseconds stopping{60'000};  ///< how long the end of one is waited for that was asked to stop
};

/// The waiting for a sign of life, or the reading of a ledger at a start, was stopped. Nothing was changed.
class WatchStopped : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// How long a silent owner is watched. \param now  seconds since 1970
std::chrono::milliseconds time_to_watch(const Owner& owner, std::int64_t now, const OwnerWatch& watch);

/// Whether the owner is known to have ended, or thought to after it was watched without a beat. The first beat ends
/// that: it lives. The end of one that was asked to stop is waited for. \param owner  gets its last beat
/// \throws WatchStopped
bool is_dead(Database& database, Owner& owner, const OwnerWatch& watch);

/// Before anything is written: a living process on this machine is told from its number alone, also where it has the
/// ledger locked. Nor is a ledger of an earlier version written to when it is to be gone on with. Whatever can't be
/// read is for the caller to find. \throws ConfigError; WatchStopped
void refuse_if_in_use(const std::filesystem::path& file, bool to_go_on, const OwnerWatch& watch);

struct Claim {
  std::string token;            ///< this process's
  bool has_lost_notes = false;  ///< as `may_have_lost_notes`, of the dead process that had the ledger
};

/// Enters this process as the owner, where there is none or a dead one, which is watched as by `is_dead`.
/// \throws ConfigError where a living one has it; WatchStopped
Claim claim(Database& database, const OwnerWatch& watch);

/// Seconds since 1970.
std::int64_t unix_now() noexcept;
std::int64_t unix_microseconds() noexcept;

}  // namespace slidestream
