#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// `features.coords_only`: the places of the tiles that a network of vectors would get, as coords/SLIDE.h5. It stands
/// for the operator `model`, and opens no network. \param config  with what MODEL.toml says.
/// \throws ConfigError where the settings leave the tiles open, or want something else than vectors.
std::shared_ptr<const Operator> make_coordinates_operator(const Config& config);

}  // namespace slidestream::operators
