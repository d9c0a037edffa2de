#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// Pixels in a reference's stains: `prepare` fits the slide's own ones (`fit_stains`) on its small level, where tissue
/// is. The reference is a slide that is prepared in the same way when it is first wanted, or the published stains.
std::shared_ptr<const Operator> make_stain_operator(const Config& config);

}  // namespace slidestream::operators
