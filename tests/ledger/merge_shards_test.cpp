// What a merge makes of slides that several shards' folders know.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "ledger/merge.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// A slide that a run ended: its place in the list, and the seed of its result. It failed if the seed is 0.
struct Outcome {
  std::size_t place;
  std::uint64_t seed;
};

void end_slide(Ledger& ledger, const std::vector<ManifestEntry>& manifest, Outcome outcome) {
  if (outcome.seed != 0) ledger.started(outcome.place);
  const std::string& path = manifest[outcome.place].path;
  SlideResult slide = outcome.seed == 0 ? failure_of(path, {"read", {}, "gone"}) : result_of(path, outcome.seed);
  ledger.ended(outcome.place, slide);
}

/// Starts one of two shards, which has the slides at `own`.
LedgerStart start_shard(Ledger& ledger, std::vector<ManifestEntry> manifest, const std::vector<std::size_t>& own) {
  for (std::size_t i = 0; i < manifest.size(); ++i) manifest[i].mine = std::ranges::count(own, i) > 0;
  return ledger.begin(manifest, false, {}, 2);
}

/// The seed of every slide, 0 of one that failed.
std::vector<std::uint64_t> seeds_in(const fs::path& folder) {
  std::vector<std::uint64_t> seeds;
  LedgerView view(folder / "run.sqlite", ledger_bins);
  view.for_each([&](const SlideResult& slide) { seeds.push_back(slide.done ? slide.sums.histogram[0] : 0); });
  return seeds;
}

/// A list of two slides, and folders of shards that have them.
class Shards {
 public:
  /// A run of the shard that has the slides at `own`.
  void run(const std::string& part, const std::vector<std::size_t>& own, const std::vector<Outcome>& outcomes = {}) {
    Ledger ledger(ledger_config(part));
    start_shard(ledger, manifest, own);
    for (const Outcome outcome : outcomes) end_slide(ledger, manifest, outcome);
  }

  /// A run without shards, of all slides.
  void run_whole(const std::string& part, const std::vector<Outcome>& outcomes) {
    Ledger ledger(ledger_config(part));
    ledger.begin(manifest, false);
    for (const Outcome outcome : outcomes) end_slide(ledger, manifest, outcome);
  }

  /// Merges the folders in every order. Returns how many slides the merges found twice.
  std::size_t check_merges(std::vector<std::string> parts, const std::vector<std::string>& missing,
                           const std::vector<std::uint64_t>& seeds) {
    std::ranges::sort(parts);
    std::size_t twice = 0;
    do {
      fs::remove_all(out);
      const MergeResult merged = merge_ledgers(parts, out);
      CHECK(merged.missing == missing);
      CHECK(merged.corpus.failed == static_cast<std::size_t>(std::ranges::count(seeds, 0U)));
      CHECK(seeds_in(out) == seeds);
      twice += merged.twice;
    } while (std::ranges::next_permutation(parts).found);
    return twice;
  }

  TemporaryFolder folder;
  std::vector<ManifestEntry> manifest = make_files(folder, 2);
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string joined = (folder / "joined").string();
  const std::string out = (folder / "out").string();
};

}  // namespace

TEST_CASE_FIXTURE(Shards, "a slide is what its own shard says, whatever earlier runs left in other folders") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  run(a, {0});
  SUBCASE("still to be done") {
    run(b, {1});
    CHECK(check_merges({a, b}, {manifest[1].path}, {3}) == 0);
  }
  SUBCASE("failed") {
    run(b, {1}, {{1, 0}});
    CHECK(check_merges({a, b}, {}, {3, 0}) == 0);
  }
  SUBCASE("done, with another result") {
    run(b, {1}, {{1, 6}});
    CHECK(check_merges({a, b}, {}, {3, 6}) == 0);
    CHECK(merge_ledgers({a, b}, out).uncertain == 0);
  }
  SUBCASE("nobody's own: what there is counts") {
    CHECK(check_merges({a}, {}, {3, 8}) == 0);
    const MergeResult merged = merge_ledgers({a}, out);
    CHECK(merged.uncertain == 1);
    REQUIRE(merged.warnings.size() == 1);
    CHECK(contains(merged.warnings[0], manifest[1].path + ": no folder's shard has this to do"));
  }
}

TEST_CASE_FIXTURE(Shards, "a slide is what its own shard says, whatever joined folders and runs without shards have") {
  run(a, {0}, {{0, 3}});
  run(b, {1}, {{1, 8}});
  merge_ledgers({a, b}, joined);
  // Its file is another now.
  folder.write("slide-1", std::string("another"));
  std::string third = joined;
  SUBCASE("joined results") {}
  SUBCASE("a run without shards") {
    third = (folder / "whole").string();
    run_whole(third, {{0, 3}, {1, 8}});
  }
  run(b, {1});
  check_merges({a, b, third}, {manifest[1].path}, {3});
  run(b, {1}, {{1, 6}});
  const auto again = [&] { check_merges({a, b, third}, {}, {3, 6}); };
  if (third == joined) CHECK_THROWS_AS(again(), ConfigError);
  if (third != joined) again();
  // Where its shard isn't named, they count.
  check_merges({a, third}, {}, {3, 8});
}

TEST_CASE_FIXTURE(Shards, "a slide that several shards have as their own is to be done where one has it to do") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  // As sizes divide them now.
  run(b, {1});
  const std::vector<std::string> missing = {manifest[1].path};
  for (const auto& parts : {std::vector<std::string>{a, b}, {b, a}}) {
    const MergeResult merged = merge_ledgers(parts, out);
    CHECK(merged.missing == missing);
    REQUIRE(merged.warnings.size() == 1);
    CHECK(contains(merged.warnings[0], manifest[1].path + ": ended in one folder, and still to do in another"));
    CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  }
  run(b, {1}, {{1, 8}});
  CHECK(merge_ledgers({a, b}, out).missing.empty());
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 8});
}

TEST_CASE_FIXTURE(Shards, "a shard that goes on from joined results is a shard") {
  const std::string other = (folder / "other").string();
  run_whole(a, {{0, 3}, {1, 8}});
  for (const std::string& target : {joined, other}) merge_ledgers({a}, target);
  folder.write("slide-1", std::string("another"));
  {
    Ledger ledger(ledger_config(joined));
    CHECK(start_shard(ledger, manifest, {1}).todo.size() == 1);
  }
  const std::vector<std::string> missing = {manifest[1].path};
  CHECK(merge_ledgers({joined, other}, out).missing == missing);
}

TEST_CASE_FIXTURE(Shards, "what is left in another shard's folder doesn't count beside joined results") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  run(a, {0});
  run(b, {1}, {{1, 6}});
  merge_ledgers({a, b}, joined);
  check_merges({a, joined}, {}, {3, 6});
}

TEST_CASE_FIXTURE(Shards, "what an earlier run left is no more once it was joined") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  run(a, {0});
  CHECK(merge_ledgers({a}, joined).uncertain == 1);
  for (int times = 0; times < 2; ++times) {
    const MergeResult merged = merge_ledgers({joined}, out);
    CHECK(merged.missing.empty());
    CHECK(merged.uncertain == 1);
    CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 8});
  }
  // Its own shard outranks it, and so does a run without shards. The folders without the joined results are sure.
  run(b, {1}, {{1, 6}});
  check_merges({joined, b}, {}, {3, 6});
  CHECK(merge_ledgers({joined, b}, out).uncertain == 1);
  CHECK(merge_ledgers({a, b}, (folder / "sure").string()).uncertain == 0);
  run_whole((folder / "whole").string(), {{0, 3}, {1, 6}});
  check_merges({joined, (folder / "whole").string()}, {}, {3, 6});
}

TEST_CASE_FIXTURE(Shards, "a slide that is still to do is told from one that a folder did and that doesn't count") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  run(a, {0});
  run(b, {1});
  using NotCounted = std::map<std::string, std::string>;
  CHECK(merge_ledgers({a, b}, out).not_counted == NotCounted{{manifest[1].path, a}});
  run(a, {0, 1});
  // As sizes divide them now: one has done it, and another not.
  CHECK(merge_ledgers({b, a}, out).not_counted == NotCounted{{manifest[1].path, a}});
  const std::string none = (folder / "none").string();
  run(none, {0, 1}, {{0, 3}});
  const MergeResult merged = merge_ledgers({none}, (folder / "new").string());
  CHECK(merged.missing == std::vector<std::string>{manifest[1].path});
  CHECK(merged.not_counted.empty());
  CHECK(merged.repeats.empty());
  // What was done and is to be repeated is told from both.
  folder.write("slide-0", std::string("another"));
  run(none, {0, 1});
  CHECK(merge_ledgers({none}, joined).repeats == std::set<std::string>{manifest[0].path});
  CHECK(merge_ledgers({joined}, (folder / "newer").string()).repeats == std::set<std::string>{manifest[0].path});
}

TEST_CASE_FIXTURE(Shards, "slides that others have instead of a shard that isn't named are counted") {
  run(a, {0}, {{0, 3}});
  run(b, {1}, {{1, 8}});
  merge_ledgers({a, b}, joined);
  CHECK(merge_ledgers({a, b, joined}, out).warnings.empty());
  const std::string line = joined + ": 1 slide comes from here, as no named folder's shard has it to do";
  const MergeResult merged = merge_ledgers({a, joined}, (folder / "new").string());
  REQUIRE(merged.warnings.size() == 1);
  CHECK(contains(merged.warnings[0], line));
  CHECK(merged.uncertain == 0);
}

TEST_CASE_FIXTURE(Shards, "what was joined stays, whatever ends the merge behind it") {
  run_whole(a, {{0, 3}, {1, 8}});
  const auto fail_behind = [&]() -> bool {
    if (fs::exists(fs::path(out) / "maps/slide-1.npy")) throw std::runtime_error("something else");
    return false;
  };
  CHECK_THROWS_AS(merge_ledgers({a}, out, {false, fail_behind}), std::runtime_error);
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 8});
  CHECK(merge_ledgers({a}, out).missing.empty());
}

TEST_CASE_FIXTURE(Shards, "a repeated merge leaves out what its own shard has to do again") {
  run(a, {0}, {{0, 3}});
  run(b, {1}, {{1, 8}});
  CHECK(merge_ledgers({a, b}, out).missing.empty());
  folder.write("slide-1", std::string("another"));
  run(b, {1});
  const std::vector<std::string> missing = {manifest[1].path};
  const fs::path map = folder / "out/maps/slide-1.npy";
  CHECK(fs::exists(map));
  CHECK(merge_ledgers({a, b}, out).missing == missing);
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  CHECK_FALSE(fs::exists(map));
  CHECK(fs::exists(folder / "out/maps/slide-0.npy"));
  CHECK(merge_ledgers({b, a}, (folder / "new").string()).missing == missing);
  CHECK(text_of(fs::path(out) / "slides.csv") == text_of(folder / "new/slides.csv"));
  // What a folder that isn't named has is kept.
  CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({b}, out); }),
                 "holds 1 slide of an earlier joining that none of the folders has, first " + manifest[0].path));
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  run(b, {1}, {{1, 6}});
  CHECK(merge_ledgers({a, b}, out).missing.empty());
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 6});
}

TEST_CASE_FIXTURE(Shards, "a repeated merge leaves out what a run without shards has to do again") {
  const auto check_again = [&](const std::vector<std::string>& parts) {
    CHECK(merge_ledgers(parts, out).missing == std::vector<std::string>{manifest[1].path});
    CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
    CHECK(merge_ledgers(parts, (folder / "new").string()).missing == std::vector<std::string>{manifest[1].path});
    CHECK(text_of(fs::path(out) / "slides.csv") == text_of(folder / "new/slides.csv"));
  };
  run_whole(a, {{0, 3}, {1, 8}});
  CHECK(merge_ledgers({a}, out).missing.empty());
  folder.write("slide-1", std::string("another"));
  run_whole(a, {});
  SUBCASE("alone") { check_again({a}); }
  SUBCASE("beside a shard that knows the slide as another's") {
    run(b, {0}, {{0, 3}});
    check_again({a, b});
    check_again({b, a});
  }
  SUBCASE("joined results that never had it") {
    merge_ledgers({a}, joined);
    check_again({joined});
  }
  SUBCASE("joined results of a run that never did it have nothing to do") {
    run_whole(b, {{0, 3}});
    merge_ledgers({b}, joined);
    CHECK(contains(message_of<ConfigError>([&] { merge_ledgers({joined}, out); }),
                   "holds 1 slide of an earlier joining that none of the folders has, first " + manifest[1].path));
    CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 8});
  }
  run_whole(a, {{1, 6}});
  CHECK(merge_ledgers({a}, out).missing.empty());
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 6});
}

TEST_CASE_FIXTURE(Shards, "no folder's result counts for a slide that a run without shards has to do again") {
  const std::string shard = (folder / "shard").string();
  run_whole(a, {{0, 3}});
  run_whole(b, {{0, 3}, {1, 8}});
  // It does for one that the run never did.
  check_merges({a, b}, {}, {3, 8});
  run_whole(a, {{1, 8}});
  check_merges({a, b}, {}, {3, 8});
  folder.write("slide-1", std::string("another"));
  run_whole(a, {});
  const std::vector<std::string> missing = {manifest[1].path};
  const MergeResult merged = merge_ledgers({a, b}, out);
  CHECK(merged.missing == missing);
  REQUIRE(merged.warnings.size() == 1);
  CHECK(contains(merged.warnings[0], manifest[1].path + ": ended in one folder, and still to do in another"));
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3});
  check_merges({a, b}, missing, {3});
  SUBCASE("its own shard outranks both") {
    run(shard, {1});
    check_merges({a, b, shard}, missing, {3});
    run(shard, {1}, {{1, 6}});
    check_merges({a, b, shard}, {}, {3, 6});
  }
  SUBCASE("both do it again") {}
  run_whole(a, {{1, 6}});
  run_whole(b, {{1, 6}});
  check_merges({a, b}, {}, {3, 6});
}

TEST_CASE_FIXTURE(Shards, "a repeated merge of joined results leaves out what they lack until it is done again") {
  const fs::path map = folder / "out/maps/slide-1.npy";
  const auto merge_twice = [&] {
    const MergeResult first = merge_ledgers({a, b}, joined);
    const MergeResult second = merge_ledgers({joined}, out);
    CHECK(second.missing == first.missing);
    CHECK(seeds_in(out) == seeds_in(joined));
    CHECK(fs::exists(map) == fs::exists(fs::path(joined) / "maps/slide-1.npy"));
    return second.missing;
  };
  run(a, {0}, {{0, 3}});
  run(b, {1}, {{1, 8}});
  CHECK(merge_twice().empty());
  folder.write("slide-1", std::string("another"));
  run(b, {1});
  CHECK(merge_twice() == std::vector<std::string>{manifest[1].path});
  CHECK_FALSE(fs::exists(map));
  // No other folder's result takes its place.
  run_whole((folder / "whole").string(), {{0, 3}, {1, 8}});
  check_merges({joined, (folder / "whole").string()}, {manifest[1].path}, {3});
  merge_ledgers({joined}, out);
  run(b, {1}, {{1, 6}});
  CHECK(merge_twice().empty());
  CHECK(seeds_in(out) == std::vector<std::uint64_t>{3, 6});
  CHECK(fs::exists(map));
}

TEST_CASE_FIXTURE(Shards, "joined results that never had a slide know that it is to be done again") {
  const std::string whole = (folder / "whole").string();
  const std::string again = (folder / "again").string();
  run_whole(whole, {{0, 3}, {1, 8}});
  std::vector<std::string> parts = {a, b};
  std::function<void()> redo = [this] { run(b, {1}, {{1, 6}}); };
  SUBCASE("by its shard") {
    run(a, {0}, {{0, 3}});
    run(b, {1}, {{1, 8}});
    folder.write("slide-1", std::string("another"));
    run(b, {1});
  }
  SUBCASE("by a run without shards") {
    run_whole(a, {{0, 3}, {1, 8}});
    folder.write("slide-1", std::string("another"));
    run_whole(a, {});
    parts = {a};
    redo = [this] { run_whole(a, {{1, 6}}); };
  }
  SUBCASE("by one shard of two that have it") {
    run(a, {0, 1}, {{0, 3}, {1, 6}});
    run(b, {1});
  }
  const std::vector<std::string> missing = {manifest[1].path};
  CHECK(merge_ledgers(parts, joined).missing == missing);
  // What another folder still has is of the earlier file.
  check_merges({joined, whole}, missing, {3});
  // Joined results of joined results know it, too.
  CHECK(merge_ledgers({joined}, again).missing == missing);
  check_merges({again, whole}, missing, {3});
  redo();
  CHECK(merge_ledgers(parts, joined).missing.empty());
  check_merges({joined}, {}, {3, 6});
}

TEST_CASE_FIXTURE(Shards, "nested merges give what a flat one gives: a slide's shard goes before runs without shards") {
  const std::string whole = (folder / "whole").string();
  const std::string again = (folder / "again").string();
  std::vector<Outcome> outcomes;
  SUBCASE("done") { outcomes = {{1, 8}}; }
  SUBCASE("failed") { outcomes = {{1, 0}}; }
  SUBCASE("never done") {}
  run_whole(whole, {{0, 3}, {1, 6}});
  run(a, {0}, {{0, 3}});
  run(b, {1}, outcomes);
  const std::vector<std::string> missing(1 - outcomes.size(), manifest[1].path);
  std::vector<std::uint64_t> seeds = {3};
  for (const Outcome outcome : outcomes) seeds.push_back(outcome.seed);
  check_merges({a, b, whole}, missing, seeds);
  merge_ledgers({b, whole}, joined);
  merge_ledgers({joined}, again);
  for (const std::string& nested : {joined, again}) check_merges({a, nested, whole}, missing, seeds);
}

TEST_CASE_FIXTURE(Shards, "what no shard has to do is no result of joined folders, either") {
  run(a, {0, 1}, {{0, 3}, {1, 8}});
  run(a, {0});
  run(b, {0}, {{0, 3}});
  check_merges({a, b}, {}, {3, 8});
  merge_ledgers({b}, joined);
  check_merges({a, joined}, {}, {3, 8});
}

TEST_CASE_FIXTURE(Shards, "a shard's result that joined results have to repeat doesn't count") {
  for (const std::string& part : {a, b}) {
    run(part, {0, 1}, {{0, 3}, {1, 8}});
    tamper(fs::path(part) / "run.sqlite", "UPDATE slides SET ended_at = 1000");
  }
  folder.write("slide-1", std::string("another"));
  run(b, {0, 1});
  merge_ledgers({b}, joined);
  check_merges({a, b}, {manifest[1].path}, {3});
  check_merges({a, joined}, {manifest[1].path}, {3});
}

TEST_CASE_FIXTURE(Shards, "a shard that was started with another list is said to be") {
  manifest = make_files(folder, 4);
  const std::vector<ManifestEntry> two(manifest.begin(), manifest.begin() + 2);
  const std::vector<ManifestEntry> three(manifest.begin(), manifest.begin() + 3);
  const auto start = [](const std::string& part, const std::vector<ManifestEntry>& list,
                        const std::vector<std::size_t>& own) {
    Ledger ledger(ledger_config(part));
    const LedgerStart begun = start_shard(ledger, list, own);
    for (const std::size_t i : begun.todo) end_slide(ledger, list, {i, i + 1});
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
  constexpr const char* older = "; start the shards whose list is older again";
  SUBCASE("one that a slide left") {
    start(b, two, {1});
    const std::vector<std::string> expected = {
        a + ": lists 1 slide that left the list of other shards: " + manifest[2].path + older};
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
              both, b + ": lists 1 slide that left the list of other shards: " + manifest[2].path + older) == 1);
  }
  SUBCASE("folders that are no shards have lists of their own") {
    {
      Ledger ledger(ledger_config(folder / "c"));
      ledger.begin({manifest[3]}, false);
    }
    CHECK(warnings({a, b, (folder / "c").string()}, (folder / "second").string()).empty());
  }
}

TEST_CASE_FIXTURE(Shards,
                  "a repeated merge writes maps of slides that were done again, and deletes those of failed ones") {
  const fs::path map = folder / "out/maps/slide-1.npy";
  run(a, {0}, {{0, 3}});
  run(b, {1}, {{1, 8}});
  merge_ledgers({a, b}, out);
  const std::string first = text_of(map);
  const auto do_again = [&](const std::string& content, std::uint64_t seed) {
    folder.write("slide-1", content);
    run(b, {1}, {{1, seed}});
    merge_ledgers({a, b}, out);
  };
  do_again("another", 6);
  merge_ledgers({a, b}, joined);
  CHECK(text_of(map) == text_of(fs::path(joined) / "maps/slide-1.npy"));
  CHECK(text_of(map) != first);
  do_again("a third one", 0);
  CHECK_FALSE(fs::exists(map));
  do_again("the first again", 8);
  CHECK(text_of(map) == first);
  CHECK(fs::exists(folder / "out/maps/slide-0.npy"));
}
