#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <string>

#include "operators/stain/stain.hpp"

namespace slidestream::operators {

/// How the pixels of a slide change.
class StainParameters final : public SlideParameters {
 public:
  /// \param slide  its stains, for its results
  StainParameters(const StainMap& map, const StainBasis& slide) : stain_(map), slide_(slide) {}

  const Stain& stain() const noexcept { return stain_; }
  /// White, vectors and maxima: `stain.white_red`, `stain.hematoxylin_red`, ..., `stain.eosin_maximum`.
  std::vector<NamedValue> values() const override;

 private:
  Stain stain_;
  StainBasis slide_;
};

/// Pixels in a reference's stains: `prepare` measures the slide's white on its small level and fits its stains
/// (`fit_stains`) to `stained_blocks`. The reference is a slide that is prepared in the same way when it is first
/// wanted, or the published stains.
std::shared_ptr<const Operator> make_stain_operator(const Config& config);

/// Whether the reference of an operator that runs can be opened. \throws ConfigError naming the key and the file
void check_stain_reference(const Config& config);

/// A line where that reference doesn't say its pixel size; empty where it does, or can't be opened.
std::string doubt_of_stain_reference(const Config& config);

}  // namespace slidestream::operators
