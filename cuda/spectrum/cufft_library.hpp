#pragma once

#include <cufft.h>

#include <cstddef>
#include <cstdint>

/// \file
/// cuFFT, loaded when it is needed: it is larger than everything else together, and most runs do without. It chooses
/// its own algorithms, so bits of a spectrum may differ between its versions and between GPUs.

namespace slidestream::cuda {

/// The functions that are used, as cuFFT declares them.
struct CufftFunctions {
  decltype(&cufftCreate) create = nullptr;
  decltype(&cufftDestroy) destroy = nullptr;
  decltype(&cufftSetAutoAllocation) set_auto_allocation = nullptr;
  decltype(&cufftMakePlanMany) make_plan_many = nullptr;
  decltype(&cufftSetWorkArea) set_work_area = nullptr;
  decltype(&cufftSetStream) set_stream = nullptr;
  decltype(&cufftExecR2C) execute_r2c = nullptr;
};

/// Loads cuFFT, once a process. Thread-safe.
/// \throws ConfigError when no cuFFT of a known version is installed.
const CufftFunctions& cufft_functions();

/// Forward transforms of `batch` real squares, `side` x `side` each, out of place: [batch][side][side] floats to
/// [batch][side][side / 2 + 1] complex numbers, packed.
class CufftPlan {
 public:
  /// \throws ConfigError without cuFFT; CudaError when it can't plan.
  CufftPlan(int side, int batch);
  ~CufftPlan();
  CufftPlan(const CufftPlan&) = delete;
  CufftPlan& operator=(const CufftPlan&) = delete;

  std::size_t work_bytes() const noexcept { return work_bytes_; }  ///< device memory that `execute` needs
  /// Puts the transforms on `stream`. `in` may be overwritten.
  void execute(cufftComplex* out, float* in, void* work, cudaStream_t stream) const;

 private:
  const CufftFunctions& functions_;
  cufftHandle handle_ = 0;
  std::size_t work_bytes_ = 0;
};

}  // namespace slidestream::cuda
