#pragma once

#include <string>

/// \file
/// Where ONNX Runtime lies.

namespace slidestream::networks {

/// A library that the loader has loaded; never given back.
struct OnnxLibrary {
  std::string file;
  void* handle = nullptr;  ///< for dlsym
};

/// Finds and loads it where `OnnxRuntime::load` says. \throws ConfigError that says where it was looked for.
OnnxLibrary find_onnx_library(const std::string& named);

}  // namespace slidestream::networks
