#include "operators/registry.hpp"

#include "operators/spectrum/spectrum_operator.hpp"

namespace slidestream::operators {

std::vector<std::shared_ptr<const Operator>> make_operators(const Config& config) {
  return {std::make_shared<SpectrumOperator>(config.analysis)};
}

}  // namespace slidestream::operators
