#include "cuda/spectrum/window_engine.hpp"

#include "cuda/spectrum/engines.hpp"

namespace slidestream::cuda {

std::unique_ptr<WindowEngine> make_window_engine(const AnalysisConfig& config, WindowEngineKind kind) {
  if (kind == WindowEngineKind::fused) return make_fused_window_engine(config);
  if (kind == WindowEngineKind::automatic && fused_window_engine_takes(config)) return make_fused_window_engine(config);
  return make_cufft_window_engine(config);
}

}  // namespace slidestream::cuda
