#include <malloc.h>

#include "cli/program.hpp"

int main(int argc, char** argv) {
#ifdef M_MMAP_THRESHOLD
  // What large tiles took goes back to the system with them: left to itself, glibc raises these bounds as it sees such
  // buffers, and keeps tens of MiB for each thread.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
  return slidestream::cli::run_program(argc, argv);
}
