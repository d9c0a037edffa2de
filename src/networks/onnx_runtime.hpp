#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "networks/onnx_api.hpp"

/// \file
/// ONNX Runtime, loaded when a network is wanted.

namespace slidestream::networks {

/// What a message of the library says went wrong, in one line: without the source's file and function in front of it,
/// which fill a line by themselves. "Conv node 'stem': Failed to allocate memory for requested buffer of size 7077888"
std::string cause_in(std::string_view message);

/// Whether such a message says that memory lacks, in the library or for what it computes. No if this machine can never
/// have so much: that is a fault of the network, or of tiles.
bool says_no_memory(std::string_view message);

/// Whether such a message says that a GPU's memory lacks, where CUDA and its libraries say so themselves.
bool says_gpu_is_full(std::string_view message);

/// A loaded library. Immutable, shared by all threads; it stays loaded until the program ends.
class OnnxRuntime {
 public:
  /// Finds and loads it: `named` (`model.runtime`), else what the environment's SLIDESTREAM_ONNXRUNTIME names, each a
  /// library or a folder with one; else `libonnxruntime.so` as the loader finds it; else the one of the package
  /// `onnxruntime` of the Python that `python3` is. A library that failed to begin isn't begun again: it would be half
  /// begun. \throws ConfigError that says where it was looked for, or why it can't begin
  static std::shared_ptr<const OnnxRuntime> load(const std::string& named);

  ~OnnxRuntime();
  OnnxRuntime(const OnnxRuntime&) = delete;
  OnnxRuntime& operator=(const OnnxRuntime&) = delete;

  /// "1.32.0".
  const std::string& version() const noexcept { return version_; }
  /// What it can compute with, such as "CUDAExecutionProvider".
  bool has_provider(std::string_view name) const;

  /// Calls an entry of its table that gives a status. \throws Error with the library's own words, in one line.
  template <class Entry, class... Arguments>
  void call(Arguments... arguments) const {
    check(entry<Entry>()(arguments...));
  }

  /// Calls one that can't fail.
  template <class Entry, class... Arguments>
  auto just(Arguments... arguments) const noexcept {
    return entry<Entry>()(arguments...);
  }

  const onnx::Env* env() const noexcept { return env_; }

 private:
  OnnxRuntime(const std::string& file, void* library, std::string& failure);

  template <class Entry>
  typename Entry::Type entry() const noexcept {
    return reinterpret_cast<typename Entry::Type>(table_[Entry::index]);
  }
  void check(onnx::Status* status) const;
  /// Makes the library's environment. \throws ConfigError, and sets `failure` to its text
  void begin(const std::string& file, std::string& failure);

  const onnx::AnyFunction* table_ = nullptr;
  onnx::Env* env_ = nullptr;
  std::string version_;
  std::vector<std::string> providers_;
};

/// Something of the library that is given back by an entry of its table.
template <class Object, class Release>
class OnnxHandle {
 public:
  OnnxHandle() = default;
  OnnxHandle(std::shared_ptr<const OnnxRuntime> runtime, Object* object) : held_(object, {std::move(runtime)}) {}

  Object* get() const noexcept { return held_.get(); }

 private:
  struct Give {
    std::shared_ptr<const OnnxRuntime> runtime;
    void operator()(Object* object) const noexcept { runtime->template just<Release>(object); }
  };
  std::unique_ptr<Object, Give> held_;
};

/// What an entry makes whose last argument says where to put it.
template <class Make, class Object, class Release, class... Arguments>
OnnxHandle<Object, Release> make_onnx(const std::shared_ptr<const OnnxRuntime>& runtime, Arguments... arguments) {
  Object* object = nullptr;
  runtime->call<Make>(arguments..., &object);
  return {runtime, object};
}

}  // namespace slidestream::networks
