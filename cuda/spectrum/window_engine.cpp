#include "cuda/spectrum/window_engine.hpp"

#include <slidestream/error.hpp>

#include "cuda/spectrum/engines.hpp"

namespace slidestream::cuda {

std::unique_ptr<WindowEngine> make_window_engine(const AnalysisConfig& config, WindowEngineKind kind) {
  if (kind == WindowEngineKind::fused) throw ConfigError("analysis: no fused window engine yet");
  return make_cufft_window_engine(config);
}

}  // namespace slidestream::cuda
