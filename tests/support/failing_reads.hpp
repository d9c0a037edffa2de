#pragma once

#include <string>

namespace slidestream::test {

/// From now on the next `count` reads (pread) of files whose path contains `part` fail with the number `error`. The
/// program's own pread stands before the C library's.
void fail_reads(const std::string& part, int count, int error);

/// Reads of such files since then, failed or not.
int reads_seen();

}  // namespace slidestream::test
