#pragma once

/// \file
/// What a fork leaves to the child: the memory, in which locks are as other threads had them at that moment, and none
/// of those threads. oneTBB's state is of that kind, and can't be set back.

namespace slidestream::runtime {

/// While one lives, threads of this process work through oneTBB.
class Work {
 public:
  Work() noexcept;
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};

/// Whether a process that this one was forked from ever had such work: then the calling thread has to do alone what it
/// can do alone.
bool forked_after_work() noexcept;

/// Whether it had some at the moment of the fork: then oneTBB can't be used here, and locks may never be free.
bool forked_at_work() noexcept;

/// \throws Error where that is so
void require_whole_process();

}  // namespace slidestream::runtime
