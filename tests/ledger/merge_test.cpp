#include "ledger/merge.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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

}  // namespace

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
    SlideResult slide = failure_of(manifest[5].path, "read: gone");
    ledger.ended(5, slide);
    slide = failure_of(manifest[4].path, "read: gone");
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
    CHECK(merged.twice >= 1);
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

TEST_CASE("what doesn't fit together is refused") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 3);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string out = (folder / "out").string();
  make_part(ledger_config(a), manifest, {0, 1});
  Config config = ledger_config(b);
  SUBCASE("settings") {
    config.analysis.stride = 64;
    make_part(config, manifest, {2});
    CHECK(contains(message_of<ConfigError>([&] {
                     merge_ledgers({a, b}, out);
                   }),
                   b + ": analysis.stride is 128 here and was 64"));
    CHECK_FALSE(fs::exists(out));
  }
  SUBCASE("version") {
    make_part(config, manifest, {2});
    tamper(folder / "b/run.sqlite", "UPDATE settings SET value = '0.0.1' WHERE name LIKE '%version'");
    CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({a, b}, out); }), "version"));
  }
  SUBCASE("results") {
    make_part(config, manifest, {1, 2}, 7);
    CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({a, b}, out); }), "has another result in " + b));
  }
  SUBCASE("maps") {
    make_part(config, manifest, {1, 2});
    tamper(folder / "b/run.sqlite", "UPDATE maps SET bytes = zeroblob(16)");
    CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({a, b}, out); }), "has another result in " + b));
  }
  SUBCASE("a folder that is both") {
    CHECK(
        contains(message_of<ConfigError>([&] { merge_ledgers({a}, a); }), "is the folder for the joined results, too"));
  }
  SUBCASE("a folder without a ledger") {
    CHECK(contains(message_of<OutputError>([&] { merge_ledgers({a, b}, out); }), "run.sqlite: No such file"));
  }
  SUBCASE("damage") {
    make_part(config, manifest, {2});
    tamper(folder / "b/run.sqlite", "UPDATE slides SET histogram = zeroblob(3) WHERE state = 'done'");
    CHECK(contains(message_of<OutputError>([&] { merge_ledgers({a, b}, out); }), "damaged: histogram"));
  }
}

TEST_CASE("a part that still runs is told") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  make_part(ledger_config(folder / "a"), manifest, {0});
  const Ledger living(ledger_config(folder / "b"));
  const MergeResult merged =
      merge_ledgers({(folder / "a").string(), (folder / "b").string()}, (folder / "out").string());
  REQUIRE(merged.warnings.size() == 1);
  CHECK(contains(merged.warnings[0], "hasn't ended"));
}
