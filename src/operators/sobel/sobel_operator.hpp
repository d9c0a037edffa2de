#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// `sobel` of the luminance, as an image.
std::shared_ptr<const Operator> make_sobel_operator(const Config& config);

}  // namespace slidestream::operators
