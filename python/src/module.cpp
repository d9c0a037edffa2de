#include "bindings.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <thread>

namespace slidestream::python {

namespace {

/// The thread that ends the interpreter, once it has begun to.
std::atomic<unsigned long> leaving_thread{0};
/// Threads without the interpreter's lock, and of these the ones that are about to take it.
std::atomic<int> outside{0};
std::atomic<int> entering{0};

/// To be called before the interpreter ends. Threads that take the lock at this moment have it for a while first.
void leave() {
  leaving_thread = PyThread_get_thread_ident();
  // What those hold stays as it is, and is no mistake.
  if (outside > 0) nb::set_leak_warnings(false);
  PyThreadState* const thread = PyEval_SaveThread();
  while (entering > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(thread);
}

/// Later ones are asked first, so that a derived class comes behind its base.
void bind_errors(nb::module_& module) {
  const nb::exception<Error> error(module, "Error", PyExc_RuntimeError);
  const nb::exception<ConfigError> config_error(module, "ConfigError", error);
  const nb::exception<SlideError> slide_error(module, "SlideError", error);
  const nb::exception<StorageError> storage_error(module, "StorageError", slide_error);
  const nb::exception<TileError> tile_error(module, "TileError", error);
  const nb::exception<CudaError> cuda_error(module, "CudaError", error);
  const nb::exception<OutputError> output_error(module, "OutputError", error);
}

}  // namespace

Unlocked::Unlocked() {
  ++outside;
  thread_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  ++entering;
  const unsigned long leaving = leaving_thread;
  if (leaving != 0 && leaving != PyThread_get_thread_ident()) {
    --entering;
    while (true) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --entering;
  --outside;
}

NB_MODULE(_core, module) {
  module.def("version", &version);
  module.def("leave", &leave, "Says that the calling thread is about to end the interpreter.");
  bind_errors(module);
  bind_slide(module);
  bind_tiles(module);
  bind_device(module);
  bind_map(module);
  bind_run(module);
}

}  // namespace slidestream::python
