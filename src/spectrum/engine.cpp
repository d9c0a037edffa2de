#include "spectrum/engine.hpp"

#include <slidestream/error.hpp>

#include "spectrum/engines.hpp"

namespace slidestream {

namespace {

std::unique_ptr<SpectrumEngine> plain_engine(const AnalysisConfig& config) {
  return make_plain_engine(config, make_kiss_dft_2d(config.window));
}

}  // namespace

std::unique_ptr<SpectrumEngine> make_spectrum_engine(const AnalysisConfig& config, EngineKind kind) {
  if (kind == EngineKind::plain) return plain_engine(config);
  if (highway_engine_takes(config)) return make_highway_engine(config);
  if (kind == EngineKind::automatic) return plain_engine(config);
  throw ConfigError(
      "analysis: the vectorised engine takes window 256, stride 128, smoothing_radius up to 3, value log1p_db and "
      "bins up to 4093, no narrower than 1/400 dB");
}

}  // namespace slidestream
