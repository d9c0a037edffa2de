#pragma once

#include <atomic>

#include "runtime/trace.hpp"

namespace slidestream {

/// How long a slide has been worked on. Thread-safe.
class WorkTime {
 public:
  /// Somebody begins, if nobody has.
  void begin() noexcept;
  /// It waits for other slides, whose networks are at work: until `begin_anew` it takes no time. Nothing after that.
  void hold() noexcept;
  void begin_anew() noexcept;
  /// After `begin_anew`: it waits for other slides again, and takes no time until `go_on`. By one thread at a time.
  void pause() noexcept;
  void go_on() noexcept;
  double seconds() const noexcept;

 private:
  static constexpr runtime::Clock::rep held = -1;
  static constexpr runtime::Clock::rep paused = -2;
  std::atomic<runtime::Clock::rep> since_{0};  ///< 0: not yet
  std::atomic<runtime::Clock::rep> spent_{0};  ///< until it was paused
  std::atomic<bool> anew_{false};
};

}  // namespace slidestream
