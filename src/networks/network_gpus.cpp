#include "networks/network_gpus.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string_view>

namespace slidestream::networks {
namespace {

constexpr std::string_view cuda_provider = "CUDAExecutionProvider";

}  // namespace

NetworkPlaces places_for(const Config& config, const OnnxRuntime& runtime) {
  const bool wanted = config.model.provider == ModelProvider::cuda;
  if (config.model.provider == ModelProvider::cpu) return {};
  if (!wanted && config.pipeline.backend == Backend::cpu) return {};
  const auto none = [&](const std::string& why) {
    if (wanted) throw ConfigError("model.provider = \"cuda\": " + why + "; use \"auto\" or \"cpu\"");
    return NetworkPlaces{{}, why};
  };
  if (!runtime.has_provider(cuda_provider)) {
    return none("ONNX Runtime " + runtime.version() + " is one without CUDA (pip install onnxruntime-gpu)");
  }
  const NetworkGpus gpus = find_gpus();
  if (gpus.found.empty()) return none(gpus.why_none);
  NetworkPlaces places;
  for (const NetworkGpu& gpu : gpus.found) {
    const std::vector<int>& chosen = config.gpu.devices;
    if (!chosen.empty() && std::ranges::find(chosen, gpu.ordinal) == chosen.end()) continue;
    // What the program doesn't take for itself, all but a little.
    const double memory = static_cast<double>(gpu.memory) * std::max(0.95 - config.gpu.memory_fraction, 0.05);
    const int sessions = config.model.sessions > 0 ? config.model.sessions : usual_sessions;
    places.gpus.push_back({gpu.ordinal, static_cast<std::size_t>(memory), std::max(sessions - 1, 2)});
  }
  return places.gpus.empty() ? none("none of gpu.devices is there") : places;
}

std::string computed_on(const OnnxRuntime& runtime, bool on_gpus) {
  return "ONNX Runtime " + runtime.version() + (on_gpus ? ", CUDA" : ", CPU");
}

}  // namespace slidestream::networks
