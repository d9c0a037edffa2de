#pragma once

#include <string>

namespace slidestream::test {

/// From now on writes (pwritev) to files whose path contains `part` don't come back before `let_writes_go`. The
/// program's own pwritev stands before the C library's.
void hold_writes(const std::string& part);

/// Whether one waits now.
bool write_waits();

void let_writes_go();

}  // namespace slidestream::test
