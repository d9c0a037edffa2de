#include "spectrum/engine.hpp"

#include <slidestream/error.hpp>

#include "spectrum/engines.hpp"

namespace slidestream {

std::unique_ptr<SpectrumEngine> make_spectrum_engine(const AnalysisConfig& config, EngineKind kind) {
  if (kind == EngineKind::highway) throw ConfigError("the vectorised engine isn't there");
  return make_fftw_engine(config);
}

}  // namespace slidestream
