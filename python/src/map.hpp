#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <slidestream/network.hpp>

#include "tiling/batch_memory.hpp"
#include "tiling/tile_stream.hpp"

/// \file
/// A function of Python as a network: threads of a run ask, and the thread of Python that waits for the run answers.

namespace slidestream::python {

/// What the function gets and gives.
struct CallShape {
  NetworkTiles tiles;
  NetworkOutput output;
  WindowLayout layout = WindowLayout::interleaved;  ///< of tiles and of what is given for them
  std::string description;
};

/// A batch of tiles that waits for an answer. The pixels stay what they are for as long as anyone holds them.
class Call {
 public:
  /// \param values  where the answer goes
  Call(std::shared_ptr<BatchMemory::Lease> pixels, std::span<float> values) : pixels_(std::move(pixels)), to_(values) {}

  const std::shared_ptr<BatchMemory::Lease>& pixels() const noexcept { return pixels_; }
  std::size_t values() const noexcept { return to_.size(); }

  /// Answers, once: `write` fills the values. Nothing is written where nobody waits any more.
  template <class Write>
  void give(const Write& write) {
    if (!begin()) return;
    write(to_);
    end({});
  }
  /// Answers that there are none; the slide fails with that text.
  void fail(const std::string& why) {
    if (begin()) end(why);
  }

  /// Waits for the answer. \throws SlideError
  void wait();
  /// Ends the waiting with a failure, unless an answer is being given.
  void abandon();

 private:
  enum class State { waiting, answering, answered, abandoned };

  bool begin();
  void end(std::optional<std::string> why);

  const pid_t process_ = ::getpid();
  const std::shared_ptr<BatchMemory::Lease> pixels_;
  const std::span<float> to_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::waiting;    // guarded by mutex_
  std::optional<std::string> why_;  // guarded by mutex_
};

/// The batches of a run, in the order in which they came. Thread-safe. In a child that was forked none comes, and
/// answers go nowhere.
class Calls final : public Network, public std::enable_shared_from_this<Calls> {
 public:
  explicit Calls(CallShape shape);

  const CallShape& shape() const noexcept { return shape_; }

  /// The next one that waits; null when there is none within that time, or nothing more will come.
  std::shared_ptr<Call> next(std::chrono::milliseconds patience);
  /// Nothing more will come: ends a wait for the next one.
  void close();
  /// Fails all that wait, and all to come.
  void abort();

  /// Has a batch computed. \throws SlideError
  void compute(std::span<const std::uint8_t> pixels, std::span<float> values);

  NetworkTiles tiles() const override { return shape_.tiles; }
  NetworkOutput output() const override { return shape_.output; }
  std::string description() const override { return shape_.description; }
  /// What `map` is given.
  std::string called() const override { return "the function"; }
  /// An argument of `map`. None is a tolerance: without `mpp` a level's pixels are used unchanged.
  std::string setting_name(const std::string& key) const override {
    if (key == "mpp_tolerance") return {};
    if (key == "input.level") return "level";
    return key == "input.mpp" ? "input={\"mpp\": ...}" : key + "=";
  }
  std::unique_ptr<NetworkSession> session(int gpu) const override;

 private:
  void put_tiles(std::uint8_t* to, std::span<const std::uint8_t> pixels) const noexcept;

  const pid_t process_ = ::getpid();
  const CallShape shape_;
  const std::shared_ptr<BatchMemory> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> waiting_;      // guarded by mutex_
  std::vector<std::shared_ptr<Call>> unanswered_;  // these, and those that `next` gave out; guarded by mutex_
  bool closed_ = false;                            // guarded by mutex_
  bool aborted_ = false;                           // guarded by mutex_
};

}  // namespace slidestream::python
