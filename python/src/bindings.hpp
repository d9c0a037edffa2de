#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <slidestream/config.hpp>
#include <string>
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

/// While it lives, other threads of Python may run. A thread that would take the interpreter's lock back while the
/// interpreter ends is unwound by it, through frames that allow no such thing: such a thread stays where it is instead.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* thread_ = nullptr;
};

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
      // Another thread may close it meanwhile.
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
