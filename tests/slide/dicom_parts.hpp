#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "slide/dicom_pictures.hpp"

/// \file
/// Pieces of DICOM images for tests of what contradicts what: frames by their places, and parts of a concatenation.

namespace slidestream::test {

using Lines = std::vector<std::string>;
/// Column and row of each frame's first pixel, from 1.
using Places = std::vector<std::pair<int, int>>;

/// The tiles of `picture_for`.
inline const Places row_by_row = {{1, 1}, {65, 1}, {129, 1}, {1, 65}, {65, 65}, {129, 65}};

inline std::vector<DicomSet> frames_at(const Places& places) {
  std::vector<DicomSet> frames;
  for (const auto& [column, row] : places) frames.push_back(dicom_frame_at(column, row));
  return frames;
}

/// A file that says that it is one of two parts of an image. \param number  from 0
inline DicomFile dicom_part(const DicomFile& whole, int number, std::int64_t frames_before) {
  DicomFile part = whole;
  part.set.text(0x00080018, "UI", "1.2.3.1." + std::to_string(number))
      .text(0x00209161, "UI", "1.2.3.9")
      .number(0x00209162, "US", number + 1)
      .number(0x00209163, "US", 2)
      .number(0x00209228, "UL", frames_before);
  return part;
}

/// Two files with three of six frames each.
inline std::vector<DicomFile> dicom_halves(const DicomFile& whole) {
  std::vector<DicomFile> parts;
  for (int i = 0; i < 2; ++i) {
    DicomFile& part = parts.emplace_back(dicom_part(whole, i, std::int64_t{3} * i));
    part.frames.assign(whole.frames.begin() + std::ptrdiff_t{3} * i,
                       whole.frames.begin() + std::ptrdiff_t{3} * (i + 1));
    part.set.text(0x00280008, "IS", "3");
  }
  return parts;
}

}  // namespace slidestream::test
