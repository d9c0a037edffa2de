#include "cli/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace slidestream::cli {

namespace {

std::atomic<RunControl*> stopped_control{nullptr};
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<RunControl*>::is_always_lock_free,
              "used in a signal handler");

void on_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) ::_exit(128 + number);
  if (RunControl* control = stopped_control.load()) control->request_stop();
}

void install(int number, void (*handler)(int)) {
  struct ::sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

SignalScope::SignalScope(RunControl& control) {
  stopped_control = &control;
  first_signal = 0;
  install(SIGINT, on_signal);
  install(SIGTERM, on_signal);
  install(SIGPIPE, SIG_IGN);
}

SignalScope::~SignalScope() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
  stopped_control = nullptr;
}

void ignore_file_size_signal() { install(SIGXFSZ, SIG_IGN); }

int SignalScope::received() noexcept { return first_signal.load(); }

}  // namespace slidestream::cli
