#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "networks/onnx_api.hpp"

namespace slidestream::test {

/// What made_up_runtime.cpp, which stands in for ONNX Runtime, does and was asked for; its `made_up_runtime` gives it.
struct MadeUpRuntime {
  using Options = std::map<std::string, std::string>;

  networks::onnx::ElementType type = networks::onnx::ElementType::float32;  ///< that its networks take and give
  bool knows_channels_last = true;
  std::string fails_to_begin;    ///< what it says at its first beginning; empty: it begins
  int beginnings = 0;            ///< how often it was begun
  int wanted_at_once = 0;        ///< runs wait until so many were there at a time
  std::mutex mutex;              ///< of `loaded`
  std::vector<Options> loaded;   ///< the CUDA provider's options of each network that was loaded
  int most_sessions = 1;         ///< that may be loaded at a time
  std::string content;           ///< of the network that was loaded last
  std::atomic<int> sessions{0};  ///< that are loaded at the moment
  std::atomic<int> running{0};
  std::atomic<int> most_running{0};

  std::vector<std::int64_t> input_shape;  ///< of its networks; empty: they compute nothing
  std::vector<std::int64_t> output_shape;
  /// What they compute of float32 samples, on any thread: what it throws, as text, is what the library says.
  std::function<void(const Options& cuda, const std::string& file, std::span<const float> in, std::span<float> out)>
      compute;
  /// Tells of each network that it is loaded, or goes. What it throws then, as text, is why it can't be loaded.
  std::function<void(const Options& cuda, bool begins)> on_session;
};

}  // namespace slidestream::test
