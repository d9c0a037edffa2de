#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace slidestream::networks {

/// Sizes of the scores that a network gives for a fragment of a volume.
struct ScoresSize {
  std::size_t channels = 0;  ///< at most 65,535
  std::size_t voxels = 0;
  bool half = false;  ///< float16, else float32

  std::size_t values() const noexcept { return channels * voxels; }
  /// Of the GPU's memory, for scores and labels.
  std::size_t device_bytes() const noexcept {
    return values() * (half ? sizeof(std::uint16_t) : sizeof(float)) + voxels * sizeof(std::uint16_t);
  }
};

/// Scores of classes that a network gives on a GPU, and their labels. Its memory is taken when it is made. Used by one
/// thread at a time.
class DeviceScores {
 public:
  virtual ~DeviceScores() = default;

  /// channels x voxels numbers in the GPU's memory, which the network writes.
  virtual void* given() const noexcept = 0;
  virtual std::size_t given_bytes() const noexcept = 0;
  virtual std::size_t given_values() const noexcept = 0;

  static constexpr std::uint16_t no_label = 65535;
  /// The channel with the largest score of each voxel, the lowest of equals; `no_label` where a score isn't finite.
  /// Waits for them. \return host memory, until the next call. \throws CudaError
  virtual std::span<const std::uint16_t> labels() = 0;
  /// Fetches the scores as float32. \param values  host memory, channels x voxels. \throws CudaError
  virtual void take(std::span<float> values) = 0;
};

/// \param gpu  as CUDA counts. \throws CudaError; Error in a program without CUDA
std::unique_ptr<DeviceScores> make_device_scores(const ScoresSize& size, int gpu);

}  // namespace slidestream::networks
