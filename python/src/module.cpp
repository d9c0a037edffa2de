#include "bindings.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "config/keys.hpp"
#include "config/printable.hpp"

namespace slidestream::python {

namespace {

/// The thread that ends the interpreter, once it has begun to.
std::atomic<unsigned long> leaving_thread{0};
/// Threads without the interpreter's lock, and of these the ones that are about to take it.
std::atomic<int> outside{0};
std::atomic<int> entering{0};

/// Of the threads that are about to take the lock a child of a fork has none.
void note_fork() noexcept { entering = 0; }

/// To be called before the interpreter ends. Threads that take the lock at this moment have it for a while first.
/// \param others  whether there are other threads of Python
void leave(bool others) {
  leaving_thread = PyThread_get_thread_ident();
  // What those hold stays as it is, and is no mistake.
  if (others || outside > 0) nb::set_leak_warnings(false);
  PyThreadState* const thread = PyEval_SaveThread();
  while (entering > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(thread);
}

/// Has C++'s Failure become a class of Python's. A message names files, whose names may be any bytes: those that aren't
/// UTF-8 are written as \xff, and what would begin another line as a question mark.
template <class Failure>
void translate_error(nb::handle type) {
  const auto raise = [](const std::exception_ptr& thrown, void* type_of_python) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const nb::str message = text_of(printable(failure.what()));
      if (message.is_valid()) PyErr_SetObject(static_cast<PyObject*>(type_of_python), message.ptr());
    }
  };
  nb::register_exception_translator(raise, type.ptr());
}

template <class Failure>
nb::exception<Failure> bind_error(nb::module_& module, const char* name, nb::handle base) {
  nb::exception<Failure> type(module, name, base);
  translate_error<Failure>(type);
  return type;
}

/// What libraries throw: of the system, mostly where it gives no more threads, and of memory.
void raise_as_error(const std::exception_ptr& thrown, void* error) {
  try {
    std::rethrow_exception(thrown);
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::system_error& failure) {
    const std::string reason = failure.code() == std::errc::resource_unavailable_try_again
                                   ? "a thread can't be started: " + failure.code().message()
                                   : std::string(failure.what());
    PyErr_SetString(static_cast<PyObject*>(error), reason.c_str());
  } catch (const std::runtime_error& failure) {
    PyErr_SetString(static_cast<PyObject*>(error), failure.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "there isn't enough memory");
  }
}

/// Later ones are asked first, so that a derived class comes behind its base.
void bind_errors(nb::module_& module) {
  const nb::exception<Error> error(module, "Error", PyExc_RuntimeError);
  nb::register_exception_translator(raise_as_error, error.ptr());
  translate_error<Error>(error);
  bind_error<ConfigError>(module, "ConfigError", error);
  const auto slide_error = bind_error<SlideError>(module, "SlideError", error);
  bind_error<StorageError>(module, "StorageError", slide_error);
  bind_error<TileError>(module, "TileError", error);
  bind_error<CudaError>(module, "CudaError", error);
  bind_error<EndedEarlyError>(module, "EndedEarlyError", error);
  bind_error<OutputError>(module, "OutputError", error);
}

}  // namespace

Unlocked::Unlocked() {
  ++outside;
  thread_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  lock();
  --outside;
}

void Unlocked::check_signals() {
  lock();
  std::exception_ptr raised;
  if (PyErr_CheckSignals() != 0) raised = std::make_exception_ptr(nb::python_error());
  thread_ = PyEval_SaveThread();
  if (raised) std::rethrow_exception(raised);
}

void Unlocked::lock() {
  ++entering;
  const unsigned long leaving = leaving_thread;
  if (leaving != 0 && leaving != PyThread_get_thread_ident()) {
    --entering;
    while (true) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --entering;
}

NB_MODULE(_core, module) {
  module.def("version", &version);
  module.def("operators", [] {
    nb::list names;
    for (const std::string_view name : operator_names) names.append(nb::str(name.data(), name.size()));
    return names;
  });
  module.def("keys", [] {
    nb::list names;
    for (const ConfigKey& key : config_keys()) names.append(nb::str(key.full_name().c_str()));
    return names;
  });
  ::pthread_atfork(nullptr, nullptr, note_fork);
  module.def("leave", &leave, nb::arg("others"), "Says that the calling thread is about to end the interpreter.");
  bind_errors(module);
  bind_slide(module);
  bind_tiles(module);
  bind_device(module);
  bind_map(module);
  bind_run(module);
  bind_volume(module);
}

}  // namespace slidestream::python
