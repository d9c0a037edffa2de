#pragma once

#include <cstdint>
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
  std::uint64_t profile_bytes = 0;                     ///< of the profile that was looked at
  std::uint64_t reading_bytes = 0;                     ///< of the memory for decoding: what reading its table took
};

/// Looks at the ICC profile of level 0. Reading a table takes its part of the slide's `OpenOptions::decode_memory`.
/// Slides of equal steps share one conversion. Thread-safe. \throws StorageError where it can't be read, SlideError
/// where the table takes more than all of that memory, StoppedError when `give_up` ends the wait for it
SrgbConversion find_srgb_conversion(const Slide& slide);

/// Whether JPEG tiles of level 0 have an ICC profile of their own (APP2), which isn't read: the first one's front
/// tells.
bool has_profile_in_tiles(const Slide& slide);

}  // namespace slidestream
