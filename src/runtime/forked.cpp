#include "runtime/forked.hpp"

#include <pthread.h>

#include <atomic>
#include <slidestream/error.hpp>

namespace slidestream::runtime {

namespace {

std::atomic<int> at_work{0};
std::atomic<bool> had_work{false};
std::atomic<bool> lost_work{false};
std::atomic<bool> lost_threads{false};

void note_fork() noexcept {
  if (had_work) lost_work = true;
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
