#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "networks/onnx_api.hpp"

namespace slidestream::test {

/// What made_up_runtime.cpp, which stands in for ONNX Runtime, does and was asked for; its `made_up_runtime` gives it.
struct MadeUpRuntime {
  using Options = std::map<std::string, std::string>;

  networks::onnx::ElementType type = networks::onnx::ElementType::float32;  ///< that its networks take and give
  bool knows_channels_last = true;
  int wanted_at_once = 0;        ///< runs wait until so many were there at a time
  std::vector<Options> loaded;   ///< the CUDA provider's options of each network that was loaded
  std::atomic<int> sessions{0};  ///< that are loaded at the moment
  std::atomic<int> running{0};
  std::atomic<int> most_running{0};
};

}  // namespace slidestream::test
