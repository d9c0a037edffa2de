// What a merge makes of slides that several shards' folders know.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ledger/merge.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// Starts a shard, which has the slides at `own`.
LedgerStart start_shard(Ledger& ledger, std::vector<ManifestEntry> manifest, const std::vector<std::size_t>& own,
                        int shards = 2) {
  for (std::size_t i = 0; i < manifest.size(); ++i) manifest[i].mine = std::ranges::count(own, i) > 0;
  return ledger.begin(manifest, false, {}, shards);
}

void end_slide(Ledger& ledger, const std::vector<ManifestEntry>& manifest, std::size_t place, std::uint64_t seed) {
  ledger.started(place);
  SlideResult slide = result_of(manifest[place].path, seed);
  ledger.ended(place, slide);
}

/// The first count of every slide's histogram, 0 of one that failed.
std::vector<std::uint64_t> seeds_in(const fs::path& folder) {
  std::vector<std::uint64_t> seeds;
  LedgerView view(folder / "run.sqlite", ledger_bins);
  view.for_each([&](const SlideResult& slide) { seeds.push_back(slide.done ? slide.sums.histogram[0] : 0); });
  return seeds;
}

}  // namespace

TEST_CASE("a slide is what its own shard says, whatever earlier runs left in other folders") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  {
    Ledger ledger(ledger_config(a));
    start_shard(ledger, manifest, {0, 1});
    end_slide(ledger, manifest, 0, 3);
    end_slide(ledger, manifest, 1, 8);
    start_shard(ledger, manifest, {0});
  }
  std::vector<std::string> parts = {a, b};
  const auto start = [&](const auto& work) {
    Ledger ledger(ledger_config(b));
    start_shard(ledger, manifest, {1});
    work(ledger);
  };
  const auto check = [&](std::size_t failed, const std::vector<std::string>& missing,
                         const std::vector<std::uint64_t>& seeds) {
    int number = 0;
    do {
      const fs::path out = folder / ("out-" + std::to_string(number++));
      fs::remove_all(out);
      const MergeResult merged = merge_ledgers(parts, out.string());
      CHECK(merged.missing == missing);
      CHECK(merged.corpus.failed == failed);
      CHECK(merged.twice == 0);
      CHECK(seeds_in(out) == seeds);
    } while (std::ranges::next_permutation(parts).found);
  };
  SUBCASE("still to be done") {
    start([](Ledger&) {});
    check(0, {manifest[1].path}, {3});
  }
  SUBCASE("failed") {
    start([&](Ledger& ledger) {
      SlideResult slide = failure_of(manifest[1].path, {"read", {}, "gone"});
      ledger.ended(1, slide);
    });
    check(1, {}, {3, 0});
  }
  SUBCASE("done, with another result") {
    start([&](Ledger& ledger) { end_slide(ledger, manifest, 1, 6); });
    check(0, {}, {3, 6});
    CHECK(merge_ledgers(parts, (folder / "out").string()).uncertain == 0);
  }
  SUBCASE("nobody's own: what there is counts") {
    parts = {a};
    check(0, {}, {3, 8});
    const MergeResult merged = merge_ledgers(parts, (folder / "out").string());
    CHECK(merged.uncertain == 1);
    REQUIRE(merged.warnings.size() == 1);
    CHECK(contains(merged.warnings[0], manifest[1].path + ": no folder's shard has this to do"));
  }
}

TEST_CASE("a slide is what its own shard says, whatever joined folders and runs without shards have") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string joined = (folder / "joined").string();
  const auto start = [&](const std::string& part, std::size_t own, const auto& work) {
    Ledger ledger(ledger_config(part));
    start_shard(ledger, manifest, {own});
    work(ledger);
  };
  start(a, 0, [&](Ledger& ledger) { end_slide(ledger, manifest, 0, 3); });
  start(b, 1, [&](Ledger& ledger) { end_slide(ledger, manifest, 1, 8); });
  merge_ledgers({a, b}, joined);
  // Its file is another now.
  folder.write("slide-1", std::string("another"));
  std::vector<std::string> parts = {a, b, joined};
  SUBCASE("joined results") {}
  SUBCASE("a run without shards") {
    parts.back() = (folder / "whole").string();
    Ledger ledger(ledger_config(parts.back()));
    ledger.begin(manifest, false);
    end_slide(ledger, manifest, 0, 3);
    end_slide(ledger, manifest, 1, 8);
  }
  const auto check = [&](const std::vector<std::string>& missing, const std::vector<std::uint64_t>& seeds) {
    std::ranges::sort(parts);
    int number = 0;
    do {
      const fs::path out = folder / ("out-" + std::to_string(number++));
      fs::remove_all(out);
      const MergeResult merged = merge_ledgers(parts, out.string());
      CHECK(merged.missing == missing);
      CHECK(seeds_in(out) == seeds);
    } while (std::ranges::next_permutation(parts).found);
  };
  start(b, 1, [](Ledger&) {});
  check({manifest[1].path}, {3});
  start(b, 1, [&](Ledger& ledger) { end_slide(ledger, manifest, 1, 6); });
  check({}, {3, 6});
  // Where its shard isn't named, they count.
  std::erase(parts, b);
  check({}, {3, 8});
}

TEST_CASE("a slide that several shards have as their own is to be done where one has it to do") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const auto start = [&](const std::string& part, const std::vector<std::size_t>& own, const auto& work) {
    Ledger ledger(ledger_config(part));
    start_shard(ledger, manifest, own);
    work(ledger);
  };
  start(a, {0, 1}, [&](Ledger& ledger) {
    end_slide(ledger, manifest, 0, 3);
    end_slide(ledger, manifest, 1, 8);
  });
  // As sizes divide them now.
  start(b, {1}, [](Ledger&) {});
  const std::vector<std::string> missing = {manifest[1].path};
  for (const auto& parts : {std::vector<std::string>{a, b}, {b, a}}) {
    const MergeResult merged = merge_ledgers(parts, (folder / "out").string());
    CHECK(merged.missing == missing);
    REQUIRE(merged.warnings.size() == 1);
    CHECK(contains(merged.warnings[0], manifest[1].path + ": ended in one folder, and still to do in another"));
    CHECK(seeds_in(folder / "out") == std::vector<std::uint64_t>{3});
  }
  start(b, {1}, [&](Ledger& ledger) { end_slide(ledger, manifest, 1, 8); });
  CHECK(merge_ledgers({a, b}, (folder / "out").string()).missing.empty());
  CHECK(seeds_in(folder / "out") == std::vector<std::uint64_t>{3, 8});
}

TEST_CASE("a shard that goes on from joined results is a shard") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string joined = (folder / "joined").string();
  const std::string other = (folder / "other").string();
  {
    Ledger ledger(ledger_config(a));
    ledger.begin(manifest, false);
    end_slide(ledger, manifest, 0, 3);
    end_slide(ledger, manifest, 1, 8);
  }
  for (const std::string& out : {joined, other}) merge_ledgers({a}, out);
  folder.write("slide-1", std::string("another"));
  {
    Ledger ledger(ledger_config(joined));
    CHECK(start_shard(ledger, manifest, {1}).todo.size() == 1);
  }
  const std::vector<std::string> missing = {manifest[1].path};
  CHECK(merge_ledgers({joined, other}, (folder / "out").string()).missing == missing);
}

TEST_CASE("what is left in another shard's folder doesn't count beside joined results") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string joined = (folder / "joined").string();
  {
    Ledger ledger(ledger_config(a));
    start_shard(ledger, manifest, {0, 1});
    end_slide(ledger, manifest, 0, 3);
    end_slide(ledger, manifest, 1, 8);
    start_shard(ledger, manifest, {0});
  }
  {
    Ledger ledger(ledger_config(b));
    start_shard(ledger, manifest, {1});
    end_slide(ledger, manifest, 1, 6);
  }
  merge_ledgers({a, b}, joined);
  for (const auto& parts : {std::vector<std::string>{a, joined}, {joined, a}}) {
    const fs::path out = folder / "out";
    fs::remove_all(out);
    CHECK(merge_ledgers(parts, out.string()).missing.empty());
    CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 6});
  }
}

TEST_CASE("a repeated merge leaves out what its own shard has to do again") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string out = (folder / "out").string();
  const auto start = [&](const std::string& part, std::size_t own, const auto& work) {
    Ledger ledger(ledger_config(part));
    start_shard(ledger, manifest, {own});
    work(ledger);
  };
  start(a, 0, [&](Ledger& ledger) { end_slide(ledger, manifest, 0, 3); });
  start(b, 1, [&](Ledger& ledger) { end_slide(ledger, manifest, 1, 8); });
  CHECK(merge_ledgers({a, b}, out).missing.empty());
  folder.write("slide-1", std::string("another"));
  start(b, 1, [](Ledger&) {});
  const std::vector<std::string> missing = {manifest[1].path};
  CHECK(merge_ledgers({a, b}, out).missing == missing);
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  CHECK(merge_ledgers({b, a}, (folder / "new").string()).missing == missing);
  CHECK(text_of(fs::path(out) / "slides.csv") == text_of(folder / "new/slides.csv"));
  // What a folder that isn't named has is kept.
  CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({b}, out); }),
                 "holds 1 slide of an earlier joining that none of the folders has, first " + manifest[0].path));
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  start(b, 1, [&](Ledger& ledger) { end_slide(ledger, manifest, 1, 6); });
  CHECK(merge_ledgers({a, b}, out).missing.empty());
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 6});
}

TEST_CASE("a shard that was started with another list is said to be") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 4);
  const std::vector<ManifestEntry> two(manifest.begin(), manifest.begin() + 2);
  const std::vector<ManifestEntry> three(manifest.begin(), manifest.begin() + 3);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string out = (folder / "out").string();
  const auto start = [](const std::string& part, const std::vector<ManifestEntry>& list,
                        const std::vector<std::size_t>& own) {
    Ledger ledger(ledger_config(part));
    const LedgerStart begun = start_shard(ledger, list, own);
    for (const std::size_t i : begun.todo) end_slide(ledger, list, i, i);
  };
  start(a, three, {0, 2});
  start(b, three, {1});
  const auto warnings = [&](const std::vector<std::string>& parts, const std::string& to) {
    std::vector<std::string> lines = merge_ledgers(parts, to).warnings;
    std::ranges::sort(lines);
    return lines;
  };
  CHECK(warnings({a, b}, out).empty());
  constexpr const char* again = "; start this shard again";
  SUBCASE("one that a slide left") {
    start(b, two, {1});
    const std::vector<std::string> expected = {
        a + ": lists 1 slide that left the list of other shards: " + manifest[2].path + again};
    CHECK(warnings({a, b}, out) == expected);
    CHECK(warnings({b, a}, out) == expected);
    // Where all shards know the shorter list, earlier joined results don't.
    start(a, two, {0});
    const auto beside = warnings({out, a, b}, (folder / "second").string());
    CHECK(std::ranges::count(beside, out + ": has 1 slide that no shard lists: " + manifest[2].path +
                                         "; leave this folder out if its list is earlier") == 1);
  }
  SUBCASE("one that slides came to") {
    start(b, manifest, {1, 3});
    CHECK(warnings({a, b}, out) ==
          std::vector<std::string>{a + ": lacks 1 slide of the list of other shards: " + manifest[3].path + again});
    start(a, two, {0});
    const auto both = warnings({a, b}, (folder / "second").string());
    CHECK(std::ranges::count(
              both, b + ": lists 1 slide that left the list of other shards: " + manifest[2].path + again) == 1);
  }
  SUBCASE("folders that are no shards have lists of their own") {
    {
      Ledger ledger(ledger_config(folder / "c"));
      ledger.begin({manifest[3]}, false);
    }
    CHECK(warnings({a, b, (folder / "c").string()}, (folder / "second").string()).empty());
  }
}
