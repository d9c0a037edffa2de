#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "image/pyramid_layout.hpp"
#include "sink/dicom_item.hpp"
#include "sink/image_sink.hpp"

/// \file
/// What stands in front of the frames of a VL Whole Slide Microscopy Image (PS3.3, A.32.8).

namespace slidestream {

/// What a file of attributes says.
struct DicomAttributes {
  DicomItem image;        ///< of patient, study, series, equipment and container
  DicomItem specimen;     ///< of the one specimen
  std::string container;  ///< its identifier; empty: not said
};

/// All of one length each, so that a head's length doesn't depend on them.
struct DicomUids {
  std::string study;
  std::string series;
  std::string frame_of_reference;
  std::string dimensions;
  std::string specimen;
  std::string container;  ///< no UID: a name of hexadecimal digits
  std::string instance;   ///< of the level
};

/// How the pixels of a level are stored.
struct DicomLevel {
  int level = 0;
  const char* photometric = "MONOCHROME2";
  bool jpeg = false;      ///< else uncompressed, without items
  bool extended = false;  ///< an extended offset table; else a basic one
  bool copied = false;    ///< tiles are those of the source
  double ratio = 1.0;     ///< of JPEG: bytes of pixels by coded bytes
  std::uint64_t frames = 0;
  std::vector<std::uint64_t> offsets;  ///< of frames that are there, from the first item on
  std::vector<std::uint64_t> lengths;  ///< without padding
};

/// The file's bytes up to its first frame. Their number depends on the level's offsets, lengths, ratio and on `uids`
/// in nothing. `description.mpp` is there.
std::vector<std::byte> dicom_head(const PyramidLayout& layout, const ImageDescription& description,
                                  const DicomAttributes& attributes, const DicomUids& uids, const DicomLevel& level);

}  // namespace slidestream
