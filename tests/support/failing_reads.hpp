#pragma once

#include <string>

namespace slidestream::test {

/// From now on, of the reads (pread) of files whose path contains `part`, `after` succeed and the next `count` fail
/// with the number `error`. The program's own pread stands before the C library's.
void fail_reads(const std::string& part, int count, int error, int after = 0);

/// Reads of such files since then, failed or not.
int reads_seen();

/// The next `count` reads by io_uring come back with `result` instead, minus an error or fewer bytes than there were.
void change_ring_reads(int count, int result);
/// Whether the kernel gives no io_uring.
void refuse_rings(bool refuse);
/// Whether file systems say that they have no reads past the system's cache.
void refuse_direct(bool refuse);
/// From now on all is as the system has it.
void fail_nothing();

}  // namespace slidestream::test
