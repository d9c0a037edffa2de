#include "ledger/shard.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <queue>
#include <slidestream/error.hpp>
#include <utility>

#include "config/suggest.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

constexpr int most_shards = 1'000'000;

bool parse(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Shard parse_shard(std::string_view text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  const bool numbers = slash != std::string_view::npos && parse(text.substr(0, slash), shard.number) &&
                       parse(text.substr(slash + 1), shard.count);
  if (!numbers || shard.count < 1 || shard.count > most_shards || shard.number < 1 || shard.number > shard.count) {
    throw ConfigError("--shard is '" + one_line(text) + "'; expected I/N with I from 1 to N, such as 2/8");
  }
  return shard;
}

std::vector<int> shards_of(const std::vector<std::string>& paths, const std::vector<std::uint64_t>& sizes, int count,
                           Shard::By by) {
  std::vector<int> shards(paths.size(), 1);
  if (by == Shard::By::path) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      shards[i] = static_cast<int>(stable_hash(paths[i]) % static_cast<std::uint64_t>(count)) + 1;
    }
    return shards;
  }
  // The largest first, each to the shard that has least; paths settle what sizes leave open.
  std::vector<std::size_t> order(paths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : paths[a] < paths[b];
  });
  using Load = std::pair<std::uint64_t, int>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int shard = 1; shard <= count; ++shard) loads.emplace(0, shard);
  for (const std::size_t i : order) {
    auto [bytes, shard] = loads.top();
    loads.pop();
    shards[i] = shard;
    // An empty file takes a moment too.
    loads.emplace(bytes + sizes[i] + 1, shard);
  }
  return shards;
}

void store_shards(Database& database, int count) {
  database.execute("DELETE FROM meta WHERE name = 'shards'");
  if (count == 0) return;
  Statement store(database, "INSERT INTO meta VALUES('shards', ?1)");
  store.bind(1, std::int64_t{count}).run();
}

std::int64_t stored_shards(Database& database) {
  Statement select(database, "SELECT value FROM meta WHERE name = 'shards' AND typeof(value) = 'integer'");
  return select.step() ? select.integer(0) : 0;
}

}  // namespace slidestream
