#include "runtime/cuda/check.hpp"

#include <cstdio>
#include <string>

#include <slidestream/error.hpp>

namespace slidestream::runtime::cuda {
namespace {

std::string describe(cudaError_t code, const char* expression, const char* file, int line) {
  std::string path = file;
  if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) path.erase(0, slash + 1);
  return std::string("CUDA: ") + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ") from " + expression +
         ", " + path + ":" + std::to_string(line);
}

}  // namespace

void check(cudaError_t code, const char* expression, const char* file, int line) {
  if (code != cudaSuccess) throw CudaError(describe(code, expression, file, line));
}

void check_noexcept(cudaError_t code, const char* expression, const char* file, int line) noexcept {
  // A driver that is being unloaded has freed everything itself.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  static_cast<void>(cudaGetLastError());
  static_cast<void>(expression), static_cast<void>(file), static_cast<void>(line);
}

}  // namespace slidestream::runtime::cuda
