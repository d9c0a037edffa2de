#include "ledger/merge.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ledger/aside.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "ledger_runs.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// A part that has done the named slides.
void make_part(const Config& config, const std::vector<ManifestEntry>& manifest, const std::vector<std::size_t>& done,
               std::uint64_t seed = 0) {
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (const std::size_t i : done) {
    ledger.started(i);
    SlideResult slide = result_of(manifest[i].path, i + seed);
    slide.seconds = static_cast<double>(seed) + 0.1;
    ledger.ended(i, slide);
  }
}

/// All files of results, one after the other.
std::string results_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "run.sqlite") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) {
    std::string text = text_of(file);
    // Its own name is among the settings.
    if (const std::size_t at = text.find(folder.string()); at != std::string::npos)
      text.erase(at, folder.string().size());
    all += file.lexically_relative(folder).string() + "\n" + text;
  }
  return all;
}

/// A folder for the ledgers of two parts and for the joined results.
class Parts {
 public:
  const TemporaryFolder folder;
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string out = (folder / "out").string();
};

/// Why a merge is refused; "" where it isn't.
template <class Error = ConfigError>
std::string refusal(const std::vector<std::string>& parts, const std::string& out, const MergeOptions& options = {}) {
  return message_of<Error>([&] { merge_ledgers(parts, out, options); });
}

}  // namespace

TEST_CASE("maps get their names with a rollback journal, too") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  Config config = ledger_config(folder / "a");
  config.output.journal = JournalMode::rollback;
  make_part(config, manifest, {0, 1});
  const fs::path out = folder / "merged";
  CHECK(merge_ledgers({(folder / "a").string()}, out.string()).corpus.done == 2);
  CHECK(fs::exists(out / "maps/slide-1.npy"));
}

TEST_CASE("maps of folders that know nothing of each other have names of their own") {
  const TemporaryFolder folder;
  std::vector<std::string> parts;
  for (const std::string name : {"a", "b"}) {
    fs::create_directory(folder / name);
    const std::string slide = folder.write(name + "/x.svs", name);
    const Config config = ledger_config(folder / ("out-" + name));
    Ledger ledger(config);
    ledger.begin({{slide, slide, true}}, false);
    CHECK(ledger.image_names() == std::vector<std::string>{"x"});
    ledger.started(0);
    SlideResult result = result_of(slide, name == "a" ? 1 : 2);
    result.map_file = "x.npy";
    ledger.ended(0, result);
    parts.push_back(config.output.dir);
  }
  const fs::path out = folder / "merged";
  CHECK(merge_ledgers(parts, out.string()).corpus.done == 2);
  const std::string digits = to_hexadecimal(stable_hash((folder / "b/x.svs").string())).substr(0, 8);
  const std::vector<std::string> maps = {"maps/x.npy", "maps/x-" + digits + ".npy"};
  const auto values = [](const fs::path& map) { return file_hash(map.string()); };
  for (const std::string& map : maps) REQUIRE(values(out / map).has_value());
  CHECK(values(out / maps[0]) != values(out / maps[1]));
  // Joined alone, the second slide has the name. It loses it to the first one, whose map has the same size.
  const fs::path again = folder / "again";
  merge_ledgers({parts[1]}, again.string());
  CHECK(values(again / maps[0]) == values(out / maps[1]));
  merge_ledgers(parts, again.string());
  for (const std::string& map : maps) CHECK(values(again / map) == values(out / map));
}

TEST_CASE("parts in any order give the same bytes") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 6);
  Config config = ledger_config(folder / "a");
  make_part(config, manifest, {1, 4, 0});
  config.output.dir = (folder / "b").string();
  fs::create_directory(config.output.dir);
  config.pipeline.threads = 2;  // decides nothing
  make_part(config, manifest, {2, 4});
  {
    Ledger ledger(ledger_config(folder / "c"));
    ledger.begin(manifest, false);
    SlideResult slide = failure_of(manifest[5].path, {"read", {}, "gone"});
    ledger.ended(5, slide);
    slide = failure_of(manifest[4].path, {"read", {}, "gone"});
    ledger.ended(4, slide);
  }
  std::vector<std::string> parts = {(folder / "a").string(), (folder / "b").string(), (folder / "c").string()};
  std::string expected;
  int number = 0;
  do {
    const fs::path out = folder / ("merged-" + std::to_string(number++));
    const MergeResult merged = merge_ledgers(parts, out.string());
    CHECK(merged.corpus.done == 4);
    CHECK(merged.corpus.failed == 1);
    CHECK(merged.twice == 1);
    CHECK(merged.missing == std::vector<std::string>{manifest[3].path});
    const std::string results = results_in(out);
    if (expected.empty()) expected = results;
    CHECK(results == expected);
    CHECK(fs::exists(out / "maps/slide-4.npy"));
  } while (std::ranges::next_permutation(parts).found);
  CHECK(number == 6);
  // Once more into the same folder changes nothing.
  merge_ledgers(parts, (folder / "merged-0").string());
  CHECK(results_in(folder / "merged-0") == expected);
  // A merge of merges, too.
  merge_ledgers({parts[0], parts[2]}, (folder / "first").string());
  merge_ledgers({parts[1], (folder / "first").string()}, (folder / "second").string());
  CHECK(results_in(folder / "second") == expected);
}

TEST_CASE_FIXTURE(Parts, "what doesn't fit together is refused") {
  const auto manifest = make_files(folder, 3);
  make_part(ledger_config(a), manifest, {0, 1});
  Config config = ledger_config(b);
  SUBCASE("settings") {
    config.analysis.stride = 64;
    make_part(config, manifest, {2});
    CHECK(contains(refusal({a, b}, out), b + ": analysis.stride is 64 there, and 128 in " + a));
    CHECK_FALSE(fs::exists(out));
  }
  SUBCASE("version") {
    make_part(config, manifest, {2});
    tamper_settings(folder / "b/run.sqlite", "UPDATE settings SET value = '0.0.1' WHERE name LIKE '%version'");
    CHECK(contains(refusal({a, b}, out), "version"));
  }
  SUBCASE("results") {
    make_part(config, manifest, {1, 2}, 7);
    CHECK(contains(refusal({a, b}, out), "has another result in " + b));
  }
  SUBCASE("maps") {
    make_part(config, manifest, {1, 2});
    tamper(folder / "b/run.sqlite", "UPDATE maps SET bytes = zeroblob(16)");
    CHECK(contains(refusal<OutputError>({a, b}, out),
                   "isn't what was written; the command that made it does the slide again, once maps/map.npy of its "
                   "folder is deleted"));
    ContentHash hash;
    hash.add(std::vector<std::byte>(16));
    tamper(folder / "b/run.sqlite",
           "UPDATE slides SET map_digest = " + std::to_string(static_cast<std::int64_t>(hash.value())) +
               " WHERE state = 'done'; UPDATE slides SET digest = row_digest(" + row_digest_columns +
               ") WHERE state = 'done'");
    CHECK(contains(refusal({a, b}, out), "has another result in " + b));
  }
  SUBCASE("a folder that is both") { CHECK(contains(refusal({a}, a), "is the folder for the joined results, too")); }
  SUBCASE("a folder without a ledger") {
    CHECK(contains(refusal<OutputError>({a, b}, out), "run.sqlite: No such file"));
  }
  SUBCASE("damage") {
    make_part(config, manifest, {2});
    tamper(folder / "b/run.sqlite", "UPDATE slides SET histogram = zeroblob(3) WHERE state = 'done'");
    CHECK(contains(refusal<OutputError>({a, b}, out), "damaged: histogram"));
  }
}

TEST_CASE("what a run read besides its slides may be gone as its parts are joined") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const fs::path reference = folder / "reference.svs";
  std::ofstream(reference) << "a reference";
  const auto part = [&](const char* name) {
    Config config = ledger_config((folder / name).string());
    config.operators.run = {"spectrum", "stain"};
    config.stain.reference = reference.string();
    return config;
  };
  const std::vector<std::string> parts = {(folder / "a").string(), (folder / "b").string()};
  make_part(part("a"), manifest, {0});
  make_part(part("b"), manifest, {1});
  fs::remove(reference);
  merge_ledgers(parts, (folder / "out").string());
  // Parts with different references stay apart.
  std::ofstream(reference) << "another reference";
  make_part(part("c"), manifest, {1});
  CHECK(contains(refusal({parts[0], (folder / "c").string()}, (folder / "other").string()),
                 (folder / "c").string() + ": the digest of the stain reference is "));
}

TEST_CASE_FIXTURE(Parts, "what a merge gives follows from the folders alone, and a refused one changes nothing") {
  const auto manifest = make_files(folder, 4);
  make_part(ledger_config(a), manifest, {0, 1});
  make_part(ledger_config(b), manifest, {2});
  merge_ledgers({a, b}, out);
  const std::string before = results_in(out);

  // Done anew, with other results: the merge has them, as it would in an empty folder.
  fs::remove_all(b);
  make_part(ledger_config(b), manifest, {2, 3}, 7);
  merge_ledgers({a, b}, out);
  merge_ledgers({a, b}, (folder / "new").string());
  CHECK(results_in(out) == results_in(folder / "new"));
  CHECK(results_in(out) != before);
  const std::string now = results_in(out);

  // One that would lose slides is refused.
  CHECK(
      contains(refusal({a}, out),
               out + ": holds 2 slides of an earlier joining that none of the folders has, first " + manifest[2].path));
  const auto others = std::vector<ManifestEntry>{{folder.write("other", std::string("x")), folder / "other", true}};
  make_part(ledger_config(folder / "c"), others, {0});
  CHECK(contains(refusal({(folder / "c").string()}, out), "holds 4 slides"));
  CHECK(results_in(out) == now);
  // So is one that finds a conflict half-way; nothing of it stays.
  make_part(ledger_config(folder / "d"), manifest, {0, 3}, 1);
  CHECK(contains(refusal({a, b, (folder / "d").string()}, out), "has another result"));
  CHECK(contains(refusal({b, a, (folder / "d").string()}, (folder / "fresh").string()), "has another result"));
  CHECK_FALSE(fs::exists(folder / "fresh/run.sqlite"));
  merge_ledgers({a, b}, out);
  CHECK(results_in(out) == now);
  // It can be told to stop.
  int asked = 0;
  CHECK(merge_ledgers({a, b}, out, {false, [&] { return ++asked == 3; }}).stopped);
  CHECK(asked == 3);
  CHECK(results_in(out) == now);
  // Once all is merged, between the slides of files of results.
  asked = 0;
  merge_ledgers({a, b}, out, {false, [&] { return ++asked < 0; }});
  const int last = asked;
  asked = 0;
  const MergeResult cut = merge_ledgers({a, b}, out, {false, [&] { return ++asked >= last; }});
  CHECK_FALSE(cut.stopped);
  CHECK(contains(cut.not_written, "interrupted"));
  merge_ledgers({a, b}, out);
  CHECK(results_in(out) == now);
  // With --fresh nothing is in the way, and nothing is moved before the folders are known to fit.
  CHECK(message_of<OutputError>([&] { merge_ledgers({(folder / "none").string()}, out, {true, {}}); }) != "");
  CHECK_FALSE(fs::exists(folder / "out/earlier-1"));
  CHECK(merge_ledgers({a}, out, {true, {}}).aside == (folder / "out/earlier-1").string());
  merge_ledgers({a}, (folder / "a alone").string());
  CHECK(text_of(folder / "out/slides.csv") == text_of(folder / "a alone/slides.csv"));
}

TEST_CASE_FIXTURE(Parts, "a merge refuses maps that no ledger in its folder lists, before anything is merged") {
  const auto manifest = make_files(folder, 2);
  const fs::path map = folder / "out/maps/slide-1.npy";
  make_part(ledger_config(a), manifest, {0});
  make_part(ledger_config(b), manifest, {1});
  const std::string foreign = map.string() + ": is there already, and no ledger in the folder lists it; move it away";
  fs::create_directories(map.parent_path());

  SUBCASE("in a new folder") {
    folder.write("out/maps/slide-1.npy", std::string("mine"));
    CHECK(contains(refusal({a, b}, out), foreign));
    CHECK(text_of(map) == "mine");
    CHECK_FALSE(fs::exists(folder / "out/run.sqlite"));
    CHECK_FALSE(fs::exists(folder / "out/slides.csv"));
    CHECK_FALSE(fs::exists(folder / "out/maps/slide-0.npy"));
  }
  SUBCASE("beside the ledger of an earlier merge") {
    merge_ledgers({a}, out);
    folder.write("out/maps/slide-1.npy", std::string("mine"));
    const std::string before = results_in(out);
    CHECK(contains(refusal({a, b}, out), foreign));
    CHECK(results_in(out) == before);
  }
  SUBCASE("as a link") {
    fs::create_symlink("nothing", map);
    CHECK(contains(refusal({a, b}, out), map.string() + ": is a link, and this program writes none; move it away"));
    CHECK(fs::is_symlink(map));
    fs::remove(map);
  }
  SUBCASE("an empty file has nothing to lose") {
    folder.write("out/maps/slide-1.npy", std::string());
    CHECK(refusal({a, b}, out) == "");
  }
  fs::remove(map);
  // What an earlier merge wrote is replaced, also where that was cut short.
  for (int again = 0; again < 2; ++again) {
    CHECK(merge_ledgers({a, b}, out).not_written.empty());
    CHECK(fs::file_size(map) > 4);
    folder.write("out/maps/slide-1.npy", std::string("half"));
  }
}

TEST_CASE("a later failure of another file refuses a merge, in any order of the folders") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  const std::string slide = manifest[0].path;
  std::vector<std::string> parts;
  const auto make = [&](const char* name, bool done, const char* size, int ended_at) {
    parts.push_back((folder / name).string());
    {
      Ledger ledger(ledger_config(parts.back()));
      ledger.begin(manifest, false);
      ledger.started(0);
      SlideResult result = done ? result_of(slide, 1) : failure_of(slide, {"read", {}, "gone"});
      ledger.ended(0, result);
    }
    tamper(fs::path(parts.back()) / "run.sqlite",
           std::string("UPDATE slides SET size = ") + size + ", ended_at = " + std::to_string(ended_at));
  };
  make("done early", true, "1", 10);
  make("failed", false, "2", 20);
  const auto outcomes = [&] {
    std::vector<std::string> found;
    int number = 0;
    std::ranges::sort(parts);
    do {
      const std::string out = (folder / ("out-" + std::to_string(number++))).string();
      fs::remove_all(out);
      found.push_back(refusal(parts, out));
      CHECK(fs::exists(fs::path(out) / "run.sqlite") == found.back().empty());
    } while (std::ranges::next_permutation(parts).found);
    return found;
  };
  for (const std::string& message : outcomes()) {
    CHECK(message == slide + ": is done in " + (folder / "done early").string() + ", and failed in " +
                         (folder / "failed").string() + " later, as another file");
  }
  // A result later than the failure, or one of the file that failed, stands.
  make("done late", true, "1", 30);
  for (const std::string& message : outcomes()) CHECK(message == "");
  parts.pop_back();
  make("done too", true, "2", 10);
  parts = {(folder / "done too").string(), (folder / "failed").string()};
  for (const std::string& message : outcomes()) CHECK(message == "");
}

TEST_CASE_FIXTURE(Parts, "a run's own results aren't joined over") {
  const auto manifest = make_files(folder, 3);
  make_part(ledger_config(a), manifest, {0, 1});
  make_part(ledger_config(b), manifest, {2});
  CHECK(contains(refusal({a}, b), b + ": holds 1 slide of a run of its own"));
  merge_ledgers({a}, out);
  // A run that goes on where slides were joined makes the folder its own with its first slide.
  make_part(ledger_config(out), manifest, {});
  merge_ledgers({a}, out);
  make_part(ledger_config(out), manifest, {2});
  CHECK(contains(refusal({a, b}, out), "of a run of its own"));
}

TEST_CASE_FIXTURE(Parts, "slides that a part's last list didn't name are left out, and said to be") {
  const auto manifest = make_files(folder, 3);
  make_part(ledger_config(a), manifest, {0, 1, 2});
  make_part(ledger_config(a), {manifest[0]}, {});
  const MergeResult merged = merge_ledgers({a}, out);
  CHECK(merged.corpus.done == 1);
  REQUIRE(merged.warnings.size() == 1);
  CHECK(contains(merged.warnings[0], a + ": 2 slides of its earlier runs weren't among its last inputs"));
}

TEST_CASE_FIXTURE(Parts, "parts of different numbers of shards are refused") {
  const auto manifest = make_files(folder, 3);
  const auto start = [&](const char* name, int shards) {
    const Config config = ledger_config(folder / name);
    Ledger ledger(config);
    auto slides = manifest;
    for (ManifestEntry& slide : slides) slide.mine = std::string(name) != "b";
    ledger.begin(slides, false, {}, shards);
    return config.output.dir;
  };
  make_part(ledger_config(a), manifest, {0, 1, 2});
  make_part(ledger_config(folder / "c"), manifest, {0, 1, 2});
  start("a", 2);
  start("b", 2);
  const std::string c = start("c", 3);
  const MergeOptions fresh = {true, {}};
  constexpr const char* remedy = "; leave out the folders of one of these numbers, or start their shards again";
  CHECK(refusal({a, b, c}, out, fresh) == c + ": has a shard of 3, and " + a + " one of 2" + remedy);
  CHECK(refusal({c, b}, out, fresh) == b + ": has a shard of 2, and " + c + " one of 3" + remedy);
  CHECK_FALSE(fs::exists(out));
  CHECK(merge_ledgers({a, b}, out).corpus.done == 3);
  // What isn't split goes with any.
  CHECK(start("c", 0) == c);
  CHECK(merge_ledgers({a, b, c}, out).corpus.done == 3);
  CHECK(start("c", 1) == c);
  CHECK(contains(refusal({a, b, c}, out, fresh), c + ": has a shard of 1"));
  // The last start of a folder counts.
  CHECK(start("c", 2) == c);
  CHECK(merge_ledgers({a, b, c}, out).corpus.done == 3);
  // Joined results are of no shard.
  CHECK(merge_ledgers({out, start("c", 3)}, (folder / "second").string()).corpus.done == 3);
}

TEST_CASE_FIXTURE(Parts, "sums that 128 bits don't hold are refused") {
  const auto manifest = make_files(folder, 2);
  Ledger ledger(ledger_config(a));
  ledger.begin(manifest, false);
  for (const std::size_t i : {0, 1}) {
    SlideResult slide = result_of(manifest[i].path, i);
    slide.sums.sum_of_squares = Int128{1} << 126;
    ledger.ended(i, slide);
  }
  CHECK(contains(refusal<OutputError>({a}, out), "can't be added to the other slides: sums of more than 128 bits"));
}

TEST_CASE_FIXTURE(Parts, "a part whose start came to no slide is refused by name") {
  make_part(ledger_config(a), make_files(folder, 1), {0});
  {
    const Ledger living(ledger_config(b));
    CHECK(contains(refusal<OutputError>({a, b}, out), b + ": its ledger holds no run"));
  }
  CHECK(contains(refusal<OutputError>({a, b}, out), b + ": its ledger holds no run"));
  CHECK(contains(refusal<OutputError>({b}, out), b + ": its ledger holds no run"));
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE_FIXTURE(Parts, "a merge says of slides that left the list how they are left out") {
  const auto manifest = make_files(folder, 3);
  const Config config = ledger_config(a);
  make_part(config, manifest, {0, 1});
  make_part(ledger_config(b), {manifest[2]}, {0});
  merge_ledgers({a, b}, out);
  make_part(config, {manifest[0]}, {});
  CHECK(refusal({a, b}, out) ==
        out + ": holds 1 slide of an earlier joining that isn't among the inputs of the folders any more, first " +
            manifest[1].path + "; --fresh leaves it out, and moves the earlier results aside");
  // One that can be joined is told first.
  CHECK(contains(refusal({a}, out), "holds 1 slide of an earlier joining that none of the folders has, first " +
                                        manifest[2].path + "; name its folder, too"));
  CHECK(merge_ledgers({a, b}, out, {true, {}}).corpus.done == 2);
  CHECK(merge_ledgers({a, b}, out).corpus.done == 2);
}

TEST_CASE("a ledger without a table is read and told, and nothing is left beside it") {
  const TemporaryFolder folder;
  const fs::path file = folder / ledger_name;
  { Database(file, DatabaseAccess::create).execute("PRAGMA journal_mode = WAL"); }
  REQUIRE(fs::file_size(file) > 0);
  const auto told = [&] { return message_of<UnreadableError>([&] { open_to_read(file); }); };
  CHECK(told() ==
        file.string() + ": holds no run: a start ended before its first slide; the same command starts it again");
  {
    const FolderLock held(folder / "");
    CHECK(contains(told(), ": is empty: a run has only just begun there, or ended before it began; ask again"));
  }
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a part that still runs is told") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  make_part(ledger_config(folder / "a"), manifest, {0});
  Ledger living(ledger_config(folder / "b"));
  living.begin(manifest, false);
  const MergeResult merged =
      merge_ledgers({(folder / "a").string(), (folder / "b").string()}, (folder / "out").string());
  REQUIRE(merged.warnings.size() == 1);
  CHECK(contains(merged.warnings[0], "hasn't ended"));
  // It may not have come to new slides.
  CHECK(merged.uncertain == 1);
}
