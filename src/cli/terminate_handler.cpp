#include "cli/terminate_handler.hpp"

#include <unistd.h>

#include <exception>
#include <mutex>
#include <new>

#include "cli/command.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/under_way.hpp"

namespace slidestream::cli {

namespace {

[[noreturn]] void on_terminate() noexcept {
  BoundedLine line;
  bool is_shortage = false;
  line.add("error: ");
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    line.add("internal error: terminated");
  } catch (const std::bad_alloc&) {
    line.add(memory_shortage);
    is_shortage = true;
  } catch (const std::exception& error) {
    if (is_thread_shortage(error)) {
      line.add(thread_shortage);
      is_shortage = true;
    } else {
      line.add("internal error: ");
      line.add(error.what());
    }
  } catch (...) {
    line.add("internal error: an unknown exception");
  }
  if (is_shortage) {
    note_shortage();
    slides_under_way().add_to(line);
  }
  line.end();
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.text().data(), line.text().size());
  ::_exit(is_shortage ? failed_status() : exit_ended_early);
}

}  // namespace

void set_terminate_handler() noexcept { std::set_terminate(on_terminate); }

void prepare_unwinding() {
  struct Thrown : std::exception {};
  try {
    std::once_flag once;
    std::call_once(once, [] { throw Thrown(); });
  } catch (const Thrown&) {
    // As was meant.
  }
}

}  // namespace slidestream::cli
