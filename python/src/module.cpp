#include "bindings.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <string_view>
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

/// The class of Python's that C++'s Failure becomes. A message names files, whose names may be any bytes: those that
/// aren't UTF-8 are written as \xff.
template <class Failure>
nb::exception<Failure> bind_error(nb::module_& module, const char* name, nb::handle base) {
  nb::exception<Failure> type(module, name, base);
  const auto raise = [](const std::exception_ptr& thrown, void* type_of_python) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const std::string_view text = failure.what();
      const nb::object message =
          nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
      if (message.is_valid()) PyErr_SetObject(static_cast<PyObject*>(type_of_python), message.ptr());
    }
  };
  nb::register_exception_translator(raise, type.ptr());
  return type;
}

/// Later ones are asked first, so that a derived class comes behind its base.
void bind_errors(nb::module_& module) {
  const auto error = bind_error<Error>(module, "Error", PyExc_RuntimeError);
  bind_error<ConfigError>(module, "ConfigError", error);
  const auto slide_error = bind_error<SlideError>(module, "SlideError", error);
  bind_error<StorageError>(module, "StorageError", slide_error);
  bind_error<TileError>(module, "TileError", error);
  bind_error<CudaError>(module, "CudaError", error);
  bind_error<OutputError>(module, "OutputError", error);
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
