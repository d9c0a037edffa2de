#include "spectrum/engine.hpp"

#include <slidestream/error.hpp>

#include "spectrum/engines.hpp"
#include "spectrum/positions.hpp"

namespace slidestream {

namespace {

std::unique_ptr<SpectrumEngine> plain_engine(const AnalysisConfig& config) {
  return make_plain_engine(config, make_kiss_dft_2d(config.window));
}

}  // namespace

std::unique_ptr<SpectrumEngine> make_spectrum_engine(const AnalysisConfig& config, EngineKind kind) {
  if (kind == EngineKind::plain) return plain_engine(config);
  if (highway_engine_takes(config)) return make_highway_engine(config);
  if (square_transforms_take(config.window)) {
    if (positions_take(config)) return make_square_engine(config);
    return make_plain_engine(config, make_square_dft_2d(config.window));
  }
  if (kind == EngineKind::automatic) return plain_engine(config);
  throw ConfigError("analysis: the vectorised engines take windows of 16, 32, 64, 128, 256, 512 and 1024 pixels");
}

}  // namespace slidestream
