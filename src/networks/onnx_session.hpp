#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "networks/onnx_runtime.hpp"

namespace slidestream::networks {

/// One input or output of a network.
struct OnnxTensor {
  std::string name;
  onnx::ElementType type = onnx::ElementType::undefined;
  std::vector<std::int64_t> shape;  ///< -1: any

  /// "N x 3 x 224 x 224" of float32, with ? for what may be any.
  std::string text() const;
};

/// Where a network runs.
struct Place {
  int gpu = -1;              ///< as CUDA counts; -1: the host, where one thread computes a batch, the one that runs it
  std::size_t memory = 0;    ///< bytes of the GPU that the library may take
  int runs = 0;              ///< batches that a GPU computes at a time, at most; others wait. 0: any number
  bool keeps_memory = true;  ///< of the host, that a batch took: for the next one
};

/// A network that the library has loaded for one device. Running it is thread-safe.
class OnnxSession {
 public:
  /// On GPUs a network that takes float16 is computed with channels last, where the library knows how: its kernels for
  /// that want no other order around them. Those for float32 are slower so. \throws ConfigError naming the file
  /// \param choose  which of the outputs is used, empty: the first; it may throw an Error in one line without the file
  using ChooseOutput = std::function<std::size_t(const std::vector<OnnxTensor>& outputs)>;
  OnnxSession(std::shared_ptr<const OnnxRuntime> runtime, const std::string& file, const Place& place,
              const ChooseOutput& choose = {});

  const OnnxTensor& input() const noexcept { return input_; }
  /// The one that was chosen: others aren't asked for.
  const OnnxTensor& output() const noexcept { return output_; }
  const Place& place() const noexcept { return place_; }

  using Value = OnnxHandle<onnx::Value, onnx::ReleaseValue>;
  /// Values as the library sees them; they stay the caller's. In host memory, or that of the session's GPU.
  Value tensor(void* data, std::size_t bytes, const std::vector<std::int64_t>& shape, onnx::ElementType type,
               bool on_gpu = false) const;

  /// What has a run end that is under way, with an error, and those that begin.
  using Terminator = OnnxHandle<onnx::RunOptions, onnx::ReleaseRunOptions>;
  Terminator terminator() const;
  /// Any thread.
  void terminate(const Terminator& runs, bool now) const noexcept;

  /// Computes `output` from `input`; null memory in `output` is made by the library. \throws Error in one line
  void run(const Value& input, Value& output, const Terminator& by = {}) const;
  /// The shape of a value.
  std::vector<std::int64_t> shape_of(const Value& value) const;

 private:
  void load(const std::string& file, bool channels_last);
  void load_channels_last(const std::string& file);
  std::size_t count_of(bool is_input) const;
  OnnxTensor tensor_of(bool is_input, std::size_t index) const;

  std::shared_ptr<const OnnxRuntime> runtime_;
  Place place_;
  mutable std::counting_semaphore<> turns_;  ///< for who runs it
  OnnxHandle<onnx::Session, onnx::ReleaseSession> session_;
  using Memory = OnnxHandle<onnx::MemoryInfo, onnx::ReleaseMemoryInfo>;
  Memory host_;
  Memory device_;  ///< of a GPU
  OnnxTensor input_;
  OnnxTensor output_;
};

}  // namespace slidestream::networks
