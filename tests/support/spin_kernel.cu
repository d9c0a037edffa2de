#include <cstdint>

#include "support/spin_kernel.hpp"

namespace slidestream::test {
namespace {

__device__ std::uint64_t device_nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void spin(std::uint64_t nanoseconds) {
  const std::uint64_t start = device_nanoseconds();
  while (device_nanoseconds() - start < nanoseconds) {
  }
}

}  // namespace

void launch_spin(double milliseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(milliseconds * 1e6));
}

}  // namespace slidestream::test
