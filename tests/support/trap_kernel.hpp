#pragma once

namespace slidestream::test {

/// Launches a kernel that stops with an illegal instruction: the current device is lost to the process from then on.
/// Does nothing in a build without CUDA.
void launch_trap();

}  // namespace slidestream::test
