#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <slidestream/config.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tiling/tile_stream.hpp"

/// \file
/// What the parts of the module `slidestream._core` share. Its classes are the bare engine; what users see, with its
/// defaults and documentation, is written in Python around them.

namespace slidestream::python {

namespace nb = nanobind;

void bind_slide(nb::module_& module);
void bind_tiles(nb::module_& module);
void bind_map(nb::module_& module);
void bind_device(nb::module_& module);
void bind_run(nb::module_& module);
void bind_volume(nb::module_& module);

/// While it lives, other threads of Python may run. A thread that would take the interpreter's lock back while the
/// interpreter ends is unwound by it, through frames that allow no such thing: such a thread stays where it is instead.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// Looks for signals, with the lock meanwhile. \throws nanobind::python_error with what a handler raised
  void check_signals();

 private:
  void lock();

  PyThreadState* thread_ = nullptr;
};

/// An object with threads or locks, which a child that was forked has no use for: there it stays as it is for ever.
template <class T, class... Arguments>
std::shared_ptr<T> of_this_process(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), [process = ::getpid()](T* object) {
    if (process == ::getpid()) delete object;
  });
}

/// Text that may name files, whose names are any bytes: those that aren't UTF-8 are written as \xff.
inline nb::str text_of(std::string_view text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

template <class T>
using Array = nb::ndarray<nb::numpy, T>;

/// A NumPy array of memory that `owner` keeps.
template <class T, class Owner>
Array<T> array_of(T* data, std::initializer_list<std::size_t> shape, std::shared_ptr<Owner> owner) {
  auto* const held = new std::shared_ptr<Owner>(std::move(owner));
  const nb::capsule capsule(held, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<Owner>*>(pointer); });
  return Array<T>(data, shape, capsule);
}

/// A NumPy array that takes over a container.
template <class Container>
Array<typename Container::value_type> array_of(Container values, std::initializer_list<std::size_t> shape) {
  auto kept = std::make_shared<Container>(std::move(values));
  return array_of(kept->data(), shape, kept);
}

/// Waits for a stream's next batch, unlocked, and lets signals through. \return false after the last one.
template <class Stream, class Batch>
bool next_batch(const std::shared_ptr<Stream>& of, Batch& batch) {
  while (true) {
    TileStream::State state;
    {
      // Another thread may close it meanwhile, and empty what is referred to.
      // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy keeps the stream
      const std::shared_ptr<Stream> stream = of;
      const Unlocked unlocked;
      state = stream->next(batch, std::chrono::milliseconds(50));
    }
    if (state != TileStream::State::waiting) return state == TileStream::State::batch;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

inline BadTilePolicy bad_tile_policy(bool white) { return white ? BadTilePolicy::white : BadTilePolicy::fail; }

}  // namespace slidestream::python
