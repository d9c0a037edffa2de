// What a start reads and writes of its ledger, and how it is stopped.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ledger/ledger.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// Every slide fails, with such a cause.
void fail_all(const Config& config, const std::vector<ManifestEntry>& manifest, const std::string& cause) {
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    ledger.started(i);
    SlideResult slide = failure_of(manifest[i].path, {"decode", 7, cause});
    ledger.ended(i, slide);
  }
}

std::vector<std::string> paths_in(const Ledger& ledger) {
  std::vector<std::string> paths;
  for (const SlideResult& slide : slides_in(ledger)) paths.push_back(slide.path);
  return paths;
}

}  // namespace

TEST_CASE("a start doesn't write rows that stay as they are") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.output.journal = JournalMode::wal;
  const auto manifest = make_files(folder, 8);
  constexpr std::size_t long_cause = std::size_t{1} << 18;
  fail_all(config, manifest, std::string(long_cause, 'x'));
  Ledger ledger(config);
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.failed == manifest.size());
  CHECK(start.damaged.empty());
  CHECK(fs::file_size(folder / "out/run.sqlite-wal") < manifest.size() * long_cause / 2);
}

TEST_CASE("places follow the list where it is another one") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto all = make_files(folder, 4);
  fail_all(config, all, "bad");
  const auto start_with = [&](const std::vector<ManifestEntry>& manifest, std::size_t left_out, std::size_t of_others) {
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.todo.empty());
    CHECK_FALSE(start.list_damaged);
    CHECK(start.left_out == left_out);
    CHECK(start.of_others == of_others);
    return paths_in(ledger);
  };
  using Paths = std::vector<std::string>;
  CHECK(start_with({all[3], all[1]}, 2, 0) == Paths{all[3].path, all[1].path});
  CHECK(start_with(all, 0, 0) == Paths{all[0].path, all[1].path, all[2].path, all[3].path});
  std::vector<ManifestEntry> shard = all;
  shard[1].mine = false;
  CHECK(start_with(shard, 0, 1) == Paths{all[0].path, all[2].path, all[3].path});
  CHECK(start_with({all[1], all[0], all[2]}, 1, 0) == Paths{all[1].path, all[0].path, all[2].path});
  CHECK(start_with({}, 4, 0).empty());
  CHECK(start_with(all, 0, 0).size() == 4);
}

TEST_CASE("a start is stopped between slides, and changes nothing") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 4);
  fail_all(config, manifest, "bad");
  const std::vector<ManifestEntry> others = {manifest[2], manifest[0]};
  // While files are looked at, and while rows are read.
  for (const std::size_t last : {std::size_t{1}, others.size() + 2}) {
    CAPTURE(last);
    std::size_t asked = 0;
    Ledger::Options options;
    options.watch.is_stopped = [&] { return ++asked == last; };
    Ledger ledger(config, options);
    CHECK(message_of<WatchStopped>([&] { ledger.begin(others, false); }) ==
          (folder / "out").string() + ": interrupted while the ledger was read");
    CHECK(asked == last);
    CHECK(paths_in(ledger).size() == 4);
    CHECK(ledger.begin(manifest, false).failed == 4);
  }
}

TEST_CASE("one line says that a ledger is read when that takes long, or its file is large") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  fail_all(config, manifest, "bad");
  const auto lines_of = [&](std::chrono::milliseconds told_after, std::uint64_t told_bytes) {
    std::vector<std::string> lines;
    Ledger::Options options;
    options.watch.on_watch = [&](const std::string& line) { lines.push_back(line); };
    options.told_after = told_after;
    options.told_bytes = told_bytes;
    Ledger(config, options).begin(manifest, false);
    return lines;
  };
  using Lines = std::vector<std::string>;
  constexpr auto never = std::chrono::hours(1);
  constexpr std::uint64_t no_file = std::uint64_t{1} << 60;
  CHECK(lines_of(never, no_file).empty());
  const std::string begin = (folder / "out").string() + ": reading the ledger";
  CHECK(lines_of(std::chrono::milliseconds(0), no_file) == Lines{begin + " of 3 slides"});
  CHECK(lines_of(std::chrono::milliseconds(0), 1) == Lines{begin + ", of 0 MiB"});
}
