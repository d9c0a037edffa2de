#include "runtime/forked.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <slidestream/error.hpp>

namespace slidestream::runtime {

namespace {

std::atomic<int> at_work{0};
std::atomic<bool> had_work{false};
std::atomic<bool> lost_work{false};
std::atomic<bool> lost_threads{false};

/// Ends a child that exits. Else oneTBB would detach its parent's threads at that point, whose memory may be gone.
void leave(int status, void* /*unused*/) {
  std::fflush(nullptr);
  ::_exit(status);
}

void note_fork() noexcept {
  // It runs before what was registered earlier.
  if (had_work && !lost_work.exchange(true)) ::on_exit(leave, nullptr);
  if (at_work > 0) lost_threads = true;
}

[[maybe_unused]] const int noted = ::pthread_atfork(nullptr, nullptr, note_fork);

}  // namespace

Work::Work() noexcept {
  had_work = true;
  ++at_work;
}

Work::~Work() { --at_work; }

bool forked_after_work() noexcept { return lost_work; }

bool forked_at_work() noexcept { return lost_threads; }

void require_whole_process() {
  if (lost_threads) {
    throw Error(
        "this process was forked from one whose threads were at work on slides, and has none of them: no run can begin "
        "here; start such processes anew (spawn)");
  }
}

}  // namespace slidestream::runtime
