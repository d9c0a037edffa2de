// Starts of slides, which are noted beside the ledger and entered by its next commit.

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "ledger/database.hpp"
#include "ledger/ledger_runs.hpp"
#include "ledger/start_notes.hpp"
#include "ledger/status.hpp"
#include "support/file_limit.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

struct Row {
  std::string state;
  std::int64_t attempts = 0;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(const fs::path& file) {
  Database database(file, DatabaseAccess::read_write);
  Statement select(database, "SELECT state, attempts FROM slides ORDER BY position");
  std::vector<Row> rows;
  while (select.step()) rows.push_back({select.text(0), select.integer(1)});
  return rows;
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What a process leaves that dies when it has done `work`.
template <class Work>
void die(const Config& config, const std::vector<ManifestEntry>& manifest, const Work& work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    work(ledger);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(status == 0);
}

const Row pending = {"pending", 0}, running = {"running", 1}, done = {"done", 1};

}  // namespace

TEST_CASE("a start is entered by the next commit, and slides are kept together") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path notes = folder / "out/run.sqlite-started";
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    for (std::size_t i = 0; i < 3; ++i) ledger.started(i);
    CHECK(rows_of(ledger.file()) == std::vector<Row>{pending, pending, pending});
    ledger.beat();
    CHECK(rows_of(ledger.file()) == std::vector<Row>{running, running, running});
    ledger.beat();
    std::vector<SlideResult> results = {result_of(manifest[2].path, 2), result_of(manifest[0].path, 0)};
    const std::vector<Ledger::Ended> ended = {{2, &results[0]}, {0, &results[1]}};
    ledger.keep(ended);
    CHECK(rows_of(ledger.file()) == std::vector<Row>{done, running, done});
    const auto kept = slides_in(ledger);
    REQUIRE(kept.size() == 2);
    CHECK(same_result(kept[0], results[1]));
    CHECK(same_result(kept[1], results[0]));
    CHECK(fs::exists(notes));
  }
  CHECK_FALSE(fs::exists(notes));
  CHECK(rows_of(folder / "out/run.sqlite") == std::vector<Row>{done, {"pending", 1}, done});
}

TEST_CASE("what a dead process noted is entered once") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  die(config, manifest, [&](Ledger& ledger) {
    ledger.started(0);
    SlideResult slide = result_of(manifest[0].path, 0);
    ledger.ended(0, slide);
    ledger.started(1);
    ledger.beat();
    ledger.started(2);
  });
  CHECK(rows_of(file) == std::vector<Row>{done, running, pending});
  {
    StatusReader reader(folder / "out");
    std::vector<std::string> paths;
    reader.each_running([&paths](const std::string& path) { paths.push_back(path); });
    CHECK(paths == std::vector<std::string>{manifest[1].path, manifest[2].path});
    CHECK(reader.status().running == 2);
    CHECK(reader.status().pending == 0);
  }
  const std::string left = read_text(file.string() + "-started");
  die(config, manifest, [](Ledger&) {});
  CHECK(rows_of(file) == std::vector<Row>{done, {"pending", 1}, {"pending", 1}});
  // The file that was there again, as if it hadn't been removed; and with a line that was cut short.
  for (const char* more : {"", "3"}) {
    std::ofstream(file.string() + "-started") << left << more;
    die(config, manifest, [](Ledger&) {});
    CHECK(rows_of(file) == std::vector<Row>{done, {"pending", 1}, {"pending", 1}});
  }
}

TEST_CASE("a slide that fails behind an attempt that died keeps what that may have named") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  die(config, manifest, [](Ledger& ledger) {
    ledger.image_names();
    for (const std::size_t slide : {0, 1}) {
      ledger.started(slide);
      ledger.files_begun(slide);
    }
  });
  // The first one's image had got its name; the other's hadn't.
  fs::create_directories(folder / "out/images");
  folder.write("out/images/slide-0.sobel.ome.tif", std::string("made"));
  folder.write("out/images/slide-1.sobel.partial.ome.tif", std::string("begun"));
  folder.write("out/images/slide-2.sobel.ome.tif", std::string("another's"));
  Ledger ledger(config);
  const auto left = [&] {
    Database database(ledger.file(), DatabaseAccess::read_write);
    return slides_with_files(database);
  };
  const auto attempt = [&](bool fails) {
    ledger.begin(manifest, true);
    for (std::size_t i = 0; i < manifest.size(); ++i) {
      ledger.started(i);
      ledger.files_begun(i);
      SlideResult slide = fails ? failure_of(manifest[i].path, {"read", {}, "why"}) : result_of(manifest[i].path, i);
      ledger.ended(i, slide);
    }
    return left();
  };
  using Ids = std::unordered_set<std::int64_t>;
  CHECK(attempt(true) == Ids{1});
  CHECK(attempt(true) == Ids{1});
  CHECK(attempt(false).empty());
}

TEST_CASE("a process that ended and couldn't write that down has not died") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  const ::pid_t child = ::fork();
  if (child == 0) {
    auto ledger = std::make_unique<Ledger>(config);
    ledger->begin(manifest, false);
    ledger->started(0);
    ledger->beat();
    const FileLimit full(0);
    ledger.reset();
    ::_exit(0);
  }
  int exited = 0;
  ::waitpid(child, &exited, 0);
  REQUIRE(exited == 0);
  CHECK_FALSE(fs::exists(folder / "out/run.sqlite-started"));
  CHECK(rows_of(folder / "out/run.sqlite") == std::vector<Row>{running, pending});
  const LedgerStatus status = read_status(folder / "out");
  CHECK_FALSE(status.owner);
  CHECK(status.running == 0);
  CHECK(status.running_rows.empty());
  CHECK(status.pending == 2);
  Ledger ledger(config);
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.todo.size() == 2);
  CHECK(start.deaths.empty());
}

TEST_CASE("a process that dies after it was asked to stop has died of no slide") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const auto deaths = [&](const auto& stop) {
    die(config, manifest, [&](Ledger& ledger) {
      ledger.started(0);
      ledger.beat();
      ledger.started(1);
      stop(ledger);
      ledger.started(2);
    });
    Ledger ledger(config);
    return ledger.begin(manifest, false).deaths.size();
  };
  CHECK(deaths([](Ledger& ledger) { ledger.note_stop(); }) == 0);
  CHECK(rows_of(folder / "out/run.sqlite") == std::vector<Row>(3, {"pending", 1}));
  // As a signal handler does, behind a line that was cut short.
  CHECK(deaths([](Ledger& ledger) {
          REQUIRE(::write(ledger.stop_descriptor(), "12", 2) == 2);
          REQUIRE(::write(ledger.stop_descriptor(), stop_note.data(), stop_note.size()) ==
                  static_cast<::ssize_t>(stop_note.size()));
        }) == 0);
  CHECK(deaths([](Ledger&) {}) == 3);
}

TEST_CASE("a process that ends without memory has died of no slide, and is counted for those that it worked on") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  using Counts = std::map<std::size_t, std::int64_t>;
  const auto shortages = [&] {
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.deaths.empty());
    CHECK(start.todo.size() == 3);
    return start.shortages;
  };
  // Before any slide.
  die(config, manifest, [](Ledger& ledger) { ledger.note_shortage(); });
  CHECK(shortages().empty());
  die(config, manifest, [](Ledger& ledger) {
    ledger.started(0);
    ledger.beat();
    ledger.started(1);
    ledger.note_shortage();
  });
  CHECK(shortages() == Counts{{0, 1}, {1, 1}});
  CHECK(shortages() == Counts{{0, 1}, {1, 1}});
  {
    // One that ends with its last words.
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(1);
    ledger.note_shortage();
  }
  CHECK_FALSE(std::filesystem::exists(folder / "out/run.sqlite-started"));
  CHECK(shortages() == Counts{{0, 1}, {1, 2}});
  die(config, manifest, [](Ledger& ledger) {
    ledger.started(1);
    ledger.note_stop();
    ledger.note_shortage();
  });
  CHECK(shortages() == Counts{{0, 1}, {1, 2}});
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(1);
    SlideResult slide = result_of(manifest[1].path, 1);
    slide.fail({"source", {}, cause_of_shortages});
    ledger.ended(1, slide);
  }
  Ledger ledger(config);
  CHECK(ledger.begin(manifest, true).shortages == Counts{{0, 1}});
}

TEST_CASE("slides that failed by a cause that doesn't hold any more are tried again") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (const std::size_t i : {0, 1}) {
    SlideResult slide = failure_of(manifest[i].path, {"source", {}, i == 0 ? "is there; replace it" : "no slide"});
    ledger.started(i);
    ledger.ended(i, slide);
  }
  CHECK(ledger.begin(manifest, false).todo.empty());
  const LedgerStart start = ledger.begin(manifest, false, "; replace it");
  CHECK(start.todo == std::vector<std::size_t>{0});
  CHECK(start.failed == 1);
}

TEST_CASE("a ledger whose start never came to its slides holds no run") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  {
    const Ledger ledger(config);
    CHECK(read_status(folder / "out").slides == 0);
  }
  CHECK(contains(message_of<OutputError>([&] { read_status(folder / "out"); }), "run.sqlite: holds no run"));
  {
    Ledger ledger(config);
    ledger.begin(make_files(folder, 1), false);
  }
  CHECK(read_status(folder / "out").pending == 1);
}

TEST_CASE("a file of notes that isn't one is replaced, or refused in one line") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  const fs::path notes = folder / "out/run.sqlite-started";
  const fs::path other = folder / "other";
  die(config, manifest, [](Ledger&) {});
  const auto open = [&] {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(0);
    return read_text(notes);
  };
  std::ofstream(notes) << "x\nno number\n99\n-1\n12345678901234567890123\n";
  CHECK(contains(open(), "\n1\n"));
  std::ofstream(other) << "kept";
  fs::create_symlink(other, notes);
  CHECK(contains(open(), "\n1\n"));
  CHECK(read_text(other) == "kept");
  REQUIRE(::mkfifo(notes.c_str(), 0600) == 0);
  CHECK(contains(open(), "\n1\n"));
  fs::create_directory(notes);
  CHECK(message_of<OutputError>([&] { open(); }) ==
        notes.string() + ": is a folder, where a run keeps a file; remove it, or move it away");
}

TEST_CASE("files of a slide that was begun are known until it has a result") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  const auto begun = [&] {
    Database database(file, DatabaseAccess::read_write);
    return slides_with_files(database);
  };
  using Slides = std::unordered_set<std::int64_t>;
  die(config, manifest, [](Ledger& ledger) {
    ledger.started(0);
    ledger.started(1);
    ledger.files_begun(1);
  });
  CHECK(begun() == Slides{2});
  // The next one dies before it comes to a slide.
  die(config, manifest, [](Ledger&) {});
  CHECK(begun() == Slides{2});
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    SlideResult result = result_of(manifest[1].path, 1);
    ledger.started(1);
    ledger.files_begun(1);
    ledger.ended(1, result);
  }
  CHECK(begun().empty());
  // The power may have taken the notes of a process.
  die(config, manifest, [](Ledger& ledger) { ledger.beat(); });
  fs::remove(file.string() + "-started");
  { const Ledger ledger(config); }
  CHECK(begun() == Slides{1, 3});
}
