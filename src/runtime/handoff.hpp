#pragma once

#include <atomic>

namespace slidestream::runtime {

/// Orders what one task wrote before what the next one reads. oneTBB guarantees that order between nodes already;
/// saying it in our own code lets ThreadSanitizer, which can't see into oneTBB's library, check everything else.
class Handoff {
 public:
  void give() noexcept { turn_.fetch_add(1, std::memory_order_release); }
  void take() const noexcept { static_cast<void>(turn_.load(std::memory_order_acquire)); }

 private:
  std::atomic<unsigned> turn_{0};
};

/// Takes at construction and gives at the end: for the body of a serial node.
class Turn {
 public:
  explicit Turn(Handoff& handoff) noexcept : handoff_(handoff) { handoff_.take(); }
  ~Turn() { handoff_.give(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Handoff& handoff_;
};

/// Orders a graph's construction before every body, and every body before its destruction.
class GraphLifetime {
 public:
  /// The graph is complete: bodies may run.
  void begin() noexcept { begun_.give(); }
  /// No body runs any more, and none will.
  void end() const noexcept { ended_.take(); }

  /// Stands at the top of every body.
  class Body {
   public:
    explicit Body(GraphLifetime& lifetime) noexcept : lifetime_(lifetime) { lifetime_.begun_.take(); }
    ~Body() { lifetime_.ended_.give(); }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

   private:
    GraphLifetime& lifetime_;
  };

 private:
  Handoff begun_;
  Handoff ended_;
};

}  // namespace slidestream::runtime
