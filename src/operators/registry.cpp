#include "operators/registry.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <slidestream/error.hpp>
#include <string_view>

#include "operators/gaussian/gaussian_operator.hpp"
#include "operators/identity/identity_operator.hpp"
#include "operators/model/model_operator.hpp"
#include "operators/sobel/sobel_operator.hpp"
#include "operators/spectrum/spectrum_operator.hpp"
#include "operators/stain/stain_operator.hpp"
#include "operators/tissue/tissue_operator.hpp"

namespace slidestream::operators {
namespace {

struct Entry {
  std::string_view name;
  std::shared_ptr<const Operator> (*make)(const Config& config);
};

std::shared_ptr<const Operator> make_spectrum_operator(const Config& config) {
  return std::make_shared<SpectrumOperator>(config);
}

/// One line an operator, in the order of `operator_names`.
constexpr std::array registry = {
    Entry{"spectrum", make_spectrum_operator}, Entry{"identity", make_identity_operator},
    Entry{"sobel", make_sobel_operator},       Entry{"gaussian", make_gaussian_operator},
    Entry{"stain", make_stain_operator},       Entry{"tissue", make_tissue_operator},
    Entry{"model", make_model_operator},
};

constexpr bool has_all_names() {
  if (registry.size() != operator_names.size()) return false;
  for (std::size_t i = 0; i < registry.size(); ++i) {
    if (registry[i].name != operator_names[i]) return false;
  }
  return true;
}
static_assert(has_all_names(), "operator_names and the registry differ");

}  // namespace

std::vector<std::shared_ptr<const Operator>> make_operators(const Config& config) {
  std::vector<std::shared_ptr<const Operator>> made;
  for (const std::string& name : config.operators.run) {
    const auto entry = std::ranges::find(registry, std::string_view(name), &Entry::name);
    if (entry == registry.end()) throw ConfigError("operators.run names '" + name + "', which isn't an operator");
    made.push_back(entry->make(config));
  }
  return made;
}

}  // namespace slidestream::operators
