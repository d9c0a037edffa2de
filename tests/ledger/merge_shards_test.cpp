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

/// Starts one of so many shards, which has the slides at `own`.
void start_shard(Ledger& ledger, std::vector<ManifestEntry> manifest, const std::vector<std::size_t>& own,
                 int shards = 2) {
  for (std::size_t i = 0; i < manifest.size(); ++i) manifest[i].mine = std::ranges::count(own, i) > 0;
  ledger.begin(manifest, false, {}, shards);
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
  }
  SUBCASE("nobody's own: what there is counts") {
    parts = {a};
    check(0, {}, {3, 8});
  }
}
