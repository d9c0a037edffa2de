#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// The pixels themselves as an image: with a format for images, slides are converted.
std::shared_ptr<const Operator> make_identity_operator(const Config& config);

}  // namespace slidestream::operators
