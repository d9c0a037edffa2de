#include "cli/terminate_handler.hpp"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>

#include "cli/command.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"

namespace slidestream::cli {

namespace {

/// A line that is put together without memory from the heap.
class Line {
 public:
  void add(std::string_view text) noexcept {
    const std::size_t count = text.size() < room() ? text.size() : room();
    std::memcpy(bytes_.data() + size_, text.data(), count);
    size_ += count;
  }
  void write() noexcept {
    bytes_[size_++] = '\n';
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, bytes_.data(), size_);
  }

 private:
  std::size_t room() const noexcept { return bytes_.size() - 1 - size_; }

  std::array<char, 1024> bytes_{};
  std::size_t size_ = 0;
};

[[noreturn]] void on_terminate() noexcept {
  Line line;
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
  if (is_shortage) note_stop();
  line.write();
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
