#include "runtime/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <vector>

namespace slidestream::runtime {
namespace {

constexpr std::size_t longest_text = 65536;

/// A program that was started: ended and waited for in any case.
class Child {
 public:
  explicit Child(std::span<const std::string> command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    read_ = ends[0];
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    if (::posix_spawnp(&process_, words.front(), &actions, nullptr, words.data(), environ) != 0) process_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~Child() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      wait();
    }
    if (read_ >= 0) ::close(read_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool is_there() const noexcept { return process_ > 0; }
  int output() const noexcept { return read_; }

  /// Whether it has ended, well or not; afterwards it isn't there.
  bool has_ended(int& status) {
    const ::pid_t found = ::waitpid(process_, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return false;
    // Where somebody else waited for it, nobody knows how it ended.
    if (found < 0) status = -1;
    process_ = -1;
    return true;
  }

 private:
  void wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  ::pid_t process_ = -1;
  int read_ = -1;
};

}  // namespace

std::optional<std::string> output_of(std::span<const std::string> command, std::chrono::milliseconds most) {
  using Clock = std::chrono::steady_clock;
  if (command.empty()) return std::nullopt;
  Child child(command);
  if (!child.is_there()) return std::nullopt;
  const auto end = Clock::now() + most;
  std::string text;
  for (bool open = true;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 || text.size() > longest_text) return std::nullopt;
    if (!open) {
      int status = 0;
      if (child.has_ended(status)) return status == 0 ? std::optional(text) : std::nullopt;
      ::usleep(1000);
      continue;
    }
    ::pollfd looked{child.output(), POLLIN, 0};
    if (::poll(&looked, 1, static_cast<int>(std::min<long long>(left, 1000))) <= 0) continue;
    std::array<char, 4096> some{};
    const ::ssize_t count = ::read(child.output(), some.data(), some.size());
    if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
    open = count > 0 || (count < 0 && errno == EINTR);
  }
}

}  // namespace slidestream::runtime
