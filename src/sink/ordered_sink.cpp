#include "sink/ordered_sink.hpp"

#include <slidestream/error.hpp>
#include <string>
#include <utility>

namespace slidestream {

namespace {

// What is written at once, before its tiles can be seen.
constexpr std::size_t most_tiles_at_once = 256;
constexpr std::uint64_t most_bytes_at_once = std::uint64_t{8} << 20;

}  // namespace

OrderedSink::OrderedSink(std::filesystem::path file, const PyramidLayout& layout, int writers)
    : file_(std::move(file)), layout_(layout), tiles_(layout.tiles()), writers_(writers) {}

bool OrderedSink::put(int level, TileIndex index, EncodedTile tile) {
  const auto place = [&index] { return "(" + std::to_string(index.column) + ", " + std::to_string(index.row) + ")"; };
  if (level < 0 || level >= layout_.levels() || index.column < 0 || index.column >= layout_.columns(level) ||
      index.row < 0 || index.row >= layout_.rows(level)) {
    throw Error(file_.string() + ": level " + std::to_string(level) + " has no tile " + place());
  }
  const std::int64_t position = layout_.position(level, index);
  const std::lock_guard lock(mutex_);
  if (failure_ || dropped_) return false;
  const bool fresh = position >= next_ && waiting_.try_emplace(position, Tile{level, index, std::move(tile)}).second;
  if (!fresh) {
    throw Error(file_.string() + ": tile " + place() + " of level " + std::to_string(level) + " was there before");
  }
  if (draining_ == writers_ || waiting_.begin()->first != next_) return false;
  ++draining_;
  return true;
}

WrittenTiles OrderedSink::drain() {
  WrittenTiles written;
  std::vector<Tile> tiles;
  while (take(tiles)) {
    std::uint64_t bytes = 0;
    try {
      bytes = write(tiles);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      waiting_.clear();
      --draining_;
      throw;
    }
    written_.fetch_add(static_cast<std::int64_t>(tiles.size()), std::memory_order_relaxed);
    written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    written.tiles += tiles.size();
    written.bytes += bytes;
    tiles.clear();
  }
  return written;
}

std::vector<PublishedFile> OrderedSink::publish() {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (draining_ > 0 || dropped_ || next_ != tiles_) {
      throw Error(file_.string() + ": " + std::to_string(written()) + " of " + std::to_string(tiles_) +
                  " tiles were written");
    }
  }
  return finish();
}

void OrderedSink::drop() noexcept {
  // Owners are let go of without the lock: they may do anything.
  std::map<std::int64_t, Tile> waiting;
  {
    const std::lock_guard lock(mutex_);
    dropped_ = true;
    waiting.swap(waiting_);
  }
}

/// The next tiles, as far as they are there. When none is, the call of `drain` is over.
bool OrderedSink::take(std::vector<Tile>& tiles) {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  while (!waiting_.empty() && waiting_.begin()->first == next_ && tiles.size() < most_tiles_at_once &&
         bytes < most_bytes_at_once) {
    tiles.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
    bytes += tiles.back().tile.bytes.size();
    ++next_;
  }
  if (tiles.empty()) --draining_;
  return !tiles.empty();
}

}  // namespace slidestream
