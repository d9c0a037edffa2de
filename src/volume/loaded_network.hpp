#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "networks/device_scores.hpp"
#include "networks/onnx_session.hpp"
#include "volume/fusion.hpp"

namespace slidestream::volume {

/// Memory of a fragment on its way: samples, and what a network gives for them.
struct FragmentMemory {
  std::shared_ptr<std::byte[]> fragment_bytes;
  std::shared_ptr<std::byte[]> value_bytes;
  std::span<float> fragment;  ///< D x H x W
  std::span<float> values;    ///< channels x D x H x W; empty where `scores` has them
  /// On a GPU, where only the largest of a voxel's scores counts; else null.
  std::unique_ptr<networks::DeviceScores> scores;

  /// Puts what a network gave. \throws Error as `Fusion::put`; CudaError
  void put_into(Fusion& fusion, std::size_t number) const;
};

/// A network that is loaded. Thread-safe: each call has memory of its own.
class LoadedNetwork {
 public:
  LoadedNetwork(std::shared_ptr<const networks::OnnxSession> session, std::vector<std::int64_t> input_shape,
                std::vector<std::int64_t> output_shape);

  using Terminator = networks::OnnxSession::Terminator;
  Terminator terminator() const { return session_->terminator(); }
  void terminate(const Terminator& run) const noexcept { session_->terminate(run, true); }

  /// Computes a fragment: fills `values`, or `scores`.
  /// \throws Error in one line without the file's name; DeviceFullError where the GPU has no memory for it; CudaError
  ///   where it is lost
  void run(const FragmentMemory& memory, const Terminator& by) const;

 private:
  void run(const networks::OnnxSession::Value& input, networks::OnnxSession::Value& output, const Terminator& by) const;

  std::shared_ptr<const networks::OnnxSession> session_;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
};

}  // namespace slidestream::volume
