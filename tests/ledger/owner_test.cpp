#include "ledger/owner.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ledger/ledger.hpp"
#include "ledger/start_notes.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// As another process on this machine that has died since.
void die_with_ledger(const Config& config, const std::vector<ManifestEntry>& manifest) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(0);
    SlideResult slide = result_of(manifest[0].path, 1);
    ledger.ended(0, slide);
    ledger.started(1);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
}

}  // namespace

TEST_CASE("a living owner is named and a dead one replaced") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  die_with_ledger(config, manifest);
  CHECK(read_status(folder / "out").running == 1);
  CHECK(read_status(folder / "out").owner_is_alive == false);
  Ledger ledger(config);
  CHECK(ledger.begin(manifest, false).todo == std::vector<std::size_t>{1});
  CHECK(read_status(folder / "out").owner_is_alive == true);
  const std::string message = message_of<ConfigError>([&] { const Ledger second(config); });
  CHECK(contains(message, "process " + std::to_string(::getpid())));
  CHECK(contains(message, this_process().host));
  CHECK(message_of<ConfigError>([&] { Ledger::move_aside(config, {}); }) == message);
}

TEST_CASE("a process that ended is dead before its parent asks how it ended") {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ProcessIdentity process = this_process();
  process.pid = child;
  process.start = 0;
  ::siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<::id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(is_alive(process) == false);
  ::waitpid(child, nullptr, 0);
  CHECK(is_alive(process) == false);
  CHECK(is_alive(this_process()) == true);
}

TEST_CASE("processes that died are counted for the slides that they worked on, until these end") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  using Deaths = std::map<std::size_t, std::int64_t>;
  const auto deaths = [&](bool retry_failed = false) {
    Ledger ledger(config);
    return ledger.begin(manifest, retry_failed).deaths;
  };
  CHECK(deaths().empty());
  die_with_ledger(config, manifest);
  CHECK(deaths() == Deaths{{1, 1}});
  CHECK(deaths() == Deaths{{1, 1}});  // a start that ended properly says nothing
  die_with_ledger(config, manifest);
  die_with_ledger(config, manifest);
  CHECK(deaths() == Deaths{{1, 3}});
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(1);
    SlideResult slide = result_of(manifest[1].path, 1);
    slide.fail({"source", {}, "enough"});
    ledger.ended(1, slide);
  }
  CHECK(deaths().empty());
  CHECK(deaths(true).empty());
  tamper(folder / "out/run.sqlite", "INSERT OR REPLACE INTO meta VALUES('deaths', '2 -7 x 99999999999999999999 3')");
  CHECK(deaths().empty());
}

TEST_CASE("how long an owner that can't be asked is watched") {
  using namespace std::chrono_literals;
  const OwnerWatch watch;
  Owner owner;
  owner.beats = 10;
  owner.beat_at = 1000;
  CHECK(time_to_watch(owner, 1000, watch) == 60s);
  CHECK(time_to_watch(owner, 1010, watch) == 50s);
  CHECK(time_to_watch(owner, 1030, watch) == 45s);
  CHECK(time_to_watch(owner, 1000 + (std::int64_t{1} << 40), watch) == 45s);
  CHECK(time_to_watch(owner, 990, watch) == 45s);  // its clock is ahead of ours
  // It looks at its inputs, and beats later.
  owner.beats = 1;
  CHECK(time_to_watch(owner, 1010, watch) == 95s);
  CHECK(time_to_watch(owner, 1100, watch) == 45s);
}

TEST_CASE("another machine's or container's owner lives while it beats") {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const fs::path file = folder / "out/run.sqlite";
  const auto elsewhere = [&](std::int64_t seconds_ago) {
    tamper(file, "INSERT OR REPLACE INTO owner VALUES(1, 'x', 'far', 'y', 'z', 7, 8, 9, 10, " +
                     std::to_string(unix_now() - seconds_ago) + ")");
  };
  { const Ledger ledger(config); }
  std::string told;
  const auto tell = [&](const std::string& line) { told = line; };
  // Killed a moment ago or long ago; or its clock is ahead of ours.
  for (const std::int64_t ago : {0, 3600, -3600}) {
    elsewhere(ago);
    CHECK_FALSE(read_status(folder / "out").owner_is_alive);
    const Ledger ledger(config, {{100ms, 100ms, tell}});
    CHECK(contains(told, (folder / "out").string() + ": waiting up to 1 s for the run on far, process 7"));
    CHECK(contains(told, ", last seen ") == (ago >= 0));
  }
  elsewhere(5);
  CHECK(Ledger::move_aside(config, {{100ms, 100ms, tell}}) == (folder / "out/earlier-1").string());
  { const Ledger ledger(config); }
  for (const std::int64_t ago : {5, 3600}) {
    elsewhere(ago);
    // It beats behind the first look, whenever the watch begins.
    const auto beat = [&](const std::string&) { tamper(file, "UPDATE owner SET beats = beats + 1"); };
    const auto begin = std::chrono::steady_clock::now();
    CHECK(contains(message_of<ConfigError>([&] {
                     const Ledger ledger(config, {{1h, 1h, beat}});
                   }),
                   "belongs to a run on far, process 7"));
    CHECK(std::chrono::steady_clock::now() - begin < 1min);
  }
  // Who waits may be told to stop.
  int asked = 0;
  const auto is_stopped = [&] { return ++asked > 1; };
  CHECK(contains(message_of<WatchStopped>([&] {
                   const Ledger ledger(config, {{1h, 1h, {}, is_stopped}});
                 }),
                 ": interrupted while it waited for the run on far, process 7"));
  CHECK(asked == 2);
}

TEST_CASE("the end of a run that was asked to stop is waited for, here and elsewhere") {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  auto first = std::make_unique<Ledger>(config);
  first->begin(manifest, false);
  std::string told;
  const auto end_first = [&](const std::string& line) {
    told = line;
    first.reset();
  };
  // While nobody has asked it, it isn't waited for.
  CHECK(contains(message_of<ConfigError>([&] {
                   const Ledger second(config, {{1h, 1h, end_first}});
                 }),
                 "belongs to a run on " + this_process().host));
  CHECK(told.empty());
  REQUIRE(::write(first->stop_descriptor(), stop_note.data(), stop_note.size()) > 0);
  std::string expected = (folder / "out").string() + ": waiting up to 60 s for the end of the run on " +
                         this_process().name() + ", which was asked to stop";
  SUBCASE("it ends, and the next start has the folder") {
    Ledger second(config, {{1h, 1h, end_first}});
    CHECK(second.begin(manifest, false).todo.size() == 1);
  }
  SUBCASE("it ends, and moves aside") {
    CHECK(Ledger::move_aside(config, {{1h, 1h, end_first}}) == (folder / "out/earlier-1").string());
  }
  SUBCASE("elsewhere it beats until it ends") {
    const fs::path file = folder / "out/run.sqlite";
    tamper(file, "UPDATE owner SET host = 'far', beats = 7, beat_at = " + std::to_string(unix_now()));
    int looks = 0;
    // As long as it beats it isn't dead, and once it has given the ledger back it isn't watched.
    const auto is_stopped = [&] {
      tamper(file, ++looks < 3 ? "UPDATE owner SET beats = beats + 1" : "DELETE FROM owner");
      return false;
    };
    const auto tell = [&told](const std::string& line) { told = line; };
    { const Ledger second(config, {{1h, 1h, tell, is_stopped}}); }
    CHECK(looks == 3);
    expected = told;
    CHECK(contains(told, "which can't be asked from here"));
  }
  SUBCASE("it doesn't end, and has the folder") {
    const auto tell = [&told](const std::string& line) { told = line; };
    CHECK(contains(message_of<ConfigError>([&] {
                     const Ledger second(config, {{1h, 1h, tell, {}, 1ms}});
                   }),
                   "belongs to a run on " + this_process().host));
    expected.replace(expected.find("60 s"), 4, "1 s");
  }
  CHECK(told == expected);
}

TEST_CASE("who was replaced writes no more") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  tamper(ledger.file(), "UPDATE owner SET token = 'x', host = 'far', pid = 7");
  SlideResult slide = result_of(manifest[0].path, 1);
  const std::string expected = ledger.file().string() + ": was taken over by a run on far, process 7";
  CHECK(message_of<OutputError>([&] { ledger.ended(0, slide); }) == expected);
  CHECK(message_of<OutputError>([&] { ledger.beat(); }) == expected);
  CHECK(slides_in(ledger).empty());
}

TEST_CASE("a folder that is moved, replaced or deleted while it is used") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  ledger.beat();
  SUBCASE("moved") { fs::rename(folder / "out", folder / "elsewhere"); }
  SUBCASE("deleted") { fs::remove_all(folder / "out"); }
  SUBCASE("replaced") {
    fs::rename(folder / "out", folder / "elsewhere");
    fs::create_directory(folder / "out");
    const Ledger other(config);
  }
  CHECK_FALSE(ledger.is_lost());
  SlideResult slide = result_of(manifest[0].path, 1);
  CHECK(contains(message_of<OutputError>([&] { ledger.ended(0, slide); }),
                 "run.sqlite: was moved, replaced or deleted while it was in use"));
  CHECK(ledger.is_lost());
}

TEST_CASE("a process that stands still inside a transaction is named at once") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.output.journal = JournalMode::wal;
  const Ledger ledger(config);
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(ledger.file().c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(contains(message_of<ConfigError>([&] { const Ledger second(config); }),
                 "belongs to a run on " + this_process().host));
  CHECK(contains(message_of<ConfigError>([&] { Ledger::move_aside(config, {}); }), "belongs to a run on"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  sqlite3_close(database);
}
