#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

#include "operators/stain/stain.hpp"

namespace slidestream::operators {

/// How the pixels of a slide change.
class StainParameters final : public SlideParameters {
 public:
  explicit StainParameters(const StainMatrix& matrix) : stain_(matrix) {}

  const Stain& stain() const noexcept { return stain_; }

 private:
  Stain stain_;
};

/// Pixels in a reference's stains: `prepare` fits the slide's own ones (`fit_stains`) on its small level, where tissue
/// is. The reference is a slide that is prepared in the same way when it is first wanted, or the published stains.
std::shared_ptr<const Operator> make_stain_operator(const Config& config);

}  // namespace slidestream::operators
