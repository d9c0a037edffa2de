#include "ledger/owner.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ledger/ledger.hpp"
#include "ledger/status.hpp"
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

TEST_CASE("another machine's owner lives while it beats (long)") {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto elsewhere = [&](std::int64_t seconds_ago) {
    tamper(folder / "out/run.sqlite", "INSERT OR REPLACE INTO owner VALUES(1, 'x', 'far', 'y', 'z', 7, 8, 9, 10, " +
                                          std::to_string(unix_now() - seconds_ago) + ")");
  };
  { const Ledger ledger(config); }
  elsewhere(5);
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config, {1h, {}}); }), "far, process 7"));
  CHECK_FALSE(read_status(folder / "out").owner_is_alive);
  std::string told;
  for (const std::int64_t ago : {3600, -3600}) {  // its clock may be ahead of ours
    elsewhere(ago);
    const Ledger ledger(config, {600ms, [&](const std::string& line) { told = line; }});
    CHECK(contains(told, "far, process 7 can't be asked from here"));
  }
  elsewhere(3600);
  // It beats behind the first look, whenever the watch begins.
  std::thread beat;
  const auto begin_to_beat = [&](const std::string&) {
    beat = std::thread([&] {
      std::this_thread::sleep_for(700ms);
      // A look locks the ledger for a moment.
      while (message_of<std::runtime_error>(
                 [&] { tamper(folder / "out/run.sqlite", "UPDATE owner SET beats = beats + 1"); }) != "") {
        std::this_thread::sleep_for(10ms);
      }
    });
  };
  CHECK(contains(message_of<ConfigError>([&] {
                   const Ledger ledger(config, {60s, begin_to_beat});
                 }),
                 "far, process 7"));
  REQUIRE(beat.joinable());
  beat.join();
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
