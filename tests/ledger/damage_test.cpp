// What a ledger may have become, and what is made of it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>

#include "ledger/database.hpp"
#include "ledger/identity.hpp"
#include "ledger/ledger.hpp"
#include "ledger/merge.hpp"
#include "ledger/preview.hpp"
#include "ledger/schema.hpp"
#include "ledger/status.hpp"
#include "ledger_runs.hpp"
#include "report/run_reader.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

namespace {

/// A ledger of a run whose slides have all ended. \param result  of a slide, by its path and place
template <class Result>
void end_all(const Config& config, const std::vector<ManifestEntry>& manifest, const Result& result) {
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    SlideResult slide = result(manifest[i].path, i);
    ledger.started(i);
    ledger.ended(i, slide);
  }
}

/// The index of places leads to another row than the table has.
void lead_index_astray(const fs::path& file) {
  const auto index = [&](const std::string& where) {
    tamper(file,
           "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX slides_by_position ON "
           "slides(position)" +
               where + "' WHERE name = 'slides_by_position'");
  };
  index(" WHERE position > 9");
  tamper(file, "UPDATE slides SET position = 7 WHERE id = 2");
  index("");
}

}  // namespace

TEST_CASE("a ledger with an index or trigger of somebody else's is damaged") {
  for (const std::string made :
       {"INDEX evil ON slides(length(path))", "INDEX evil ON slides(path) WHERE length(path) > 3",
        "TRIGGER evil AFTER UPDATE ON slides BEGIN SELECT 1; END"}) {
    CAPTURE(made);
    const TemporaryFolder folder;
    const Config config = ledger_config(folder / "out");
    const fs::path file = folder / "out/run.sqlite";
    { Ledger(config).begin(make_files(folder, 1), false); }
    CHECK(message_of<UnreadableError>([&] { open_to_read(file); }).empty());
    tamper(file, "CREATE " + made);
    CHECK(message_of<UnreadableError>([&] { open_to_read(file); }) ==
          file.string() +
              ": damaged: an index or trigger that isn't this program's; the command that made it, with --fresh, moves "
              "it aside and starts anew");
    CHECK_THROWS_AS(Ledger{config}, OutputError);
  }
}

TEST_CASE("a ledger that isn't one, or a newer one, is refused") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const fs::path file = folder / "out/run.sqlite";
  std::ofstream(file)
      << "not a database, but longer than a database's header, which has 100 bytes, all the same: yes, it is";
  CHECK(contains(message_of<OutputError>([&] { const Ledger ledger(config); }), "run.sqlite: file is not a database"));
  fs::remove(file);
  tamper(file, "CREATE TABLE x(y)");
  CHECK(contains(message_of<OutputError>([&] { const Ledger ledger(config); }), "isn't a ledger of this program"));
  fs::remove(file);
  { const Ledger ledger(config); }
  tamper(file, "PRAGMA user_version = 99");
  CHECK(contains(message_of<OutputError>([&] { const Ledger ledger(config); }), "schema version 99"));
  CHECK(contains(message_of<OutputError>([&] { read_status(folder / "none"); }), "No such file or directory"));
}

TEST_CASE("damage is found, and named") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  SlideResult slide = result_of(manifest[0].path, 3);
  ledger.ended(0, slide);
  for (const auto& damage : std::vector<std::pair<std::string, std::string>>{
           {"histogram = zeroblob(40)", "histogram"},
           {"histogram = zeroblob(39)", "histogram"},
           {"histogram = NULL", "histogram"},
           {"value_count = value_count + 1", "histogram"},
           {"windows = -1", "windows"},
           {"value_sum = '1e5'", "value_sum"},
           {"square_sum = NULL", "square_sum"},
           {"path = x'00'", "path"},
           {"width = -5", "width"},
           {"map_rows = -1", "map_rows"},
           {"map_name = '../x'", "map_name"},
           {"seconds = 9e999", "seconds"},
       }) {
    const std::string sql = damage.first;
    const std::string column = damage.second;
    tamper(ledger.file(), "CREATE TABLE saved AS SELECT * FROM slides; UPDATE slides SET " + sql);
    const std::string message = message_of<OutputError>([&] { slides_in(ledger); });
    CHECK_MESSAGE(contains(message, "damaged: " + column), sql);
    tamper(ledger.file(), "DELETE FROM slides; INSERT INTO slides SELECT * FROM saved; DROP TABLE saved");
  }
  CHECK(slides_in(ledger).size() == 1);
  tamper(ledger.file(), "UPDATE maps SET bytes = zeroblob(8)");
  WindowMap map{2, 1, {}};
  CHECK_FALSE(LedgerView(ledger.file(), ledger_bins).read_map(0, map));
  tamper(ledger.file(), "UPDATE maps SET bytes = zeroblob(16)");
  CHECK_FALSE(LedgerView(ledger.file(), ledger_bins).read_map(0, map));
  tamper(ledger.file(), "UPDATE slides SET map_digest = NULL");
  CHECK_FALSE(LedgerView(ledger.file(), ledger_bins).read_map(0, map));
}

TEST_CASE("a value beyond the bound isn't read") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  const fs::path file = folder / "out/run.sqlite";
  end_all(config, manifest, [](const std::string& path, std::size_t) { return result_of(path, 3); });
  tamper(file, "UPDATE slides SET histogram = zeroblob(" + std::to_string(largest_ledger_value + 1) + ")");
  const auto read = [&] { LedgerView(file, ledger_bins).for_each([](const SlideResult&) {}); };
  const std::string line = "run.sqlite: damaged: a value is larger than 80 MiB";
  CHECK_MESSAGE(contains(message_of<DamagedError>(read), line + "; the command that made it, with --fresh, moves it"),
                message_of<OutputError>(read));
  CHECK(contains(message_of<UnreadableError>([&] { Ledger(config).begin(manifest, false); }),
                 line + "; --fresh moves such a run aside"));
  CHECK(contains(message_of<OutputError>([&] { merge_ledgers({config.output.dir}, (folder / "m").string()); }), line));
}

TEST_CASE("settings beyond the bound aren't read") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const fs::path file = folder / "out/run.sqlite";
  { const Ledger ledger(config); }
  CHECK(LedgerView(file, ledger_bins).deciding().size() > 10);
  const auto line_of = [&] { return message_of<UnreadableError>([&] { LedgerView(file, ledger_bins).deciding(); }); };
  tamper(file,
         "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5000) INSERT INTO settings SELECT "
         "'k' || i, 'x' FROM r");
  CHECK_MESSAGE(contains(line_of(), "run.sqlite: damaged: it has more than 4096 settings"), line_of());
}

TEST_CASE("a value beyond the bound isn't written, and the largest part of a map is") {
  const TemporaryFolder folder;
  Database database(folder / "any.sqlite", DatabaseAccess::create);
  database.execute("CREATE TABLE t(x BLOB)");
  Statement insert(database, "INSERT INTO t VALUES(?1)");
  std::string bytes(std::size_t{64} << 20, 'x');
  insert.bind_blob(1, std::string_view(bytes)).run();
  CHECK(database.changed() == 1);
  bytes.resize(largest_ledger_value + 1);
  const std::string message = message_of<OutputError>([&] { insert.bind_blob(1, std::string_view(bytes)); });
  CHECK(contains(message, "any.sqlite: a value of " + std::to_string(bytes.size()) + " bytes is larger than 80 MiB"));
}

TEST_CASE("any change of a result is found, and its slide done again") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  Ledger ledger(config);
  for (const char* change :
       {"value_sum = replace(value_sum, '7', '3')",
        "square_sum = '-' || square_sum",
        "clipped = clipped + 1",
        "windows = 1",
        "missing_tiles = 5",
        "mpp = 0.2",
        "codec = 'none'",
        "width = 1001",
        "map_rows = 2",
        "map_columns = 7",
        "gpu_fallback_tiles = 1",
        "map_digest = map_digest + 1",
        "digest = digest - 1",
        "digest = NULL",
        "digest = NULL, missing_tiles = 5",
        "digest = NULL, map_digest = NULL",
        "digest = ''",
        "seconds = 2.0",
        "backend = 'cuda'",
        "histogram = substr(histogram, 9, 8) || substr(histogram, 1, 8) || substr(histogram, 17)"}) {
    for (const std::size_t place : ledger.begin(manifest, true).todo) {
      SlideResult slide = result_of(manifest[place].path, 3 + place);
      ledger.started(place);
      ledger.ended(place, slide);
    }
    REQUIRE(slides_in(ledger).size() == 2);
    tamper(ledger.file(), std::string("UPDATE slides SET ") + change + " WHERE position = 1");
    CHECK_MESSAGE(contains(message_of<OutputError>([&] { slides_in(ledger); }), "isn't what was written"), change);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.todo == std::vector<std::size_t>{1});
    REQUIRE(start.damaged.size() == 1);
    CHECK(contains(start.damaged[0], "damaged: the row of " + manifest[1].path));
    CHECK(slides_in(ledger).size() == 1);
  }
}

TEST_CASE("a map that isn't what was written is found at a start") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  end_all(config, manifest, [](const std::string& path, std::size_t place) { return result_of(path, place); });
  const auto begun = [&](std::uint64_t most_map_bytes) {
    Ledger::Options options;
    options.most_map_bytes = most_map_bytes;
    return Ledger(config, options).begin(manifest, false);
  };
  CHECK(begun(1000).todo.empty());
  std::size_t lacking = 0;
  SUBCASE("other values") {
    tamper(file, "UPDATE maps SET bytes = zeroblob(16) WHERE slide = 2");
    // The first slide's map has as many bytes as this start may read.
    CHECK(begun(16).todo.empty());
  }
  SUBCASE("none") { tamper(file, "DELETE FROM maps WHERE slide = 2"); }
  SUBCASE("of a slide whose file has gone") {
    tamper(file, "UPDATE maps SET bytes = zeroblob(16)");
    for (const std::size_t gone : {0, 2}) fs::remove(manifest[gone].path);
    lacking = 2;
  }
  const LedgerStart start = begun(1000);
  CHECK(start.todo == std::vector<std::size_t>{1});
  CHECK(start.vanished.empty());
  CHECK(start.lacking.size() == lacking);
  CHECK(start.damaged == std::vector<std::string>{file.string() + ": damaged: the map of " + manifest[1].path +
                                                  " isn't what was written"});
}

TEST_CASE("a start that finds damage mends indices before it writes on") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  end_all(config, manifest, [](const std::string& path, std::size_t place) { return result_of(path, place); });
  // The table under another name, whose index isn't written.
  tamper(file,
         "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) SELECT 'table', "
         "'bare', 'bare', rootpage, 'CREATE TABLE bare(slide INTEGER, part INTEGER, bytes BLOB)' FROM sqlite_schema "
         "WHERE name = 'maps'");
  tamper(file,
         "UPDATE bare SET slide = 9, bytes = zeroblob(16) WHERE slide = 2; PRAGMA writable_schema = ON; DELETE FROM "
         "sqlite_schema WHERE name = 'bare'");
  {
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.todo == std::vector<std::size_t>{1});
    CHECK(start.damaged.size() == 1);
    ledger.started(1);
    SlideResult slide = result_of(manifest[1].path, 1);
    CHECK(message_of<OutputError>([&] { ledger.ended(1, slide); }).empty());
  }
  {
    Database database(file, DatabaseAccess::read);
    CHECK(message_of<OutputError>([&] { check_table(database, "maps"); }).empty());
  }
  CHECK(Ledger(config).begin(manifest, false).todo.empty());
}

TEST_CASE("what a ledger's tables refuse is damage, and the line says what helps") {
  const TemporaryFolder folder;
  Database database(folder / "any.sqlite", DatabaseAccess::create);
  database.execute("CREATE TABLE t(x INTEGER UNIQUE); INSERT INTO t VALUES(1)");
  const std::string line = message_of<DamagedError>([&] { database.execute("INSERT INTO t VALUES(1)"); });
  CHECK_MESSAGE(contains(line, "constraint failed"), line);
  CHECK(contains(line, "; --fresh moves such a run aside"));
}

TEST_CASE("a configuration, and places in the list, that aren't what was written are nowhere taken for it") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  for (const auto& each : std::vector<std::pair<std::string, std::string>>{
           {"UPDATE meta SET value = CAST(CAST(value AS TEXT) || ' ' AS BLOB) WHERE name = 'configuration'",
            "configuration"},
           {"UPDATE settings SET value = '257' WHERE name = 'analysis.window'", "configuration"},
           {"UPDATE settings SET name = 'analysis.windov' WHERE name = 'analysis.window'", "configuration"},
           {"DELETE FROM meta", "configuration"},
           {"UPDATE slides SET position = NULL WHERE position = 1", "place"},
           {"UPDATE slides SET position = 1 WHERE position = 0", "place"},
           {"DELETE FROM slides WHERE position = 0", "place"},
           {"UPDATE slides SET position = NULL WHERE position = 2", "list"},
           {"DELETE FROM slides WHERE position = 2", "list"},
           {"UPDATE slides SET mine = 0 WHERE position = 1", "list"},
           {"INSERT INTO meta VALUES('shards', 2)", "list"}}) {
    const auto& change = each.first;
    const auto& what = each.second;
    CAPTURE(change);
    fs::remove_all(folder / "out");
    const Config config = ledger_config(folder / "out");
    end_all(config, manifest, [](const std::string& path, std::size_t place) { return result_of(path, place); });
    const auto merged = [&] { merge_ledgers({config.output.dir}, (folder / "joined").string()); };
    CHECK_NOTHROW(merged());
    CHECK(read_status(config.output.dir).damage.empty());
    tamper(file, change);
    CHECK(contains(message_of<DamagedError>(merged), what));
    CHECK(contains(message_of<DamagedError>([&] { const report::RunReader run(config.output.dir); }), what));
    const LedgerStatus status = read_status(config.output.dir);
    REQUIRE(status.damage.size() == 1);
    CHECK(contains(status.damage[0].what, what));
    if (what == "configuration") continue;
    // The run's own list is entered anew.
    { Ledger(config).begin(manifest, false); }
    CHECK(read_status(config.output.dir).damage.empty());
  }
}

TEST_CASE("damage that no row shows") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  end_all(config, manifest, [](const std::string& path, std::size_t place) { return result_of(path, place); });
  const auto opened = [&] { return message_of<OutputError>([&] { const Ledger ledger(config); }); };
  SUBCASE("an index that leads to another row") {
    lead_index_astray(file);
    CHECK_MESSAGE(contains(opened(), "run.sqlite: damaged: "), opened());
    CHECK(contains(opened(), "; --fresh moves such a run aside"));
    CHECK(contains(message_of<OutputError>([&] { merge_ledgers({config.output.dir}, (folder / "m").string()); }),
                   "run.sqlite: damaged: "));
  }
  SUBCASE("a path that is another's") {
    tamper(file, "UPDATE slides SET path = replace(path, 'slide-1', 'slide-2') WHERE position = 1");
    CHECK(contains(message_of<OutputError>([&] { merge_ledgers({config.output.dir}, (folder / "m").string()); }),
                   "isn't what was written"));
  }
  SUBCASE("a column that is computed") {
    tamper(
        file,
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'path BLOB NOT NULL', 'path BLOB AS "
        "(zeroblob(9))') WHERE name = 'slides'");
    CHECK_MESSAGE(contains(opened(), "damaged: table slides"), opened());
  }
  SUBCASE("no settings") {
    tamper_settings(file, "DELETE FROM settings");
    CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }), "was nothing"));
  }
  SUBCASE("settings that aren't what was written") {
    // A default that is missing would pass for one that the results are older than.
    for (const char* change : {"value = '257'", "name = 'analysis.windov'"}) {
      tamper(file, std::string("UPDATE settings SET ") + change + " WHERE name = 'analysis.window'");
      CHECK(contains(message_of<DamagedError>([&] { const Ledger ledger(config); }),
                     "damaged: the configuration isn't what was written; --fresh moves such a run aside"));
      CHECK(contains(message_of<DamagedError>([&] { preview_start(config, {}, {}); }), "damaged: "));
      tamper(file, "UPDATE settings SET value = '256'");
    }
  }
  SUBCASE("a configuration that decides nothing is written anew") {
    tamper(file, "UPDATE meta SET value = CAST(CAST(value AS TEXT) || ' ' AS BLOB) WHERE name = 'configuration'");
    CHECK(opened().empty());
    CHECK(read_status(folder / "out").damage.empty());
  }
  SUBCASE("a FIFO for a journal") {
    const fs::path fifo = folder / "out/run.sqlite-journal";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(contains(opened(), "run.sqlite-journal: isn't a regular file"));
    CHECK(contains(message_of<OutputError>([&] { read_status(folder / "out"); }), "isn't a regular file"));
  }
}

TEST_CASE("a slide whose state is none is not passed over") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 2);
  end_all(config, manifest, [](const std::string& path, std::size_t) { return result_of(path, 3); });
  CHECK(read_status(folder / "out").done == 2);
  tamper(folder / "out/run.sqlite",
         "PRAGMA ignore_check_constraints = ON; UPDATE slides SET state = 'donE' WHERE id = 1");
  CHECK(contains(message_of<OutputError>([&] { read_status(folder / "out"); }),
                 "damaged: the row of " + manifest[0].path + " isn't what was written"));
}

TEST_CASE("a status says what is damaged, and shows the rest") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  const fs::path file = folder / "out/run.sqlite";
  end_all(config, manifest, [](const std::string& path, std::size_t place) { return attached_result_of(path, place); });
  const LedgerStatus sound = read_status(folder / "out");
  CHECK(sound.damage.empty());
  CHECK(sound.unchecked == 0);
  const auto found = [&] {
    const LedgerStatus status = read_status(folder / "out");
    CHECK(status.done == 3);
    std::string text;
    for (const LedgerStatus::Damage& each : status.damage) {
      text += each.what + ": " + std::to_string(each.count) + "\n";
    }
    return text;
  };
  SUBCASE("rows") {
    tamper(file, "UPDATE slides SET windows = -5 WHERE id < 3");
    CHECK(found() == "rows of slides that aren't what was written: 2\n");
    CHECK(read_status(folder / "out").windows == 2);
    CHECK(read_status(folder / "out", 1).unchecked == 2);
  }
  SUBCASE("a row that can't be read") {
    tamper(file,
           "UPDATE slides SET histogram = zeroblob(" + std::to_string(largest_ledger_value + 1) + ") WHERE id = 3");
    CHECK(contains(found(), "rows of slides that aren't what was written: 1\n"));
  }
  SUBCASE("numbers whose sum is too large") {
    tamper(file, "UPDATE artifacts SET bytes = 9223372036854775807");
    CHECK(found() == "slides whose list of files isn't what was written: 3\n");
    CHECK(read_status(folder / "out").artifact_bytes == 0);
    tamper(file, "UPDATE slides SET windows = 9223372036854775807");
    CHECK(contains(found(), "rows of slides that aren't what was written: 3\n"));
    CHECK(read_status(folder / "out").windows == 0);
    tamper(file, "UPDATE slides SET size = 9223372036854775807");
    CHECK(contains(found(), "slides of a size that no file has: 3\n"));
  }
  SUBCASE("lists of files") {
    tamper(file, "UPDATE artifacts SET bytes = -7 WHERE slide = 2");
    CHECK(found() == "slides whose list of files isn't what was written: 1\n");
  }
  SUBCASE("places") {
    tamper(file, "UPDATE slides SET position = 0 WHERE id = 3");
    CHECK(found() == "slides whose place in the list can't be: 1\n");
    tamper(file, "UPDATE slides SET position = 3 WHERE id = 3");
    CHECK(found() == "slides whose place in the list can't be: 1\n");
  }
  SUBCASE("sizes") {
    tamper(file, "UPDATE slides SET size = 5; UPDATE slides SET size = -1 WHERE id = 1");
    CHECK(found() == "slides of a size that no file has: 1\n");
    CHECK(read_status(folder / "out").bytes == 10);
  }
  SUBCASE("an index that leads to another row") {
    lead_index_astray(file);
    CHECK_MESSAGE(contains(found(), "faults that SQLite finds in the table slides: "), found());
  }
}

TEST_CASE("times that no clock gives") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
  }
  tamper(folder / "out/run.sqlite",
         "INSERT INTO owner VALUES(1, 'x', 'far', 'y', 'z', 7, 8, 9223372036854775807, 10, -9223372036854775807)");
  CHECK(read_status(folder / "out").bytes_per_second == 0);
  std::string told;
  {
    const auto tell = [&](const std::string& line) { told = line; };
    const Ledger ledger(config, {{std::chrono::milliseconds(100), std::chrono::milliseconds(0), tell}});
  }
  CHECK(contains(told, "far, process 7"));
  // A file's own.
  fs::resize_file(manifest[0].path, 1);
  const ::timespec late[2] = {{std::int64_t{1} << 34, 0}, {std::int64_t{1} << 34, 0}};
  REQUIRE(::utimensat(AT_FDCWD, manifest[0].path.c_str(), late, 0) == 0);
  CHECK(look_at(manifest[0].path)->modified > 0);
}

TEST_CASE("results without their ledger aren't written over") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  { const Ledger ledger(config); }
  std::ofstream(folder / "out/slides.csv") << "path\r\n";
  { const Ledger ledger(config); }
  const fs::path file = folder / "out/run.sqlite";
  SUBCASE("empty") {
    std::ofstream(file, std::ios::trunc).close();
    CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }),
                   "has slides.csv, but its run.sqlite is empty; name another folder, or use --fresh"));
  }
  SUBCASE("gone") {
    fs::remove(file);
    CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }), "has slides.csv, but no run.sqlite"));
  }
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-1").string());
  CHECK(text_of(folder / "out/earlier-1/slides.csv") == "path\r\n");
  { const Ledger ledger(config); }
}
