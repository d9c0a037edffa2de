#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <slidestream/network.hpp>

#include "runtime/io_threads.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/network/network_batches.hpp"
#include "stages/network_watch.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// A number of things, and those who wait for one. Thread-safe.
class Room {
 public:
  using Wake = std::function<void()>;

  explicit Room(std::size_t free) : free_(free) {}

  /// False: there is none, and `wake`, where it isn't empty, is called when one has become free.
  bool take(const Wake& wake);
  void give_back();
  bool anybody_waits();

 private:
  std::mutex mutex_;
  std::size_t free_;          ///< guarded by mutex_
  std::deque<Wake> waiting_;  ///< guarded by mutex_
};

/// A slide's tiles in a batch that was sent.
struct BatchShare {
  std::shared_ptr<SlideImages> images;
  std::size_t network = 0;  ///< among `SlideImages::networks`
  std::vector<std::shared_ptr<BatchPart>> parts;
};

/// A batch that was sent.
struct SentBatch {
  std::shared_ptr<NetworkBatch> batch;
  std::vector<BatchShare> shares;  ///< one a slide; not empty
};

/// The sessions of one network, each with a thread that may block, and the batches that they get.
class NetworkSessions {
 public:
  /// What `compute` tells: that a slide's tiles are computed alone from now on, and that they were computed or failed.
  struct Listener {
    std::function<void(BatchShare&)> alone;
    std::function<void(BatchShare&)> done;
  };

  /// \throws Error, ConfigError.
  NetworkSessions(const Network& network, const RunContext& context, NetworkWatch& watch);

  /// An empty batch; null: `wake` is called when one comes back. \throws Error where there is no memory.
  std::shared_ptr<NetworkBatch> take(const Room::Wake& wake);
  /// One of the parts of a batch isn't needed any more.
  void give_back(BatchPart& part);

  /// A batch that was filled, without what nobody wants any more; null where that is all. The rest becomes zeros.
  std::shared_ptr<SentBatch> close(BatchFiller::Filling& filling);

  /// Has one of the threads work. They begin in the order of calls: batches of a slide come in the order of its tiles.
  void submit(std::function<void()> work) { threads_->submit(std::move(work)); }

  /// Has a batch computed; on one of the threads. One that fails, or takes longer than a slide may, with tiles of
  /// several slides is computed again in halves, until those slides are alone that it fails with.
  void compute(SentBatch& sent, const Listener& listener);

  /// No more tiles of that slide of the run will come. True: of none, as of now. Thread-safe.
  bool nothing_of(std::size_t slide);

  std::unique_ptr<BatchFiller> shared;  ///< fills batches with tiles of all slides; null where each has its own

 private:
  using Failure = std::exception_ptr;  ///< null: none

  Failure try_to_compute(NetworkSession& session, NetworkBatch& batch, std::span<const BatchShare> shares);
  Failure compute_part(NetworkSession& session, NetworkBatch& batch, std::span<const BatchShare> shares,
                       NetworkBatch& room);
  void fail_or_divide(NetworkSession& session, NetworkBatch& batch, std::span<BatchShare> shares,
                      const Failure& failure, std::shared_ptr<NetworkBatch>& room, const Listener& listener);
  void fail(BatchShare& share, const Failure& failure);
  void clear(NetworkBatch& batch, std::size_t first, std::size_t count) const;
  std::shared_ptr<NetworkBatch> new_batch() const;
  std::string text_of_shortage() const;
  void give_back(std::shared_ptr<NetworkBatch> batch);
  std::size_t tiles() const { return static_cast<std::size_t>(network_.tiles().batch); }
  std::size_t pixels() const;
  std::size_t values() const;

  const Network& network_;
  const RunContext& context_;
  NetworkWatch& watch_;
  std::unique_ptr<Room> places_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<NetworkSession>> sessions_;  ///< that nobody uses; guarded by mutex_
  std::vector<std::shared_ptr<NetworkBatch>> batches_;     ///< that nobody uses; guarded by mutex_
  std::vector<bool> coming_;                               ///< slides whose tiles may come; guarded by mutex_
  std::size_t left_;                                       ///< of these; guarded by mutex_
  std::unique_ptr<runtime::OrderedIoThreads> threads_;     ///< ends first
};

}  // namespace slidestream
