#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/config.hpp>
#include <string>
#include <vector>

#include "networks/onnx_session.hpp"

/// \file
/// The GPUs that networks may run on. A program without CUDA has none.

namespace slidestream::networks {

/// A GPU of the machine.
struct NetworkGpu {
  int ordinal = 0;         ///< as CUDA counts
  std::size_t memory = 0;  ///< bytes in all
};

/// Those of the machine.
struct NetworkGpus {
  std::vector<NetworkGpu> found;
  std::string why_none;  ///< one clause, where there is none
};

/// Takes no memory of a GPU.
NetworkGpus find_gpus();

/// Bytes of a GPU's memory that nobody has. \throws CudaError where the GPU is lost
std::uint64_t free_memory(int gpu);

/// GPUs for networks, by what the settings allow, the library knows, and the machine has.
struct NetworkPlaces {
  std::vector<Place> gpus;  ///< empty: networks run on the CPU
  std::string why_none;     ///< one clause, where CUDA was allowed; else empty
};

/// \throws ConfigError where `model.provider` wants what isn't there
NetworkPlaces places_for(const Config& config, const OnnxRuntime& runtime);

/// "ONNX Runtime 1.32.0, CUDA"
std::string computed_on(const OnnxRuntime& runtime, bool on_gpus);

/// Sessions per GPU where `model.sessions` is 0. Two compute, so that there is work while one of them begins or ends;
/// the third's tiles cross the bus.
inline constexpr int usual_sessions = 3;
/// The same for a run over volumes: sessions also load networks, and others compute meanwhile.
inline constexpr int usual_sessions_of_volumes = 5;

}  // namespace slidestream::networks
