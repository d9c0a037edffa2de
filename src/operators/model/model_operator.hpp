#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// A network over tiles (`[model]`): an image that is put together from what it gives for them, or a vector for each
/// tile. Its kernel gives the network's pixels: RGB as it is.
/// \throws ConfigError as `networks::open_network`.
std::shared_ptr<const Operator> make_model_operator(const Config& config);

}  // namespace slidestream::operators
