#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/file.hpp"

namespace slidestream {

/// Reads the ICC profile of `count` bytes at `offset` of a file; where it isn't usable, `fault` says why.
/// \throws SlideError when the system fails
IccProfile read_icc_profile(const File& file, std::uint64_t offset, std::uint64_t count);

/// What is wrong with the size of a profile; empty: nothing.
std::string icc_size_fault(std::uint64_t bytes);

/// The profile that the bytes are; where it isn't usable, `fault` says why.
IccProfile checked_icc_profile(std::vector<std::byte> bytes);

}  // namespace slidestream
