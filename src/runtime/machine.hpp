#pragma once

namespace slidestream::runtime {

/// Processors that this process may use (its affinity mask), at least 1.
int available_processors() noexcept;

}  // namespace slidestream::runtime
