#include "slide/srgb_conversion.hpp"

#include <slidestream/error.hpp>

namespace slidestream {

SrgbConversion find_srgb_conversion(const Slide& slide) {
  const Colour colour = slide.info().levels.front().colour;
  if (colour != Colour::rgb && colour != Colour::ycbcr) return {nullptr, "it is grey"};
  const IccProfile profile = slide.icc_profile(0);
  if (!profile.fault.empty()) return {nullptr, profile.fault};
  if (profile.bytes.empty()) return {nullptr, "it has no ICC profile"};
  try {
    return {std::make_shared<const ColourConversion>(profile.bytes), {}};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace slidestream
