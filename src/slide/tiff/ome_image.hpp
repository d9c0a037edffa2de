#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace slidestream {

/// What the tags of a directory of the main chain say.
struct OmeDirectory {
  std::uint64_t samples = 1;  ///< of a pixel
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  bool operator==(const OmeDirectory&) const = default;
};

/// An image that OME-XML declares.
struct OmeImage {
  std::string name;
  std::uint64_t width = 0;  ///< 0: it doesn't say
  std::uint64_t height = 0;
  std::size_t planes = 1;  ///< of all channels, depths and times
  std::size_t depths = 1;
  std::size_t times = 1;
  std::string order;                  ///< DimensionOrder: of the axes, the fastest first, such as XYCZT
  std::vector<std::string> channels;  ///< names, else dyes or wavelengths; empty where not all have one
  std::vector<std::string> samples;   ///< names of channels that are samples of one directory; empty as above
  bool channels_are_samples = false;  ///< of one directory
  bool has_fluorescence = false;      ///< its Channels have a dye, wavelengths, or that method
  std::uint64_t size_c = 0;           ///< SizeC; 0: it doesn't say
  bool size_c_counts = false;         ///< it, not the Channels, fits the directories
  /// SamplesPerPixel of its Channels, some thousand at most; empty where not all say it.
  std::vector<std::uint64_t> channel_samples;
  /// Directories of this file's main chain, by the number of the plane.
  std::map<std::size_t, std::size_t> directories;
  /// Directories of planes that a later element gives another one.
  std::vector<std::size_t> displaced;
  std::string placed_twice;  ///< the first such plane, in a line; empty: there is none
  /// What the other files are called that planes lie in, by the number of the plane; some thousand at most.
  std::map<std::size_t, std::string> elsewhere;
  bool lies_elsewhere = false;  ///< it has TiffData, and all of it names other files
  std::string shared;           ///< two planes that have one directory, in a line; empty: there are none
  std::string from_one;         ///< axes along which it counts planes from 1, such as "C"
  bool is_placed = false;       ///< it says which directories those are, if any, instead of being the next ones
  bool has_pixels = true;       ///< false: MetadataOnly, or pixels in the text
  std::string associated;       ///< "label", "macro", ... where it is called so

  /// Planes along one axis of its order, C, Z or T.
  std::size_t size_along(char axis) const noexcept;
};

/// What each plane of the image is, by its number: "DAPI", or in several depths or times "DAPI, z 0, t 1". Empty where
/// the channels have no names and there is one depth and time.
std::vector<std::string> plane_names(const OmeImage& image);

}  // namespace slidestream
