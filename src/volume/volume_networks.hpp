#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <slidestream/config.hpp>
#include <span>
#include <string>
#include <vector>

#include "networks/device_scores.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_session.hpp"
#include "volume/fusion.hpp"
#include "volume/loaded_network.hpp"
#include "volume/nifti_header.hpp"
#include "volume/schedule.hpp"

namespace slidestream::volume {

/// The networks of a run: one for all fragments, or one per fragment. Thread-safe.
class VolumeNetworks {
 public:
  /// Loads the first network, and each whose graph differs from all before in more than weights. Has them compute a
  /// fragment of zeros, to check them and to measure what memory they take. \throws ConfigError in one line that names
  /// the file or the key
  explicit VolumeNetworks(const Config& config);

  std::size_t count() const noexcept { return files_.size(); }
  const std::string& file(std::size_t network) const noexcept { return files_[network]; }
  /// What each of them gives.
  const FragmentOutput& output() const noexcept { return output_; }
  /// Samples of files that are made: uint8 or uint16 for labels, float32 for images.
  ScalarType sample() const noexcept { return sample_; }
  /// Memory of each, where it is loaded. On the host, with what a fragment takes on its way. Of a GPU `run` is 0: what
  /// fragments take there stays taken, and is part of `loaded`.
  const std::vector<NetworkNeeds>& needs() const noexcept { return needs_; }
  /// "ONNX Runtime 1.32.0, CPU".
  std::string description() const;

  /// GPUs that networks run on; 0: the CPU.
  std::size_t gpus() const noexcept { return gpus_.size(); }
  /// One of them, as CUDA counts.
  int gpu(std::size_t place) const noexcept { return gpus_[place].gpu; }
  /// Their memory for networks.
  const ScheduleGpus& gpu_memory() const noexcept { return gpu_memory_; }
  /// Bytes of the host for each fragment on its way to a GPU; 0 without one, where they are in `needs`.
  std::uint64_t bytes_beside_gpu() const noexcept { return beside_gpu_; }

  /// Loads one of them. \param place  the GPU, from 0; 0 without one. \throws ConfigError; DeviceFullError where the
  /// GPU has no memory for it
  std::shared_ptr<const LoadedNetwork> load(std::size_t network, std::size_t place = 0) const;

  /// Whether a GPU without networks has the memory for any of them now, with a fragment. \throws CudaError where the
  /// GPU is lost
  bool has_room(std::size_t place) const;

  /// Memory for one fragment, with undefined content. \param place  as of `load`. \throws std::bad_alloc, CudaError,
  /// DeviceFullError
  FragmentMemory take_memory(std::size_t place) const;
  /// Memory beside a GPU is pinned, which takes a while, and is kept for the next fragment.
  void give_back(FragmentMemory memory, std::size_t place) const;
  /// Frees what was kept for later, on a GPU and beside it.
  void drop_memory(std::size_t place) const;

 private:
  void find_gpus();
  void find_gpu_memory();
  std::uint64_t free_part(std::size_t place) const;
  /// \throws ConfigError, also where memory lacks
  std::shared_ptr<const networks::OnnxSession> open(std::size_t network, std::size_t place = 0) const;
  /// \throws ConfigError; std::bad_alloc and DeviceFullError where memory lacks
  std::shared_ptr<const networks::OnnxSession> try_to_open(std::size_t network, std::size_t place) const;
  networks::OnnxSession::Value run_zeros(std::size_t network, const networks::OnnxSession& session,
                                         const networks::DeviceScores* to = nullptr) const;
  void check_like_first(std::size_t network, const networks::OnnxSession& session) const;
  void find_shapes(const networks::OnnxSession& session);
  void find_output();
  void measure();
  NetworkNeeds measured(std::size_t network);
  NetworkNeeds measured_on_gpu(std::size_t network);
  bool chooses_on_gpu() const noexcept;
  networks::ScoresSize scores_size() const noexcept;
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
  std::vector<networks::Place> gpus_;
  ScheduleGpus gpu_memory_;
  std::uint64_t beside_gpu_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<FragmentMemory>> kept_;  ///< by GPU; guarded by mutex_
  /// The first network on the first GPU, as it was loaded to be measured, until `load` takes it; guarded by mutex_.
  mutable std::shared_ptr<const networks::OnnxSession> first_;
  networks::NetworkState first_state_;  ///< of its files, before it was loaded
};

}  // namespace slidestream::volume
