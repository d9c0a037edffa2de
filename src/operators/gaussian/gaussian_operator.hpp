#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// `Gaussian` of RGB or luminance, as an image.
std::shared_ptr<const Operator> make_gaussian_operator(const Config& config);

}  // namespace slidestream::operators
