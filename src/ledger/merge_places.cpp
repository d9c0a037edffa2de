#include "ledger/merge_places.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string_view>

namespace slidestream {

namespace {

// The column `mine` of joined results: whose a slide is in the lowest two bits, then whether that is doubted or mixed.
// A run has 1 there, or 0.
constexpr std::int64_t mine_of_result = 1;
constexpr std::int64_t mine_of_leftover = 2;
constexpr std::int64_t mine_of_shard = 3;
constexpr std::int64_t whose = 3;
constexpr std::int64_t doubted = 4;

}  // namespace

SlideClaim SlideClaim::of(std::int64_t mine, bool is_shard) {
  SlideClaim claim;
  if (const std::int64_t kind = mine & whose; kind == mine_of_shard || (kind == mine_of_result && is_shard)) {
    claim.standing = Standing::shard;
  } else if (kind == mine_of_result) {
    claim.standing = Standing::result;
  }
  claim.is_doubted = (mine & doubted) != 0;
  return claim;
}

std::int64_t SlideClaim::mine() const {
  const std::int64_t kind = standing == Standing::leftover ? mine_of_leftover
                            : standing == Standing::result ? mine_of_result
                                                           : mine_of_shard;
  return kind | (is_doubted ? doubted : 0);
}

void add_places(Database& database, bool is_shard, bool is_joined, Places& places) {
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
    // Whose slide it isn't, and never was, says nothing.
    if (claim.standing != Standing::leftover || once_ended) {
      const SlideState state = !is_ended                ? SlideState::undone
                               : select.integer(7) != 0 ? SlideState::done
                                                        : SlideState::failed;
      const std::pair says(claim.standing == Standing::leftover, state);
      place.do_differ = place.do_differ || place.said.value_or(says) != says;
      place.said = says;
      place.is_joined = place.is_joined || is_joined;
      place.is_doubted = place.is_doubted || claim.is_doubted;
    }
    if (claim.standing < place.standing) continue;
    if (claim.standing > place.standing) {
      place.standing = claim.standing;
      place.once_ended = std::nullopt;
      place.ended_at = 0;
      place.is_undone = false;
    }
    place.once_ended = std::max(place.once_ended, once_ended);
    if (is_ended) {
      place.ended_at = std::max(place.ended_at, once_ended.value_or(0));
    } else if (claim.standing == Standing::shard || (claim.standing == Standing::result && once_ended)) {
      // Another folder's result stands in for what a run without shards never did, and not for what it does again.
      place.is_undone = true;
    }
  }
}

std::vector<ManifestEntry> make_manifest(const Places& places) {
  std::vector<const Places::value_type*> order;
  for (const auto& place : places) order.push_back(&place);
  std::ranges::stable_sort(order, {}, [](const auto* place) { return place->second.position; });
  std::vector<ManifestEntry> manifest;
  manifest.reserve(order.size());
  for (const auto* entry : order) {
    const Place& place = entry->second;
    const SlideClaim claim = {place.standing, place.is_unsettled()};
    manifest.push_back({place.path, entry->first, place.is_undone, place.bytes, claim.mine(), place.once_ended});
  }
  return manifest;
}

}  // namespace slidestream
