#include "stages/network_sessions.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <slidestream/error.hpp>

#include "planning/network_plan.hpp"

namespace slidestream {

bool Room::take(const Wake& wake) {
  const std::lock_guard lock(mutex_);
  if (free_ == 0) {
    if (wake) waiting_.push_back(wake);
    return false;
  }
  --free_;
  return true;
}

void Room::give_back() {
  std::deque<Wake> waiting;
  {
    const std::lock_guard lock(mutex_);
    ++free_;
    waiting.swap(waiting_);
  }
  for (const Wake& wake : waiting) wake();
}

bool Room::anybody_waits() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

NetworkSessions::NetworkSessions(const Network& network, const RunContext& context, NetworkWatch& watch)
    : network_(network), context_(context), watch_(watch), coming_(context.slides, true), left_(context.slides) {
  const std::size_t each = std::min(static_cast<std::size_t>(network.sessions()), context.most_sessions);
  for (std::size_t i = 0; i < each; ++i) {
    if (context.devices.empty()) sessions_.push_back(network.session(-1));
    for (const int device : context.devices) sessions_.push_back(network.session(device));
  }
  const std::size_t count = sessions_.size();
  places_ = std::make_unique<Room>(network_batches(count));
  threads_ = std::make_unique<runtime::OrderedIoThreads>(count);
}

std::shared_ptr<NetworkBatch> NetworkSessions::take(const Room::Wake& wake) {
  if (!places_->take(wake)) return nullptr;
  std::shared_ptr<NetworkBatch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (!batches_.empty()) {
      batch = std::move(batches_.back());
      batches_.pop_back();
    }
  }
  if (batch != nullptr) return batch;
  try {
    return new_batch();
  } catch (...) {
    places_->give_back();
    throw;
  }
}

void NetworkSessions::give_back(BatchPart& part) {
  std::shared_ptr<NetworkBatch> batch = std::move(part.batch);
  if (batch->parts.fetch_sub(1) == 1) give_back(std::move(batch));
}

void NetworkSessions::give_back(std::shared_ptr<NetworkBatch> batch) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  places_->give_back();
}

std::shared_ptr<SentBatch> NetworkSessions::close(BatchFiller::Filling& filling) {
  auto sent = std::make_shared<SentBatch>();
  sent->batch = filling.batch;
  for (BatchFiller::Member& member : filling.members) {
    const std::shared_ptr<SlideImages> images = member.images.lock();
    if (images == nullptr || images->dropped()) {
      clear(*filling.batch, member.part->first, member.part->tiles.size());
      continue;
    }
    auto found = std::ranges::find(sent->shares, images, &BatchShare::images);
    if (found == sent->shares.end()) found = sent->shares.insert(found, {images, member.network, {}});
    member.part->taken.assign(member.part->tiles.size(), 0);
    found->parts.push_back(member.part);
    filling.batch->parts.fetch_add(1);
  }
  clear(*filling.batch, filling.taken, tiles() - filling.taken);
  if (sent->shares.empty()) {
    give_back(std::move(filling.batch));
    return nullptr;
  }
  const auto state = sent->shares.size() == 1 ? BatchPart::State::alone : BatchPart::State::shared;
  for (BatchShare& share : sent->shares) {
    for (const auto& part : share.parts) part->state.store(state);
  }
  return sent;
}

void NetworkSessions::compute(SentBatch& sent, const Listener& listener) {
  std::unique_ptr<NetworkSession> session;
  {
    const std::lock_guard lock(mutex_);
    session = std::move(sessions_.back());
    sessions_.pop_back();
  }
  const Failure failure = try_to_compute(*session, *sent.batch, sent.shares);
  if (failure && lacks_memory(failure)) {
    // No slide's fault: all that are under way stay to be done.
    context_.on_fatal(std::make_exception_ptr(MemoryShortage(text_of_shortage())));
    for (BatchShare& share : sent.shares) {
      fail(share, failure);
      listener.done(share);
    }
  } else if (failure) {
    // Of several slides some may be without fault.
    std::shared_ptr<NetworkBatch> room;
    fail_or_divide(*session, *sent.batch, sent.shares, failure, room, listener);
  } else {
    for (BatchShare& share : sent.shares) listener.done(share);
  }
  const std::lock_guard lock(mutex_);
  sessions_.push_back(std::move(session));
}

bool NetworkSessions::nothing_of(std::size_t slide) {
  const std::lock_guard lock(mutex_);
  if (!coming_[slide]) return false;
  coming_[slide] = false;
  return --left_ == 0;
}

/// Null: it gave values.
NetworkSessions::Failure NetworkSessions::try_to_compute(NetworkSession& session, NetworkBatch& batch,
                                                         std::span<const BatchShare> shares) {
  const auto begun = runtime::Clock::now();
  const auto is_over = [&] {
    if (std::ranges::all_of(shares, [&](const BatchShare& share) { return watch_.is_over(*share.images); }))
      return true;
    // While several wait for it, it is nobody's time.
    const int limit = context_.config.input.max_seconds;
    return shares.size() > 1 && limit > 0 && runtime::Clock::now() - begun > std::chrono::seconds(limit);
  };
  try {
    const NetworkWatch::Running running(watch_, session, is_over);
    if (is_over()) throw Error("nobody wants it any more");
    session.run({batch.pixels.get(), pixels()}, {batch.values.get(), values()});
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Of a batch that failed: with one slide's tiles that is theirs, of several each half is computed again, but for
/// slides whose time is over. `room` is for that, made when first wanted.
void NetworkSessions::fail_or_divide(NetworkSession& session, NetworkBatch& batch, std::span<BatchShare> shares,
                                     const Failure& failure, std::shared_ptr<NetworkBatch>& room,
                                     const Listener& listener) {
  std::span<BatchShare> rest;
  if (shares.size() > 1) {
    const auto over = std::stable_partition(shares.begin(), shares.end(),
                                            [this](const BatchShare& share) { return !watch_.is_over(*share.images); });
    rest = shares.first(static_cast<std::size_t>(over - shares.begin()));
  }
  for (BatchShare& share : shares.subspan(rest.size())) {
    fail(share, failure);
    listener.done(share);
  }
  const std::size_t half = (rest.size() + 1) / 2;
  for (const std::span<BatchShare> part : {rest.first(half), rest.subspan(half)}) {
    if (part.empty()) continue;
    if (part.size() == 1) {
      for (const auto& tiles : part.front().parts) tiles->state.store(BatchPart::State::alone);
      listener.alone(part.front());
    }
    Failure again;
    try {
      if (room == nullptr) room = new_batch();
      again = compute_part(session, batch, part, *room);
    } catch (...) {
      again = std::current_exception();
    }
    if (again && lacks_memory(again)) {
      context_.on_fatal(std::make_exception_ptr(MemoryShortage(text_of_shortage())));
      for (BatchShare& share : part) {
        fail(share, again);
        listener.done(share);
      }
    } else if (again) {
      fail_or_divide(session, batch, part, again, room, listener);
    } else {
      for (BatchShare& share : part) listener.done(share);
    }
  }
}

/// Some slides' tiles, in their places, among zeros.
NetworkSessions::Failure NetworkSessions::compute_part(NetworkSession& session, NetworkBatch& batch,
                                                       std::span<const BatchShare> shares, NetworkBatch& room) {
  clear(room, 0, tiles());
  const auto for_each_part = [&](auto&& work) {
    for (const BatchShare& share : shares) {
      for (const auto& part : share.parts) work(part->first, part->tiles.size());
    }
  };
  const std::size_t in = pixels() / tiles();
  for_each_part([&](std::size_t first, std::size_t count) {
    std::memcpy(room.pixels.get() + first * in, batch.pixels.get() + first * in, count * in);
  });
  if (Failure failure = try_to_compute(session, room, shares)) return failure;
  const std::size_t out = values() / tiles();
  for_each_part([&](std::size_t first, std::size_t count) {
    std::copy_n(room.values.get() + first * out, count * out, batch.values.get() + first * out);
  });
  return nullptr;
}

void NetworkSessions::fail(BatchShare& share, const Failure& failure) {
  std::string cause;
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    cause = current_cause(share.images->slide());
  }
  for (const auto& part : share.parts) {
    part->failure = cause;
    if (part->tiles.size() > 1) {
      part->failure = "in a batch of tiles " + std::to_string(part->tiles.front()) + " to " +
                      std::to_string(part->tiles.back()) + ": " + cause;
    }
    part->interrupted = lacks_memory(failure) || watch_.is_over(*share.images);
  }
}

void NetworkSessions::clear(NetworkBatch& batch, std::size_t first, std::size_t count) const {
  const std::size_t tile = pixels() / tiles();
  std::memset(batch.pixels.get() + first * tile, 0, count * tile);
}

std::shared_ptr<NetworkBatch> NetworkSessions::new_batch() const {
  try {
    auto batch = std::make_shared<NetworkBatch>();
    // Every byte that is read is written before.
    const auto in = network_.allocate(pixels());
    const auto out = network_.allocate(values() * sizeof(float));
    batch->pixels = {in, reinterpret_cast<std::uint8_t*>(in.get())};
    batch->values = {out, reinterpret_cast<float*>(out.get())};
    return batch;
  } catch (const std::bad_alloc&) {
    throw MemoryShortage(text_of_shortage());
  }
}

std::string NetworkSessions::text_of_shortage() const {
  return "there is no memory for a batch of " + std::to_string(network_.tiles().batch) + " tiles, " +
         std::to_string(network_batch_bytes(network_)) +
         " bytes and what the network takes itself; lower model.batch, model.sessions or pipeline.memory_mib, or raise "
         "the limit of memory";
}

std::size_t NetworkSessions::pixels() const {
  const auto side = static_cast<std::size_t>(network_.tiles().side);
  return tiles() * side * side * 3;
}

std::size_t NetworkSessions::values() const {
  return static_cast<std::size_t>(network_batch_bytes(network_)) / sizeof(float) - pixels() / sizeof(float);
}

}  // namespace slidestream
