// Merges of merges give the results of one merge of all folders.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ledger/merge.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// A list of one slide, and what runs over it make of it.
class Nested {
 public:
  static constexpr std::uint64_t failure = 99;

  /// A run of the shard that has the slide, or one without shards. It ends the slide with that seed, and not with 0.
  std::string run(const std::string& name, bool is_shard, std::uint64_t seed) {
    const Config config = ledger_config(folder / name);
    Ledger ledger(config);
    ledger.begin(manifest, false, {}, is_shard ? 2 : 0);
    SlideResult slide = result_of(manifest[0].path, seed);
    if (seed == failure) {
      slide.done = false;
      slide.error = "decode: bad";
    }
    if (seed != 0) ledger.started(0);
    if (seed != 0) ledger.ended(0, slide);
    return config.output.dir;
  }

  /// Makes the slide another file.
  void change() { folder.write("slide-0", std::string("another")); }

  /// The seed of the slide in joined results; 0: it is missing. A refusal is -1.
  std::int64_t seed_of(std::vector<std::string> parts) {
    std::vector<std::int64_t> seeds;
    std::ranges::sort(parts);
    do {
      out = (folder / ("out-" + std::to_string(number++))).string();
      try {
        last = merge_ledgers(parts, out);
        std::int64_t seed = 0;
        LedgerView(std::filesystem::path(out) / "run.sqlite", ledger_bins).for_each([&](const SlideResult& slide) {
          seed = slide.done ? static_cast<std::int64_t>(slide.sums.histogram[0]) : std::int64_t{failure};
        });
        CHECK((seed == 0) == !last.missing.empty());
        seeds.push_back(seed);
      } catch (const ConfigError&) {
        seeds.push_back(-1);
      }
    } while (std::ranges::next_permutation(parts).found);
    CHECK(std::ranges::count(seeds, seeds.front()) == std::ssize(seeds));
    return seeds.front();
  }

  std::string joined(const std::vector<std::string>& parts) {
    seed_of(parts);
    return out;
  }

  TemporaryFolder folder;
  std::vector<ManifestEntry> manifest = make_files(folder, 1);
  int number = 0;
  std::string out;
  MergeResult last;
};

}  // namespace

TEST_CASE_FIXTURE(Nested, "results of one shard that differ are refused, also in joined results") {
  const std::string older = run("a", true, 3);
  const std::string newer = run("b", true, 8);
  CHECK(seed_of({older, newer}) == -1);
  CHECK(seed_of({older, joined({newer})}) == -1);
  CHECK(seed_of({joined({older}), newer}) == -1);
  CHECK(seed_of({joined({older}), joined({newer})}) == -1);
  // Joined results can't tell that a folder is the one that they read.
  const std::string before = joined({older});
  CHECK(seed_of({older, before}) == 3);
  CHECK(last.uncertain == 0);
  change();
  run("a", true, 6);
  CHECK(seed_of({older, before}) == -1);
  CHECK(seed_of({joined({older}), before}) == -1);
}

TEST_CASE_FIXTURE(Nested, "a shard that one of its folders hasn't done is still to do, also in joined results") {
  const std::string done = run("a", true, 3);
  const std::string unfinished = run("b", true, 0);
  CHECK(seed_of({done, unfinished}) == 0);
  CHECK(seed_of({done, joined({unfinished})}) == 0);
  CHECK(seed_of({joined({done}), unfinished}) == 0);
  CHECK(seed_of({joined({done}), joined({joined({unfinished})})}) == 0);
  const std::string before = joined({unfinished});
  run("b", true, 3);
  CHECK(seed_of({unfinished, done}) == 3);
  CHECK(seed_of({unfinished, before}) == 0);
}

TEST_CASE_FIXTURE(Nested, "joined results of a run that had to repeat a slide are left out once it has") {
  const std::string whole = run("whole", false, 3);
  change();
  run("whole", false, 0);
  const std::string before = joined({whole});
  CHECK(seed_of({before, whole}) == 0);
  run("whole", false, 8);
  CHECK(seed_of({before, whole}) == 0);
  CHECK(seed_of({whole}) == 8);
}

TEST_CASE_FIXTURE(Nested, "a failure beside a result leaves joined results in doubt") {
  const std::string done = run("a", true, 3);
  const std::string failed = run("b", true, failure);
  CHECK(seed_of({done, failed}) == 3);
  CHECK(last.uncertain == 0);
  const auto check = [&](const std::vector<std::string>& parts) {
    CHECK(seed_of(parts) == 3);
    CHECK(last.uncertain == 1);
    REQUIRE_FALSE(last.warnings.empty());
    CHECK(contains(last.warnings.back(), manifest[0].path + ": joined results were in doubt, or don't say the same"));
  };
  check({joined({done}), failed});
  check({done, joined({failed})});
  check({joined({done}), joined({failed})});
  check({joined({joined({done}), failed})});
  const std::string both = joined({done, failed});
  for (const auto& parts : {std::vector<std::string>{both}, {both, done}}) {
    CHECK(seed_of(parts) == 3);
    CHECK(last.uncertain == 0);
  }
  check({both, failed});
}

TEST_CASE("joined results are in doubt where a folder that they read has another role or begins anew") {
  const auto leave = [](Nested& test, const std::string& part) {
    // Another shard has the slide to do now.
    Ledger ledger(ledger_config(part));
    ledger.begin({{test.manifest[0].path, test.manifest[0].canonical, false}}, false, {}, 2);
  };
  for (const bool is_shard : {true, false}) {
    for (const std::string now : {"left", "undone and left", "left and joined", "another role", "another folder"}) {
      CAPTURE(is_shard);
      CAPTURE(now);
      Nested test;
      std::string part = test.run("a", is_shard, 3);
      const std::string before = test.joined({part});
      test.change();
      if (now == "undone and left") test.run("a", is_shard, 0);
      if (contains(now, "left")) leave(test, part);
      if (contains(now, "joined")) part = test.joined({part});
      if (now == "another role") test.run("a", !is_shard, 0);
      if (now == "another folder") part = test.run("b", is_shard, 0);
      test.seed_of({part});
      CHECK(test.last.uncertain + test.last.missing.size() == 1);
      test.seed_of({part, before});
      CHECK(test.last.uncertain + test.last.missing.size() > 0);
    }
  }
}

TEST_CASE_FIXTURE(Nested, "a run without shards that is later than a slide's shard, and differs, is told") {
  const std::string shard = run("a", true, 3);
  const std::string same = run("same", false, 3);
  const std::string whole = run("whole", false, 8);
  CHECK(seed_of({shard, same}) == 3);
  CHECK(last.uncertain == 0);
  const auto check = [&](const std::vector<std::string>& parts, const char* line) {
    CHECK(seed_of(parts) == 3);
    CHECK(last.uncertain == 1);
    REQUIRE_FALSE(last.warnings.empty());
    CHECK(contains(last.warnings.back(), manifest[0].path + line));
  };
  const char* const later = ": a run without shards ended this later than its shard";
  const char* const doubted = ": joined results were in doubt";
  check({shard, whole}, later);
  check({joined({shard}), whole}, later);
  check({shard, joined({whole})}, later);
  const std::string both = joined({shard, whole});
  CHECK(read_status(both).in_doubt == 1);
  CHECK(read_status(joined({shard, same})).in_doubt == 0);
  check({both}, doubted);
  check({both, shard}, doubted);
  check({joined({both}), whole}, doubted);
  SUBCASE("also if that run is to repeat it") {
    change();
    run("whole", false, 0);
    check({shard, whole}, later);
  }
  SUBCASE("until the shard has done it again") {
    change();
    run("a", true, 8);
    CHECK(seed_of({shard, whole}) == 8);
    CHECK(last.uncertain == 0);
    CHECK(seed_of({shard, whole, both}) == -1);
  }
}

TEST_CASE_FIXTURE(Nested, "joined results of a shard aren't in doubt beside a run without shards that ended alike") {
  for (const std::uint64_t seed : {std::uint64_t{3}, failure}) {
    CAPTURE(seed);
    const std::string shard = run("a" + std::to_string(seed), true, seed);
    const std::string whole = run("whole" + std::to_string(seed), false, seed);
    const std::string both = joined({shard, whole});
    const std::vector<std::vector<std::string>> merges = {{joined({shard}), whole},
                                                          {shard, joined({whole})},
                                                          {joined({shard}), joined({whole})},
                                                          {both, whole},
                                                          {both, shard},
                                                          {joined({both}), shard, whole}};
    for (const auto& parts : merges) {
      CHECK(seed_of(parts) == static_cast<std::int64_t>(seed));
      CHECK(last.uncertain == 0);
    }
  }
}

TEST_CASE_FIXTURE(Nested, "what a run without shards had later isn't lost where its shard was merged before") {
  std::string shard = run("a", true, 3);
  SUBCASE("as done") {}
  SUBCASE("as unfinished") { shard = run("b", true, 0); }
  const std::string early = joined({shard});
  change();
  run(std::filesystem::path(shard).filename().string(), true, 6);
  const std::string whole = run("whole", false, 8);
  const std::string nested = joined({early, whole});
  CHECK(last.uncertain + last.missing.size() == 1);
  CHECK(seed_of({shard, whole}) == 6);
  CHECK(last.uncertain == 1);
  CHECK(seed_of({nested, shard}) <= 0);
}

TEST_CASE_FIXTURE(Nested, "a merge of fewer folders into the same place drops no slide that failed") {
  const std::vector<ManifestEntry> files = make_files(folder, 2);
  manifest = {files[0]};
  const std::string done = run("a", false, 3);
  manifest = {files[1]};
  const std::string failed = run("b", false, failure);
  const std::string target = (folder / "target").string();
  merge_ledgers({done, failed}, target);
  CHECK_THROWS_WITH_AS(merge_ledgers({done}, target), doctest::Contains("that none of the folders has"), ConfigError);
}
