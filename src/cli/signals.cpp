#include "cli/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "ledger/start_notes.hpp"

namespace slidestream::cli {

namespace {

std::atomic<RunControl*> stopped_control{nullptr};
std::atomic<int> first_signal{0};
std::atomic<int> stop_notes{-1};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<RunControl*>::is_always_lock_free,
              "used in a signal handler");

void add_note(std::string_view note) noexcept {
  const int notes = stop_notes.load();
  if (notes < 0) return;
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(notes, note.data(), note.size());
  errno = error;
}

void on_signal(int number) {
  // Also of the second, which another thread may take while the first is about to note it.
  add_note(stop_note);
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) ::_exit(128 + number);
  RunControl* const control = stopped_control.load();
  if (control == nullptr) {
    constexpr char line[] = "pipeline: interrupted before the first slide\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, sizeof(line) - 1);
    ::_exit(128 + number);
  }
  control->request_stop();
}

void install(int number, void (*handler)(int)) {
  struct ::sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

/// As `nohup` has it for SIGHUP.
bool is_ignored(int number) {
  struct ::sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalScope::SignalScope(RunControl& control) : SignalScope() {
  stopped_control = &control;
  install(SIGPIPE, SIG_IGN);
}

SignalScope::SignalScope() {
  first_signal = 0;
  stopped_control = nullptr;
  install(SIGINT, on_signal);
  install(SIGTERM, on_signal);
  if (!is_ignored(SIGHUP)) install(SIGHUP, on_signal);
}

SignalScope::~SignalScope() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
  if (!is_ignored(SIGHUP)) install(SIGHUP, SIG_DFL);
  stopped_control = nullptr;
}

void note_shortage() noexcept { add_note(shortage_note); }

StopNoteScope::StopNoteScope(int descriptor) noexcept { stop_notes = descriptor; }

StopNoteScope::~StopNoteScope() { stop_notes = -1; }

void ignore_file_size_signal() { install(SIGXFSZ, SIG_IGN); }

int SignalScope::received() noexcept { return first_signal.load(); }

}  // namespace slidestream::cli
