#include "ledger/shard.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include <slidestream/error.hpp>

using namespace slidestream;

TEST_CASE("shards are named from 1 to N") {
  CHECK(parse_shard("2/8").number == 2);
  CHECK(parse_shard("2/8").count == 8);
  for (const char* wrong : {"", "1", "/", "0/4", "5/4", "1/0", "-1/4", "1/4x", " 1/4", "1//4", "1/99999999999"}) {
    CHECK_THROWS_AS(parse_shard(wrong), ConfigError);
  }
}

TEST_CASE("every slide is in one shard, the same whatever the order") {
  std::vector<std::string> paths;
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 3505; ++i) {
    paths.push_back("/archive/slide-" + std::to_string(i) + ".svs");
    sizes.push_back(static_cast<std::uint64_t>(i % 37) * 50'000'000);
  }
  for (const Shard::By by : {Shard::By::path, Shard::By::size}) {
    const std::vector<int> shards = shards_of(paths, sizes, 8, by);
    std::vector<std::uint64_t> counts(9);
    std::vector<std::uint64_t> bytes(9);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      REQUIRE(shards[i] >= 1);
      REQUIRE(shards[i] <= 8);
      ++counts[static_cast<std::size_t>(shards[i])];
      bytes[static_cast<std::size_t>(shards[i])] += sizes[i];
    }
    const auto [least, most] = std::minmax_element(bytes.begin() + 1, bytes.end());
    if (by == Shard::By::size) CHECK(*most - *least <= 36 * 50'000'000ULL);
    CHECK(*std::min_element(counts.begin() + 1, counts.end()) > 3505 / 8 * 3 / 4);

    std::vector<std::size_t> order(paths.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    std::vector<std::string> other_paths;
    std::vector<std::uint64_t> other_sizes;
    for (const std::size_t i : order) {
      other_paths.push_back(paths[i]);
      other_sizes.push_back(sizes[i]);
    }
    const std::vector<int> others = shards_of(other_paths, other_sizes, 8, by);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(others[i] == shards[order[i]]);
  }
  // On every machine and in every version: slides that are done stay where they are.
  CHECK(shards_of({"/a.svs", "/b.svs", "/c.svs", "/archive/d.svs"}, {}, 4, Shard::By::path) ==
        std::vector<int>{2, 3, 4, 3});
}
