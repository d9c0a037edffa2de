#pragma once

#include <cstdint>
#include <filesystem>
#include <slidestream/slide.hpp>
#include <vector>

#include "slide/test_dicom.hpp"
#include "slide/test_images.hpp"

/// \file
/// The pictures that tests of DICOM write, and what is read of them.

namespace slidestream::test {

namespace fs = std::filesystem;
using Codec = DicomOptions::Codec;
using Table = DicomFile::Table;

constexpr int width = 150;
constexpr int height = 100;

inline Picture picture_for(Codec codec, unsigned seed = 1) {
  return codec == Codec::jpeg_grey ? make_picture(width, height, 1, seed) : make_stained_picture(width, height, seed);
}

/// Pixels of level 0 by both readers.
inline std::vector<std::vector<std::uint8_t>> pixels_of(const fs::path& path) {
  const auto slide = Slide::open(path);
  return {read_level(*slide), read_level_rgb(*slide)};
}

}  // namespace slidestream::test
