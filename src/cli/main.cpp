#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "cli/program.hpp"
#include "cli/shortage.hpp"

int main(int argc, char** argv) {
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
