#include "stages/run/work_time.hpp"

#include <chrono>

namespace slidestream {

void WorkTime::begin() noexcept {
  runtime::Clock::rep none = 0;
  since_.compare_exchange_strong(none, runtime::Clock::now().time_since_epoch().count());
}

void WorkTime::hold() noexcept {
  runtime::Clock::rep since = since_.load();
  // Where it begins anew meanwhile, `since_` isn't what it was.
  while (!anew_.load() && !since_.compare_exchange_weak(since, held)) {
  }
}

void WorkTime::begin_anew() noexcept {
  anew_.store(true);
  since_.store(runtime::Clock::now().time_since_epoch().count());
}

void WorkTime::pause() noexcept {
  const runtime::Clock::rep since = since_.load();
  if (since == paused) return;
  spent_.store(runtime::Clock::now().time_since_epoch().count() - since);
  since_.store(paused);
}

void WorkTime::go_on() noexcept {
  if (since_.load() != paused) return;
  since_.store(runtime::Clock::now().time_since_epoch().count() - spent_.load());
}

double WorkTime::seconds() const noexcept {
  const runtime::Clock::rep since = since_.load();
  if (since == 0 || since == held) return 0.0;
  const runtime::Clock::rep spent =
      since == paused ? spent_.load() : runtime::Clock::now().time_since_epoch().count() - since;
  return std::chrono::duration<double>(runtime::Clock::duration(spent)).count();
}

}  // namespace slidestream
