#include "ledger/merge_places.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string_view>

namespace slidestream {

namespace {

// The column `mine` of joined results: whose a slide is in the lowest two bits, then whether that is doubted, and above
// when it was read. A run has 1 there, without a time, or 0.
constexpr std::int64_t mine_of_result = 1;
constexpr std::int64_t mine_of_leftover = 2;
constexpr std::int64_t mine_of_shard = 3;
constexpr std::int64_t whose = 3;
constexpr std::int64_t doubted = 4;
constexpr int time_shift = 3;

}  // namespace

SlideClaim SlideClaim::of(std::int64_t mine, bool is_shard) {
  SlideClaim claim;
  if (const std::int64_t kind = mine & whose; kind == mine_of_shard || (kind == mine_of_result && is_shard)) {
    claim.standing = Standing::shard;
  } else if (kind == mine_of_result) {
    claim.standing = Standing::result;
  }
  claim.is_doubted = (mine & doubted) != 0;
  if (mine >> time_shift > 0) claim.read_at = mine >> time_shift;
  return claim;
}

std::int64_t SlideClaim::mine() const {
  const std::int64_t kind = standing == Standing::leftover ? mine_of_leftover
                            : standing == Standing::result ? mine_of_result
                                                           : mine_of_shard;
  return (read_at << time_shift) | (is_doubted ? doubted : 0) | kind;
}

void add_places(Database& database, bool is_shard, Places& places) {
  Statement select(
      database,
      "SELECT canonical, path, position, size, mine, state IN ('done', 'failed'), ended_at, state = 'done' "
      "FROM slides WHERE position IS NOT NULL");
  const auto check = [&](std::string_view text) {
    if (text.empty() || text.find('\0') != std::string_view::npos) {
      throw OutputError(database.file().string() + ": damaged: a path can't be what was written");
    }
  };
  while (select.step()) {
    const SlideClaim claim = SlideClaim::of(select.integer(4), is_shard);
    const bool is_ended = select.integer(5) != 0;
    const auto once_ended = select.is_null(6) ? std::nullopt : std::optional(select.integer(6));
    check(select.bytes(0));
    check(select.bytes(1));
    const auto [entry, is_new] = places.try_emplace(select.text(0));
    Place& place = entry->second;
    const std::string path = select.text(1);
    place.position = is_new ? select.integer(2) : std::min(place.position, select.integer(2));
    place.path = is_new ? path : std::min(place.path, path);
    place.bytes = std::max(place.bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(0, select.integer(3))));
    if (is_shard) ++place.shards;
    place.is_own = place.is_own || (is_shard && claim.standing == Standing::shard);
    place.has_ended = place.has_ended || once_ended.has_value();
    if (claim.standing < place.standing) continue;
    if (claim.standing > place.standing) {
      place.standing = claim.standing;
      place.once_ended = std::nullopt;
      place.ended_at = place.read_at = 0;
      place.done_at = place.undone_at = place.doubted_at = -1;
    }
    place.once_ended = std::max(place.once_ended, once_ended);
    place.read_at = std::max(place.read_at, claim.read_at);
    if (select.integer(7) != 0) place.done_at = std::max(place.done_at, claim.read_at);
    if (claim.is_doubted) place.doubted_at = std::max(place.doubted_at, claim.read_at);
    if (is_ended) {
      place.ended_at = std::max(place.ended_at, once_ended.value_or(0));
    } else if (claim.standing == Standing::shard || (claim.standing == Standing::result && once_ended)) {
      // Another folder's result stands in for what a run without shards never did, and not for what it does again.
      place.undone_at = std::max(place.undone_at, claim.read_at);
    }
  }
}

std::vector<ManifestEntry> make_manifest(const Places& places, std::int64_t now) {
  std::vector<const Places::value_type*> order;
  for (const auto& place : places) order.push_back(&place);
  std::ranges::stable_sort(order, {}, [](const auto* place) { return place->second.position; });
  std::vector<ManifestEntry> manifest;
  manifest.reserve(order.size());
  for (const auto* entry : order) {
    const Place& place = entry->second;
    // Of what is kept: a result goes before a failure.
    const std::int64_t last = place.is_undone()                 ? place.undone_at
                              : place.done_at >= place.ended_at ? place.done_at
                                                                : place.read_at;
    // Clocks of machines may differ: no result is later than its own reading.
    const std::int64_t read_at = std::max(std::min(last, now), place.ended_at);
    const SlideClaim claim = {place.standing, read_at, place.is_doubted()};
    manifest.push_back({place.path, entry->first, place.is_undone(), place.bytes, claim.mine(), place.once_ended});
  }
  return manifest;
}

}  // namespace slidestream
