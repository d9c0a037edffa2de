#include "cuda/spectrum/cufft_library.hpp"

#include <dlfcn.h>

#include <array>
#include <string>

#include <slidestream/error.hpp>

namespace slidestream::cuda {

namespace {

/// Where the library is looked for, best first: what the program's own path and the system's settings lead to, then the
/// toolkit's usual folder. 12 came with CUDA 13, 11 with CUDA 12; what is used here is the same in both.
constexpr std::array<const char*, 4> places = {
    "libcufft.so.12", "libcufft.so.11", "/usr/local/cuda/lib64/libcufft.so.12", "/usr/local/cuda/lib64/libcufft.so.11"};

void* open_library() {
  for (const char* place : places) {
    if (void* library = dlopen(place, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  throw ConfigError(
      "analysis: this window and stride need cuFFT (libcufft.so.12 or .11), which isn't installed where the loader "
      "looks; "
      "install it, or choose pipeline.backend = cpu");
}

template <class Function>
void load(Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw ConfigError(std::string("analysis: the cuFFT that was found has no ") + name);
}

CufftFunctions load_functions() {
  void* library = open_library();  // stays for the life of the process
  CufftFunctions functions;
  load(functions.create, library, "cufftCreate");
  load(functions.destroy, library, "cufftDestroy");
  load(functions.set_auto_allocation, library, "cufftSetAutoAllocation");
  load(functions.make_plan_many, library, "cufftMakePlanMany");
  load(functions.set_work_area, library, "cufftSetWorkArea");
  load(functions.set_stream, library, "cufftSetStream");
  load(functions.execute_r2c, library, "cufftExecR2C");
  return functions;
}

void check(cufftResult result, const char* what) {
  if (result != CUFFT_SUCCESS) {
    throw CudaError(std::string("CUDA: cuFFT failed to ") + what + " (code " + std::to_string(result) + ")");
  }
}

}  // namespace

const CufftFunctions& cufft_functions() {
  static const CufftFunctions functions = load_functions();  // a failure throws, and is tried again next time
  return functions;
}

CufftPlan::CufftPlan(int side, int batch) : functions_(cufft_functions()) {
  check(functions_.create(&handle_), "make a plan");
  try {
    check(functions_.set_auto_allocation(handle_, 0), "make a plan without memory of its own");
    std::array<int, 2> sides = {side, side};
    check(functions_.make_plan_many(handle_, 2, sides.data(), nullptr, 1, 0, nullptr, 1, 0, CUFFT_R2C, batch,
                                    &work_bytes_),
          "plan the transforms");
  } catch (...) {
    functions_.destroy(handle_);
    throw;
  }
}

CufftPlan::~CufftPlan() { functions_.destroy(handle_); }

void CufftPlan::execute(cufftComplex* out, float* in, void* work, cudaStream_t stream) const {
  check(functions_.set_stream(handle_, stream), "take the stream");
  if (work_bytes_ > 0) check(functions_.set_work_area(handle_, work), "take its work area");
  check(functions_.execute_r2c(handle_, in, out), "start the transforms");
}

}  // namespace slidestream::cuda
