// Ledgers of earlier versions: read by this program, and gone on with by theirs alone.
#include "ledger/versions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <slidestream/pipeline.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/merge.hpp"
#include "ledger/preview.hpp"
#include "ledger/schema.hpp"
#include "ledger/status.hpp"
#include "ledger_runs.hpp"
#include "report/run_reader.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

namespace {

fs::path kept(std::int64_t version) {
  return source_root() / "tests/ledger/data" / ("version-" + std::to_string(version));
}

/// Two shards of a run by a program of that version: part-1 with a done slide and a bad one, part-2 with two done ones
/// and a file that is no slide. Returns their folders.
std::vector<std::string> parts_of_version(const TemporaryFolder& folder, std::int64_t version) {
  std::vector<std::string> parts;
  for (const char* part : {"part-1", "part-2"}) {
    parts.push_back((folder / ("v" + std::to_string(version)) / part).string());
    fs::create_directories(parts.back());
    fs::copy_file(kept(version) / (std::string(part) + ".sqlite"), fs::path(parts.back()) / ledger_name);
  }
  return parts;
}

Config config_of(const std::string& folder) {
  Config config = report::RunReader(folder).config();
  config.output.dir = folder;
  return config;
}

/// The names of a table's columns, in order.
std::vector<std::string> columns_of(Database& database, std::string_view table) {
  std::vector<std::string> names;
  sqlite3_stmt* statement = nullptr;
  const std::string sql = "SELECT * FROM " + std::string(table);
  REQUIRE(sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  for (int i = 0; i < sqlite3_column_count(statement); ++i) names.emplace_back(sqlite3_column_name(statement, i));
  sqlite3_finalize(statement);
  return names;
}

/// Makes a ledger of this program one of an earlier version: its slides lose the columns that are newer.
void make_earlier(const fs::path& file, std::int64_t version) {
  const auto slides_of = [](std::int64_t number) {
    const LedgerVersion& made = ledger_versions()[static_cast<std::size_t>(number - 1)];
    return std::ranges::find(made.tables, "slides", &LedgerTable::name)->create;
  };
  const std::string number = std::to_string(version);
  std::string columns;
  {
    tamper(file, "CREATE TABLE newer AS SELECT * FROM slides; DROP TABLE slides; " + std::string(slides_of(version)));
    Database database(file, DatabaseAccess::read_write);
    for (const std::string& name : columns_of(database, "slides")) columns += (columns.empty() ? "" : ", ") + name;
  }
  tamper_settings(file, "INSERT INTO slides SELECT " + columns + " FROM newer; DROP TABLE newer; " +
                            std::string(ledger_versions()[static_cast<std::size_t>(version - 1)].indices) +
                            "; PRAGMA user_version = " + number + "; UPDATE settings SET value = '" + number +
                            "' WHERE name = 'the ledger''s version'");
}

/// A table without its last column, the names of maps, which earlier versions didn't write.
std::string without_maps(const std::string& table) {
  std::string kept;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) kept += line.substr(0, line.rfind(',')) + "\r\n";
  CHECK(table.substr(0, table.find('\n')).ends_with(",map\r"));
  CHECK(contains(table, ",s3.npy\r\n"));
  return kept;
}

}  // namespace

TEST_CASE("versions follow each other, each with a kept ledger, and all know the owner") {
  const auto versions = ledger_versions();
  REQUIRE(versions.back().number == current_ledger_version);
  std::set<std::string_view> owners;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    CHECK(versions[i].number == static_cast<std::int64_t>(i + 1));
    for (const LedgerTable& table : versions[i].tables) {
      CHECK(table.create.starts_with("CREATE TABLE " + std::string(table.name) + "("));
      if (table.name == "owner") owners.insert(table.create);
    }
    if (versions[i].number < current_ledger_version) CHECK(fs::exists(kept(versions[i].number)));
  }
  CHECK(owners.size() == 1);
}

TEST_CASE("every step shows the columns that the current version has") {
  const TemporaryFolder folder;
  { const Ledger made(ledger_config(folder / "now")); }
  const auto now = open_to_read(folder / "now" / ledger_name);
  for (std::int64_t version = 1; version < current_ledger_version; ++version) {
    CAPTURE(version);
    const auto before = open_to_read(fs::path(parts_of_version(folder, version)[0]) / ledger_name);
    for (const LedgerTable& table : ledger_versions().back().tables) {
      CHECK_MESSAGE(columns_of(*before, table.name) == columns_of(*now, table.name), table.name);
    }
  }
}

TEST_CASE("an earlier version's ledger is read: status, report, comparison") {
  std::int64_t version = 0;
  double mean = 0.0;
  SUBCASE("version 1") {
    version = 1;
    mean = 34.86824998208408;
  }
  SUBCASE("version 2") {
    version = 2;
    mean = 34.86824463738594;
  }
  SUBCASE("version 3") {
    version = 3;
    mean = 34.86824463738594;
  }
  SUBCASE("version 4") {
    version = 4;
    mean = 34.868244678364135;
  }
  const TemporaryFolder folder;
  const auto parts = parts_of_version(folder, version);
  const std::string before = text_of(fs::path(parts[0]) / ledger_name);

  const LedgerStatus status = read_status(parts[0]);
  CHECK(status.slides == 2);
  CHECK(status.other_shards == 3);
  CHECK(status.done == 1);
  std::vector<SlideFailure> failures;
  StatusReader(parts[0]).each_failure(
      [&failures](const LedgerStatus::Failure& failure) { failures.push_back(failure.why); });
  REQUIRE(failures.size() == 1);
  const SlideFailure& why = failures[0];
  CHECK(why.text() == "decode: tile 1 (column 1, row 0) is bad: Corrupt JPEG data: premature end of data segment");
  // What version 1 has is a text, and isn't taken apart.
  CHECK(why.stage == (version == 1 ? "" : "decode"));
  CHECK(why.tile == (version == 1 ? std::nullopt : std::optional<std::int64_t>(1)));

  report::RunReader reader(parts[0]);
  std::size_t slides = 0;
  reader.for_each([&](const report::LedgerSlide& slide) {
    ++slides;
    if (!slide.result.done) return;
    CHECK(slide.result.path == "/tmp/slides/s2.svs");
    CHECK(slide.result.sums.windows == 30);
    CHECK(slide.result.sums.mean() == mean);
    CHECK(slide.result.artifacts.empty());
    WindowMap map = slide.result.map;
    CHECK(reader.read_map(slide.id, map));
    CHECK(map.values.size() == 60);
  });
  CHECK(slides == 2);

  const Comparison same = compare_runs(parts[0], parts[0]);
  REQUIRE(same.slides.size() == 1);
  REQUIRE(same.slides[0].difference.has_value());
  CHECK(same.slides[0].difference->largest() == 0);
  CHECK(text_of(fs::path(parts[0]) / ledger_name) == before);
}

TEST_CASE("ledgers of one earlier version are merged, and say what that version's own merge said") {
  std::int64_t version = 0;
  SUBCASE("version 1") { version = 1; }
  SUBCASE("version 2") { version = 2; }
  SUBCASE("version 3") { version = 3; }
  SUBCASE("version 4") { version = 4; }
  const TemporaryFolder folder;
  const auto parts = parts_of_version(folder, version);
  const std::string out = (folder / "out").string();
  for (int again = 0; again < 2; ++again) {
    const MergeResult merged = merge_ledgers(parts, out);
    CHECK(merged.corpus.done == 3);
    CHECK(merged.corpus.failed == 2);
    CHECK(merged.missing.empty());
    CHECK(without_maps(text_of(folder / "out/slides.csv")) == text_of(kept(version) / "slides.csv"));
  }
  CHECK(fs::exists(folder / "out/maps/s3.npy"));
  // Joined, they are still that version's.
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config_of(out)); }),
                 "the ledger's version is 5 here and was " + std::to_string(version)));
  CHECK(merge_ledgers({out}, (folder / "again").string()).corpus.done == 3);
}

TEST_CASE("versions aren't mixed, nor gone on with by another") {
  const TemporaryFolder folder;
  const auto parts = parts_of_version(folder, 1);
  const Config config = config_of(parts[0]);
  const fs::path file = fs::path(parts[0]) / ledger_name;
  const std::string before = text_of(file);
  const std::string refusal = message_of<ConfigError>([&] { const Ledger ledger(config); });
  CHECK(contains(refusal, parts[0] + ": has a ledger of version 1, which slidestream 0.1.0 made"));
  CHECK(contains(refusal, "which goes on with version 5"));
  CHECK(contains(refusal, "--fresh"));
  CHECK_FALSE(contains(refusal, "\n"));
  CHECK(text_of(file) == before);
  CHECK_FALSE(fs::exists(file.string() + "-wal"));
  CHECK(contains(preview_start(config, {}, {})->refusal, "the ledger's version is 5 here and was 1"));

  Config own = config;
  own.output.dir = (folder / "own").string();
  fs::create_directory(own.output.dir);
  {
    Ledger ledger(own);
    ledger.begin(make_files(folder, 1), false);
  }
  for (const auto& mixed : {std::vector{parts[0], own.output.dir}, std::vector{own.output.dir, parts[0]}}) {
    const std::string message = message_of<ConfigError>([&] { merge_ledgers(mixed, (folder / "m").string()); });
    CHECK_MESSAGE(contains(message, "the ledger's version is "), message);
    CHECK(contains(message, mixed[1]));
    CHECK(contains(message, "join the folders of each version by themselves"));
    CHECK_FALSE(fs::exists(folder / "m" / ledger_name));
  }

  CHECK(Ledger::move_aside(config, {}) == (fs::path(parts[0]) / "earlier-1").string());
  { const Ledger ledger(config); }
  CHECK(read_status(fs::path(parts[0]) / "earlier-1").done == 1);
}

TEST_CASE("a run of another program version with the same tables is read and merged, and never resumed") {
  const TemporaryFolder folder;
  std::vector<std::string> parts;
  for (const char* part : {"a", "b"}) {
    const Config config = ledger_config(folder / part);
    parts.push_back(config.output.dir);
    const std::string slide = folder.write(std::string(part) + ".svs", std::string(part));
    Ledger ledger(config);
    ledger.begin({{slide, slide, true}}, false);
    ledger.started(0);
    SlideResult result = result_of(slide, 1);
    ledger.ended(0, result);
  }
  const auto made_by = [&](const std::string& part, const std::string& version) {
    tamper_settings(fs::path(part) / ledger_name,
                    "UPDATE settings SET value = '" + version + "' WHERE name LIKE 'the program%version'");
  };
  made_by(parts[0], "0.2.0");
  const Config config = config_of(parts[0]);
  const std::string said = std::string(program_version_key) + " is " + version() + " here and was 0.2.0";
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }), said));
  CHECK(preview_start(config, {}, {})->refusal == said);
  CHECK(read_status(parts[0]).done == 1);

  CHECK(contains(message_of<ConfigError>([&] { merge_ledgers(parts, (folder / "mixed").string()); }),
                 "join the folders of each version by themselves"));
  made_by(parts[1], "0.2.0");
  CHECK(merge_ledgers(parts, (folder / "out").string()).corpus.done == 2);

  CHECK(Ledger::move_aside(config, {}) == (fs::path(parts[0]) / "earlier-1").string());
  { const Ledger ledger(config); }
}

TEST_CASE("damage of an earlier version's ledger is found") {
  std::int64_t version = 1;
  SUBCASE("version 2") { version = 2; }
  SUBCASE("version 1") {}
  const TemporaryFolder folder;
  const auto parts = parts_of_version(folder, version);
  const fs::path file = fs::path(parts[0]) / ledger_name;
  const auto merged = [&] { return message_of<OutputError>([&] { merge_ledgers(parts, (folder / "out").string()); }); };
  SUBCASE("a value") {
    tamper(file, "UPDATE slides SET clipped = clipped + 1 WHERE state = 'done'");
    CHECK(contains(merged(), "damaged: the row of /tmp/slides/s2.svs isn't what was written"));
  }
  SUBCASE("a digest") {
    tamper(file, "UPDATE slides SET digest = digest + 1 WHERE state = 'failed'");
    CHECK(contains(merged(), "damaged: the row of /tmp/slides/bad.svs isn't what was written"));
  }
  SUBCASE("a map") {
    tamper(file, "UPDATE maps SET bytes = zeroblob(length(bytes))");
    CHECK(contains(merged(), "damaged: the map of /tmp/slides/s2.svs isn't what was written"));
  }
  SUBCASE("a table of another version") {
    tamper(file, "PRAGMA user_version = " + std::to_string(version + 1));
    CHECK(contains(merged(), "damaged: table slides"));
  }
  SUBCASE("a table with a column more") {
    tamper(file, "ALTER TABLE slides ADD COLUMN more");
    CHECK(contains(merged(), "damaged: table slides"));
  }
  SUBCASE("a version that isn't there yet") {
    tamper(file, "PRAGMA user_version = 6");
    CHECK(contains(merged(), "has schema version 6, and this program knows up to 5; a newer slidestream made it"));
  }
  SUBCASE("views of its own under the names of those that show it") {
    tamper(file, "CREATE VIEW slides_2 AS SELECT 1; CREATE VIEW settings_1 AS SELECT 2; CREATE VIEW sums AS SELECT 3");
    CHECK(merged().empty());
    CHECK(without_maps(text_of(folder / "out/slides.csv")) == text_of(kept(version) / "slides.csv"));
  }
}

TEST_CASE("files whose digests are of two kinds aren't called the same, nor others") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  const auto run = [&](const std::string& name, std::uint64_t bytes, std::uint64_t digest,
                       std::int64_t version = current_ledger_version) {
    const Config config = ledger_config(folder / name);
    SlideResult slide = attached_result_of(manifest[0].path, 1);
    slide.artifacts[0].bytes = bytes;
    slide.artifacts[0].digest = digest;
    {
      Ledger ledger(config);
      ledger.begin(manifest, false);
      ledger.started(0);
      ledger.ended(0, slide);
    }
    if (version != current_ledger_version) make_earlier(folder / name / ledger_name, version);
    return (folder / name).string();
  };
  constexpr std::uint64_t small = std::uint64_t{1} << 20;
  const auto differences = [](const std::string& a, const std::string& b) {
    const Comparison comparison = compare_runs(a, b);
    REQUIRE(comparison.slides.size() == 1);
    CHECK(comparison.within(0) == comparison.slides[0].artifacts.empty());
    return comparison.slides[0].artifacts;
  };
  const std::string now = run("now", small + 1, 5);
  const std::string before = run("before", small + 1, 6, 3);
  const std::vector<std::string> unknown = {"sobel edges: digests of ledgers of version 3 and 5 can't be compared"};
  CHECK(differences(before, now) == unknown);
  CHECK(differences(now, before).size() == 1);
  CHECK(differences(before, run("longer", small + 2, 5))[0] != unknown[0]);
  CHECK(differences(before, run("again", small + 1, 6, 3)).empty());
  CHECK(differences(before, run("other", small + 1, 7, 3))[0] ==
        "sobel edges: 0000000000000006, then 0000000000000007");
  // Those of files of one block are the same in both.
  const std::string small_before = run("small", small, 8, 3);
  CHECK(differences(small_before, run("small now", small, 8)).empty());
  CHECK(differences(small_before, run("small other", small, 9))[0] ==
        "sobel edges: 0000000000000008, then 0000000000000009");

  CHECK(contains(message_of<ConfigError>([&] {
                   merge_ledgers({before, now}, (folder / "m").string());
                 }),
                 "the ledger's version is "));
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(ledger_config(before)); }),
                 "has a ledger of version 3"));
  // Joined, they are still that version's.
  merge_ledgers({before}, (folder / "joined").string());
  CHECK(differences((folder / "joined").string(), now) == unknown);
  CHECK(differences((folder / "joined").string(), before).empty());
}
