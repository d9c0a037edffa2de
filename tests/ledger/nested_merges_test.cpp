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
  /// A run of the shard that has the slide, or one without shards. It ends the slide with that seed, not with 0.
  std::string run(const std::string& name, bool is_shard, std::uint64_t seed) {
    const Config config = ledger_config(folder / name);
    Ledger ledger(config);
    ledger.begin(manifest, false, {}, is_shard ? 2 : 0);
    SlideResult slide = result_of(manifest[0].path, seed);
    if (seed != 0) ledger.started(0);
    if (seed != 0) ledger.ended(0, slide);
    return config.output.dir;
  }

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
          seed = static_cast<std::int64_t>(slide.sums.histogram[0]);
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

TEST_CASE_FIXTURE(Nested, "a shard's older result doesn't go before a newer one in joined results") {
  const std::string older = run("a", true, 3);
  const std::string newer = run("b", true, 8);
  CHECK(seed_of({older, newer}) == -1);
  CHECK(seed_of({older, joined({newer})}) == -1);
  CHECK(seed_of({joined({older}), newer}) == -1);
  CHECK(seed_of({joined({older}), joined({newer})}) == -1);
  // What joined results had of the same folder is replaced.
  const std::string before = joined({older});
  folder.write("slide-0", std::string("another"));
  run("a", true, 6);
  CHECK(seed_of({older, before}) == 6);
  CHECK(seed_of({joined({older}), before}) == 6);
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
  CHECK(seed_of({unfinished, before}) == 3);
  CHECK(seed_of({joined({unfinished}), before}) == 3);
}

TEST_CASE_FIXTURE(Nested, "joined results of a run that had to repeat a slide don't stay so once it has") {
  const std::string whole = run("whole", false, 3);
  folder.write("slide-0", std::string("another"));
  run("whole", false, 0);
  const std::string before = joined({whole});
  CHECK(seed_of({before, whole}) == 0);
  run("whole", false, 8);
  CHECK(seed_of({before, whole}) == 8);
}

TEST_CASE_FIXTURE(Nested, "a run without shards that is later than a slide's shard, and differs, is told") {
  const std::string shard = run("a", true, 3);
  const std::string same = run("same", false, 3);
  const std::string whole = run("whole", false, 8);
  CHECK(seed_of({shard, same}) == 3);
  CHECK(last.uncertain == 0);
  const auto check = [&](const std::vector<std::string>& parts) {
    CHECK(seed_of(parts) == 3);
    CHECK(last.uncertain == 1);
    REQUIRE_FALSE(last.warnings.empty());
    CHECK(contains(last.warnings.back(), manifest[0].path + ": a run without shards ended this later than its shard"));
  };
  check({shard, whole});
  check({joined({shard}), whole});
  check({shard, joined({whole})});
  const std::string both = joined({shard, whole});
  check({both});
  check({both, shard});
  SUBCASE("also if that run is to repeat it") {
    folder.write("slide-0", std::string("another"));
    run("whole", false, 0);
    check({shard, whole});
  }
  SUBCASE("until the shard has done it again") {
    folder.write("slide-0", std::string("another"));
    run("a", true, 8);
    CHECK(seed_of({shard, whole, both}) == 8);
    CHECK(last.uncertain == 0);
  }
}
