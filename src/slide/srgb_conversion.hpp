#pragma once

#include <memory>
#include <slidestream/slide.hpp>
#include <string>

#include "colour/colour_conversion.hpp"

/// \file
/// How a slide's colours become sRGB.

namespace slidestream {

/// The conversion by a slide's profile, or why there is none.
struct SrgbConversion {
  std::shared_ptr<const ColourConversion> conversion;  ///< null where there is a fault
  std::string fault;                                   ///< as a line goes on after a colon; empty: none
};

/// Looks at the ICC profile of level 0. Thread-safe. \throws StorageError where it can't be read
SrgbConversion find_srgb_conversion(const Slide& slide);

}  // namespace slidestream
