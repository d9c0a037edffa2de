#pragma once

#include <memory>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// The operators that a configuration runs, in its order. \throws ConfigError for a name that is none's, which
/// `validate` refuses, too.
std::vector<std::shared_ptr<const Operator>> make_operators(const Config& config);

}  // namespace slidestream::operators
