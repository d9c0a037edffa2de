#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/config.hpp>
#include <span>
#include <string>
#include <vector>

#include "networks/onnx_session.hpp"
#include "volume/fusion.hpp"
#include "volume/nifti_header.hpp"
#include "volume/schedule.hpp"

namespace slidestream::volume {

/// A network that is loaded. Thread-safe: each call has memory of its own.
class LoadedNetwork {
 public:
  LoadedNetwork(std::shared_ptr<const networks::OnnxSession> session, std::vector<std::int64_t> input_shape,
                std::vector<std::int64_t> output_shape);

  using Terminator = networks::OnnxSession::Terminator;
  Terminator terminator() const { return session_->terminator(); }
  void terminate(const Terminator& run) const noexcept { session_->terminate(run, true); }

  /// Computes one fragment. \param fragment  D x H x W. \param values  channels x D x H x W, written.
  /// \throws Error in one line without the file's name
  void run(std::span<const float> fragment, std::span<float> values, const Terminator& by) const;

 private:
  std::shared_ptr<const networks::OnnxSession> session_;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
};

/// The networks of a run: one for all fragments, or one per fragment. Thread-safe.
class VolumeNetworks {
 public:
  /// Loads the first network, and measures what memory networks take: one of each size of files, which computes a
  /// fragment of zeros. \throws ConfigError in one line that names the file or the key
  explicit VolumeNetworks(const Config& config);

  std::size_t count() const noexcept { return files_.size(); }
  const std::string& file(std::size_t network) const noexcept { return files_[network]; }
  /// What each of them gives.
  const FragmentOutput& output() const noexcept { return output_; }
  /// Samples of files that are made: uint8 or uint16 for labels, float32 for images.
  ScalarType sample() const noexcept { return sample_; }
  /// Memory of each, with what a fragment takes on its way.
  const std::vector<NetworkNeeds>& needs() const noexcept { return needs_; }
  /// "ONNX Runtime 1.32.0, CPU".
  std::string description() const;

  /// Loads one of them. \throws ConfigError
  std::shared_ptr<const LoadedNetwork> load(std::size_t network) const;

 private:
  void check_settings() const;
  std::shared_ptr<const networks::OnnxSession> open(std::size_t network) const;
  void check_like_first(std::size_t network, const networks::OnnxSession& session) const;
  void find_shapes(const networks::OnnxSession& session);
  void find_output();
  void check_scores() const;
  void measure();
  NetworkNeeds measured(std::size_t network);
  std::uint64_t bytes_on_the_way() const noexcept;

  const Config config_;
  Extent fragment_;
  std::vector<std::string> files_;
  std::shared_ptr<const networks::OnnxRuntime> runtime_;
  std::string takes_;  ///< of the first, for messages
  std::string gives_;
  networks::onnx::ElementType input_type_ = networks::onnx::ElementType::undefined;
  networks::onnx::ElementType output_type_ = networks::onnx::ElementType::undefined;
  std::vector<std::int64_t> input_shape_;
  std::vector<std::int64_t> output_shape_;
  FragmentOutput output_;
  ScalarType sample_ = ScalarType::uint8;
  std::vector<NetworkNeeds> needs_;
};

}  // namespace slidestream::volume
