#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "networks/normalisation.hpp"
#include "networks/onnx_api.hpp"

namespace slidestream::networks {

/// A batch of tiles as a network takes them, and what it gives for them, in memory of the host or of a GPU that is
/// taken when this is made. Used by one thread at a time.
class TilePlanes {
 public:
  virtual ~TilePlanes() = default;

  /// tiles x 3 x area numbers.
  virtual void* data() const noexcept = 0;
  virtual std::size_t bytes() const noexcept = 0;
  /// `PlanesSize::values` numbers, which the network writes.
  virtual void* given() const noexcept = 0;
  virtual std::size_t given_bytes() const noexcept = 0;

  /// Fills `data`, as `Normalisation::run` does, and waits for that. \param pixels  host memory: tiles x area x 3; for
  /// a GPU of `pinned_memory`. \throws CudaError.
  virtual void put(std::span<const std::uint8_t> pixels) = 0;
  /// Fetches what is in `given`, as float32. \param values  host memory, written; as pixels. \throws CudaError.
  virtual void take(std::span<float> values) = 0;
};

/// Sizes of such a batch.
struct PlanesSize {
  std::size_t area = 0;  ///< pixels of a tile
  std::size_t tiles = 0;
  bool half = false;       ///< the network takes float16, else float32
  std::size_t values = 0;  ///< that it gives
  bool half_values = false;
  /// Of whole numbers that it gives instead; undefined: float32 or float16.
  onnx::ElementType whole_values = onnx::ElementType::undefined;

  std::size_t value_bytes() const noexcept {
    if (whole_values != onnx::ElementType::undefined) return onnx::bytes_of(whole_values);
    return half_values ? sizeof(std::uint16_t) : sizeof(float);
  }
};

/// Whole numbers as float32. Those beyond 2^24 are rounded: they are no labels anyway.
void widen_whole(std::span<const std::byte> from, onnx::ElementType type, std::span<float> values) noexcept;

std::unique_ptr<TilePlanes> make_host_planes(std::shared_ptr<const Normalisation> normalisation,
                                             const PlanesSize& size);

/// In a GPU's memory: bytes cross the bus, and become numbers there, the same to the bit. \param gpu  as CUDA counts.
/// \throws CudaError; Error in a program without CUDA.
std::unique_ptr<TilePlanes> make_device_planes(const Normalisation& normalisation, const PlanesSize& size, int gpu);

/// Memory of the host that copies to and from GPUs need not stage. \param gpu  one of those, as CUDA counts.
/// \throws CudaError; Error in a program without CUDA.
std::shared_ptr<std::byte[]> pinned_memory(std::size_t bytes, int gpu);

}  // namespace slidestream::networks
