#include "cuda/spectrum/window_engine.hpp"

#include <slidestream/error.hpp>

namespace slidestream::cuda {

std::unique_ptr<WindowEngine> make_window_engine(const AnalysisConfig&, WindowEngineKind) {
  throw ConfigError("no window engine yet");
}

}  // namespace slidestream::cuda
