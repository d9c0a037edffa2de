// A library that stands between a program and the C library (LD_PRELOAD) and makes threads few. $FEW_THREADS says how:
//
//   count    nothing; how many starts there were, and how many threads at once, is in the report
//   most:N   no more than N threads beside the first are there at a time (EAGAIN)
//   at:N     the N-th start fails (EAGAIN)
//
// $FEW_THREADS_REPORT names the report.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

namespace {

using Routine = void* (*)(void*);

struct Start {
  Routine routine = nullptr;
  void* argument = nullptr;
};

std::atomic<long> starts{0};
std::atomic<long> alive{0};
std::atomic<long> most_alive{0};
// Nothing is taken from the heap, which a sanitizer may not have ready in a thread that begins or ends.
std::array<Start, 1 << 14> started;

long number_in(const char* mode) {
  const char* set = getenv("FEW_THREADS");
  if (set == nullptr || strncmp(set, mode, strlen(mode)) != 0) return -1;
  return atol(set + strlen(mode));
}

void* run(void* given) {
  const Start start = *static_cast<Start*>(given);
  void* const result = start.routine(start.argument);
  alive.fetch_sub(1);
  return result;
}

struct Report {
  ~Report() {
    const char* file = getenv("FEW_THREADS_REPORT");
    if (file == nullptr) return;
    const std::string text = std::to_string(starts) + " " + std::to_string(most_alive) + "\n";
    const int descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    [[maybe_unused]] const auto ignored = write(descriptor, text.data(), text.size());
    close(descriptor);
  }
} report;

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes, Routine routine,
                                                                     void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const long number = starts.fetch_add(1) + 1;
  if (number == number_in("at:") || static_cast<std::size_t>(number) >= started.size()) return EAGAIN;
  const long now = alive.fetch_add(1) + 1;
  const long most = number_in("most:");
  if (most >= 0 && now > most) {
    alive.fetch_sub(1);
    return EAGAIN;
  }
  for (long seen = most_alive; seen < now && !most_alive.compare_exchange_weak(seen, now);) {
  }
  Start& start = started[static_cast<std::size_t>(number)];
  start = {routine, argument};
  const int result = real(thread, attributes, run, &start);
  if (result != 0) alive.fetch_sub(1);
  return result;
}
