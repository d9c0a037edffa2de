#include "support/trap_kernel.hpp"

namespace slidestream::test {
namespace {

__global__ void trap() { __trap(); }

}  // namespace

void launch_trap() { trap<<<1, 1>>>(); }

}  // namespace slidestream::test
