// Journals and logs that others left beside a ledger.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/database.hpp"
#include "ledger/ledger.hpp"
#include "ledger/merge.hpp"
#include "ledger/private_copy.hpp"
#include "ledger/schema.hpp"
#include "ledger/status.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
constexpr std::uint32_t page_bytes = 4096;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

/// The begin of a journal that SQLite takes for one of a process that died.
std::string head_of(std::uint32_t pages) {
  std::string head(magic);
  for (const std::uint32_t number : {0U, 0x1234U, pages, 512U, page_bytes}) head += big_endian(number);
  head.resize(512, '\0');
  return head;
}

/// What SQLite writes at a journal's end to name the journal of several databases.
std::string end_of(const std::string& name) {
  std::uint32_t sum = 0;
  for (const char c : name) sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(c)));
  return big_endian(0x40000000 / page_bytes + 1) + name + big_endian(static_cast<std::uint32_t>(name.size())) +
         big_endian(sum) + std::string(magic);
}

void write(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

struct Scene {
  Scene() : config(ledger_config(folder / "out")) {
    config.output.journal = JournalMode::rollback;
    const auto manifest = make_files(folder, 1);
    Ledger ledger(config);
    ledger.begin(manifest, false);
    SlideResult slide = result_of(manifest[0].path, 3);
    ledger.ended(0, slide);
  }

  fs::path file() const { return folder / "out/run.sqlite"; }
  fs::path journal() const { return folder / "out/run.sqlite-journal"; }
  void leave(const std::string& end) const {
    write(journal(), head_of(static_cast<std::uint32_t>(fs::file_size(file()) / page_bytes)) + end);
  }

  TemporaryFolder folder;
  Config config;
};

}  // namespace

TEST_CASE("a journal that names another file isn't used, and that file stays") {
  const Scene scene;
  const fs::path victim = scene.folder / "victim";
  SUBCASE("a file") { write(victim, "kept"); }
  // Opening it would wait for its other end.
  SUBCASE("a pipe") { REQUIRE(::mkfifo(victim.c_str(), 0600) == 0); }
  scene.leave(end_of(victim.string()));
  const std::string before = text_of(scene.file());
  const std::string line = scene.journal().string() + ": names another file, which SQLite would delete";
  const auto told = [&](const auto& work) {
    const std::string message = message_of<UnreadableError>(work);
    CHECK_MESSAGE(message.starts_with(line), message);
    CHECK(fs::exists(victim));
    CHECK(fs::exists(scene.journal()));
    CHECK(text_of(scene.file()) == before);
    return message;
  };
  told([&] { read_status(scene.config.output.dir); });
  told([&] { const LedgerView view(scene.file(), ledger_bins); });
  CHECK(contains(told([&] { const Ledger ledger(scene.config); }), "; --fresh moves such a run aside"));
  // Here the line begins with the folder.
  CHECK(contains(
      message_of<OutputError>([&] { merge_ledgers({scene.config.output.dir}, (scene.folder / "m").string()); }), line));
  CHECK(fs::exists(victim));
  // Moving a run aside takes its journal along, unread.
  CHECK_FALSE(Ledger::move_aside(scene.config, {}).empty());
  CHECK(fs::exists(victim));
  CHECK(fs::exists(scene.folder / "out/earlier-1/run.sqlite-journal"));
}

TEST_CASE("any name at a journal's end is refused, whether its sum is right or not") {
  const Scene scene;
  std::string end = end_of("/nowhere");
  end[end.size() - 9] = static_cast<char>(end[end.size() - 9] ^ 1);
  scene.leave(end);
  const std::string message = message_of<UnreadableError>([&] { read_status(scene.config.output.dir); });
  CHECK_MESSAGE(contains(message, "-journal: names another file"), message);
}

TEST_CASE("a journal doesn't let the ledger grow far beyond what is there") {
  const Scene scene;
  write(scene.journal(), head_of(1000000) + std::string(600, '\1'));
  const auto size = fs::file_size(scene.file());
  const std::string message = message_of<UnreadableError>([&] { read_status(scene.config.output.dir); });
  CHECK_MESSAGE(contains(message, "run.sqlite-journal: gives the ledger 1000000 pages of 4096 bytes"), message);
  CHECK(fs::file_size(scene.file()) == size);
}

TEST_CASE("a sound journal of a process that died is rolled back") {
  const TemporaryFolder folder;
  const fs::path file = folder / "any.sqlite";
  const fs::path copy = folder / "copy.sqlite";
  Database database(file, DatabaseAccess::create);
  Statement(database, "PRAGMA journal_mode = DELETE").run();
  database.execute(
      "PRAGMA cache_size = 5; CREATE TABLE t(x); WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE "
      "i "
      "< 500) INSERT INTO t SELECT zeroblob(1000) FROM r");
  database.execute("BEGIN; UPDATE t SET x = zeroblob(3000)");
  fs::copy_file(file, copy);
  fs::copy_file(file.string() + "-journal", copy.string() + "-journal");
  database.execute("ROLLBACK");
  CHECK(fs::file_size(copy.string() + "-journal") > 100000);
  Database died(copy, DatabaseAccess::read_write);
  Statement select(died, "SELECT count(*), max(length(x)) FROM t");
  REQUIRE(select.step());
  CHECK(select.integer(0) == 500);
  CHECK(select.integer(1) == 1000);
  select.reset();
  CHECK_FALSE(fs::exists(copy.string() + "-journal"));
}

namespace {

/// What a folder has, by file.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) content[entry.path().filename().string()] = text_of(entry.path());
  }
  return content;
}

/// Does a slide, begins another, and dies. Of a rollback journal in the middle of a change.
void run_and_die(Config config, const std::vector<ManifestEntry>& manifest, JournalMode journal) {
  config.output.journal = journal;
  const ::pid_t child = ::fork();
  if (child == 0) {
    try {
      Ledger ledger(config);
      ledger.begin(manifest, false);
      SlideResult slide = result_of(manifest[0].path, 3);
      ledger.started(0);
      ledger.ended(0, slide);
      ledger.started(1);
      Database database(ledger.file(), DatabaseAccess::read_write);
      if (journal == JournalMode::rollback) {
        database.execute(
            "PRAGMA cache_size = 1; BEGIN; UPDATE slides SET state = 'failed'; CREATE TABLE t(x); WITH RECURSIVE r(i) "
            "AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 500) INSERT INTO t SELECT zeroblob(1000) FROM r");
      }
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("who reads what a dead process left changes nothing") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const Config config = ledger_config(out);
  const auto manifest = make_files(folder, 2);
  for (const JournalMode journal : {JournalMode::wal, JournalMode::rollback}) {
    CAPTURE(static_cast<int>(journal));
    fs::remove_all(out);
    fs::create_directories(out);
    run_and_die(config, manifest, journal);
    const auto before = content_of(out);
    REQUIRE(fs::file_size(out / (journal == JournalMode::wal ? "run.sqlite-wal" : "run.sqlite-journal")) > 0);
    for (int time = 0; time < 2; ++time) {
      const LedgerStatus status = read_status(out);
      CHECK(status.done == 1);
      CHECK(status.running == 1);
      CHECK(status.owner_is_alive == false);
      CHECK(content_of(out) == before);
    }
    // The next run goes on from there.
    Ledger ledger(config);
    CHECK(ledger.begin(manifest, false).done == 1);
  }
}

TEST_CASE("what is at rest, or open, isn't copied") {
  const TemporaryFolder folder;
  const fs::path file = folder / "any.sqlite";
  CHECK_FALSE(PrivateCopy::of_left(file));
  {
    Database database(file, DatabaseAccess::create);
    Statement(database, "PRAGMA journal_mode = WAL").run();
    database.execute("CREATE TABLE t(x)");
    REQUIRE(fs::file_size(file.string() + "-wal") > 0);
    // Of this process, which doesn't see its own locks.
    CHECK_FALSE(PrivateCopy::of_left(file));
    fs::copy_file(file, folder / "left.sqlite");
    fs::copy_file(file.string() + "-wal", folder / "left.sqlite-wal");
  }
  CHECK_FALSE(PrivateCopy::of_left(file));
  fs::path copied;
  {
    auto copy = PrivateCopy::of_left(folder / "left.sqlite");
    REQUIRE(copy);
    copied = copy->file();
    CHECK(text_of(copied.string() + "-wal") == text_of(folder / "left.sqlite-wal"));
    Database database(folder / "left.sqlite", std::move(copy));
    CHECK_FALSE(fs::exists(copied.parent_path()));
    Statement select(database, "SELECT count(*) FROM t");
    CHECK(select.step());
  }
  // Killed processes leave their folders, which the next copy removes: not those of others, and none that is new or
  // locked.
  const auto old = std::chrono::hours(1);
  const auto make = [&](const std::string& name, fs::perms rights) {
    const fs::path made = copied.parent_path().parent_path() / name;
    fs::create_directory(made);
    std::ofstream(made / "copied-ledger.sqlite") << "left";
    fs::permissions(made, rights);
    fs::last_write_time(made, fs::file_time_type::clock::now() - old);
    return made;
  };
  const std::string own = "slidestream-ledger-" + std::to_string(100000 + ::getpid() % 90000).substr(1);
  const fs::path left = make(own + "a", fs::perms::owner_all);
  const fs::path open_to_others = make(own + "b", fs::perms::all);
  const fs::path fresh = make(own + "c", fs::perms::owner_all);
  fs::last_write_time(fresh, fs::file_time_type::clock::now());
  const fs::path with_more = make(own + "e", fs::perms::owner_all);
  std::ofstream(with_more / "notes") << "mine";
  fs::last_write_time(with_more, fs::file_time_type::clock::now() - old);
  const fs::path ledger = make(own + "f", fs::perms::owner_all);
  fs::rename(ledger / "copied-ledger.sqlite", ledger / ledger_name);
  fs::last_write_time(ledger, fs::file_time_type::clock::now() - old);
  const fs::path other_name = make(own + "notes", fs::perms::owner_all);
  const fs::path linked = copied.parent_path().parent_path() / (own + "d");
  fs::create_directory_symlink(folder / "", linked);
  const auto copy = PrivateCopy::of_left(folder / "left.sqlite");
  REQUIRE(copy);
  fs::last_write_time(copy->file().parent_path(), fs::file_time_type::clock::now() - old);
  CHECK_FALSE(fs::exists(left));
  CHECK(PrivateCopy::of_left(folder / "left.sqlite"));
  CHECK(fs::exists(copy->file()));
  for (const fs::path& stays : {open_to_others, fresh, with_more, other_name}) {
    CHECK(fs::exists(stays / "copied-ledger.sqlite"));
    fs::remove_all(stays);
  }
  CHECK(fs::exists(ledger / ledger_name));
  fs::remove_all(ledger);
  CHECK(fs::exists(file));
  fs::remove(linked);
  // Too large.
  fs::resize_file(folder / "left.sqlite", largest_private_copy);
  CHECK_FALSE(PrivateCopy::of_left(folder / "left.sqlite"));
}
