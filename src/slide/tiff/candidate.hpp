#pragma once

#include <cstdint>
#include <string>

#include "slide/tiff/pyramid.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// A directory of a TIFF file and what it says of its image, in the order in which it is found.
struct Candidate {
  RawDirectory raw;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t type = 0;  ///< NewSubfileType
  bool tiled = false;
  bool is_aperios = false;    ///< its description begins with that name
  bool is_thumbnail = false;  ///< Aperio's description has its size as that of the slide made smaller
  bool is_beside = false;     ///< no level, whatever it is
  std::string associated;     ///< "label", "macro", "thumbnail", ... where that is known
  std::string focus;          ///< what Aperio's description says of it, such as "OffsetZ -0.002"
  std::string fault;          ///< of its size, where that can't be read: "ImageWidth is missing"
  std::string says_so;        ///< the description with that name, unless its type says it

  ImageSize size() const { return {width, height}; }
};

}  // namespace slidestream
