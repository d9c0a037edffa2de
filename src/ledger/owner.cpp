#include "ledger/owner.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <slidestream/error.hpp>
#include <system_error>
#include <thread>

#include "ledger/schema.hpp"
#include "ledger/start_notes.hpp"
#include "system/process_state.hpp"

namespace slidestream {

namespace {

/// Until it has as many its process looks at its inputs, for which it may need longer than between two beats.
constexpr std::int64_t beats_of_start = 2;

std::string first_line(const char* file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::string link_target(const char* link) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(link, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string new_token() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random()) + "-" + std::to_string(::getpid());
}

[[noreturn]] void refuse(const std::filesystem::path& file, const Owner& owner) {
  throw ConfigError(file.parent_path().string() + ": belongs to a run on " + owner.process.name() +
                    "; wait for its end, or name another folder");
}

/// What is waited for, and how long. \param is_here  it lives on this machine, and was asked to stop
std::string line_of_watch(const Database& database, const Owner& owner, std::chrono::milliseconds time, bool is_here) {
  const std::string line = database.file().parent_path().string() + ": waiting up to " +
                           std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s for ";
  const std::string subject = "the run on " + owner.process.name();
  if (is_here) return line + "the end of " + subject + ", which was asked to stop";
  const std::int64_t age = unix_now() - owner.beat_at;
  return line + subject + (age >= 0 ? ", last seen " + std::to_string(age) + " s ago" : std::string()) +
         ", which can't be asked from here; this start ends at once if that is alive";
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity process;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) process.host = host.data();
  process.boot = first_line("/proc/sys/kernel/random/boot_id");
  process.pid_space = link_target("/proc/self/ns/pid");
  process.pid = ::getpid();
  process.start = state_of(process.pid).start;
  return process;
}

std::optional<bool> is_alive(const ProcessIdentity& process) {
  const ProcessIdentity self = this_process();
  if (self.boot.empty() || process.host != self.host || process.boot != self.boot ||
      process.pid_space != self.pid_space) {
    return std::nullopt;
  }
  if (process.pid <= 0) return false;
  const ProcessState found = state_of(process.pid);
  if (has_ended(process.pid, found)) return false;
  // Where /proc shows nothing, the number alone counts.
  return found.start == 0 || process.start == 0 || found.start == process.start;
}

std::optional<Owner> read_owner(Database& database) {
  Statement select(database, "SELECT host, boot, pid_space, pid, start, beats, beat_at, since FROM owner");
  if (!select.step()) return std::nullopt;
  Owner owner;
  owner.process = {select.text(0), select.text(1), select.text(2), select.integer(3), select.integer(4)};
  owner.beats = select.integer(5);
  // Times that no clock gives; their differences are taken.
  const auto time = [](std::int64_t seconds) { return std::clamp<std::int64_t>(seconds, 0, std::int64_t{1} << 40); };
  owner.beat_at = time(select.integer(6));
  owner.since = time(select.integer(7));
  return owner;
}

std::chrono::milliseconds time_to_watch(const Owner& owner, std::int64_t now, const OwnerWatch& watch) {
  const std::int64_t age = now - owner.beat_at;
  // Its clock is ahead: an hour, or a moment. How old its beat is nobody can say.
  if (age < 0) return watch.least;
  const std::chrono::milliseconds left =
      std::max<std::chrono::milliseconds>(watch.silence - std::chrono::seconds(age), std::chrono::milliseconds::zero());
  return owner.beats < beats_of_start ? left + watch.least : std::max(left, watch.least);
}

bool is_dead(Database& database, Owner& owner, const OwnerWatch& watch) {
  using Clock = std::chrono::steady_clock;
  const auto alive = is_alive(owner.process);
  if (alive && !*alive) return true;
  // Meanwhile it may have ended.
  if (alive && !was_asked_to_stop(database)) return !read_owner(database);
  // Of one that can't be asked neither a new beat nor an old one proves anything: clocks differ and jump, and who was
  // killed beat until then.
  const std::chrono::milliseconds time = alive ? watch.stopping : time_to_watch(owner, unix_now(), watch);
  if (watch.on_watch) watch.on_watch(line_of_watch(database, owner, time, alive.has_value()));
  const auto last = Clock::now() + watch.stopping;
  auto end = Clock::now() + time;
  while (Clock::now() < end) {
    if (watch.is_stopped && watch.is_stopped()) {
      throw WatchStopped(database.file().parent_path().string() + ": interrupted while it waited for the run on " +
                         owner.process.name());
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(time, std::chrono::milliseconds(500)));
    const auto now = read_owner(database);
    if (!now) return true;
    if (!(now->process == owner.process)) return false;
    if (alive && !is_alive(owner.process).value_or(true)) return true;
    if (alive || now->beats == owner.beats) continue;
    if (Clock::now() > last || !was_asked_to_stop(database)) return !read_owner(database);
    owner = *now;
    end = Clock::now() + time_to_watch(owner, unix_now(), watch);
  }
  return !alive.has_value();
}

void refuse_if_in_use(const std::filesystem::path& file, bool to_go_on, const OwnerWatch& watch) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code) || std::filesystem::file_size(file, code) == 0) return;
  try {
    Database database(file, DatabaseAccess::read, std::chrono::seconds(5));
    const std::int64_t version = check_schema(database);
    auto owner = read_owner(database);
    const bool lives = owner && is_alive(owner->process).value_or(false);
    if (lives && !is_dead(database, *owner, watch)) refuse(file, *owner);
    if (to_go_on) refuse_older(database, version);
  } catch (const OutputError&) {
    // The caller finds it, too.
  }
}

Claim claim(Database& database, const OwnerWatch& watch) {
  const std::string token = new_token();
  while (true) {
    auto judged = read_owner(database);
    if (judged && !is_dead(database, *judged, watch)) refuse(database.file(), *judged);
    Transaction transaction(database);
    // While it was being judged another may have taken it.
    const auto owner = read_owner(database);
    if (owner && (!judged || !(owner->process == judged->process) || owner->beats != judged->beats)) continue;
    const bool has_lost_notes = may_have_lost_notes(database);
    const ProcessIdentity self = this_process();
    Statement write(database, "INSERT OR REPLACE INTO owner VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?7)");
    write.bind(1, std::string_view(token)).bind(2, std::string_view(self.host)).bind(3, std::string_view(self.boot));
    write.bind(4, std::string_view(self.pid_space)).bind(5, self.pid).bind(6, self.start).bind(7, unix_now()).run();
    transaction.commit();
    return {token, has_lost_notes};
  }
}

std::int64_t unix_now() noexcept { return unix_microseconds() / 1'000'000; }

std::int64_t unix_microseconds() noexcept {
  using std::chrono::microseconds;
  return std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace slidestream
