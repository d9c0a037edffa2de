#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "networks/normalisation.hpp"

namespace slidestream::networks {

/// A batch of tiles as a network takes them, in memory that is taken when this is made. Used by one thread at a time.
class TilePlanes {
 public:
  virtual ~TilePlanes() = default;

  /// tiles x 3 x area numbers, in host memory or a GPU's.
  virtual void* data() const noexcept = 0;
  virtual std::size_t bytes() const noexcept = 0;
  /// Fills it, as `Normalisation::run` does, and waits for that. \param pixels  host memory: tiles x area x 3.
  /// \throws CudaError.
  virtual void put(std::span<const std::uint8_t> pixels) = 0;
};

/// Sizes of such a batch.
struct PlanesSize {
  std::size_t area = 0;  ///< pixels of a tile
  std::size_t tiles = 0;
  bool half = false;  ///< float16, else float32
};

std::unique_ptr<TilePlanes> make_host_planes(std::shared_ptr<const Normalisation> normalisation,
                                             const PlanesSize& size);

/// In a GPU's memory: bytes cross the bus, and become numbers there, the same to the bit. \param gpu  as CUDA counts.
/// \throws CudaError; Error in a program without CUDA.
std::unique_ptr<TilePlanes> make_device_planes(const Normalisation& normalisation, const PlanesSize& size, int gpu);

}  // namespace slidestream::networks
