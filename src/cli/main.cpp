#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "cli/command.hpp"
#include "cli/program.hpp"
#include "cli/shortage.hpp"

namespace {

/// Says so where the limit of the stack, which threads get too, is too low: the program would end by a signal. Takes
/// little stack itself.
bool stack_is_too_small() {
  constexpr rlim_t least = 256 << 10;  // some decoding needs about 100 KiB
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return false;
  constexpr std::string_view line = "error: the limit of the stack is below 256 KiB: raise it (ulimit -s 8192)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (stack_is_too_small()) return slidestream::cli::exit_usage;
#ifdef M_MMAP_THRESHOLD
  // What large tiles took goes back to the system with them: left to itself, glibc raises these bounds as it sees such
  // buffers, and keeps tens of MiB for each thread.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
  const int status = slidestream::cli::run_program(argc, argv);
  if (slidestream::cli::has_ended_in_shortage) {
    // Libraries that want memory to end would add lines of their own, or crash.
    std::fflush(nullptr);
    ::_exit(status);
  }
  return status;
}
