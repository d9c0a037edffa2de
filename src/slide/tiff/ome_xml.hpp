#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/pixel_size.hpp"

namespace slidestream {

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
  /// SamplesPerPixel of its Channels, some thousand at most; empty where not all say it.
  std::vector<std::uint64_t> channel_samples;
  /// Directories of this file's main chain, by the number of the plane.
  std::map<std::size_t, std::size_t> directories;
  /// Directories of planes that a later element gives another one.
  std::vector<std::size_t> displaced;
  std::string placed_twice;  ///< the first such plane, in a line; empty: there is none
  /// What the other files are called that planes lie in, by the number of the plane; some thousand at most.
  std::map<std::size_t, std::string> elsewhere;
  std::string from_one;    ///< axes along which it counts planes from 1, such as "C"
  bool is_placed = false;  ///< it says which directories those are, if any, instead of being the next ones
  bool has_pixels = true;  ///< false: MetadataOnly, or pixels in the text
  std::string associated;  ///< "label", "macro", ... where it is called so
};

/// What each plane of the image is, by its number: "DAPI", or in several depths or times "DAPI, z 0, t 1". Empty where
/// the channels have no names and there is one depth and time.
std::vector<std::string> plane_names(const OmeImage& image);

/// What is used of an OME-XML text.
struct OmeXml {
  std::vector<OmeImage> images;
  /// Of the images: the first with directories here that isn't called label and the like, or a larger one of its shape.
  std::size_t slide = 0;
  std::optional<std::size_t> absent;  ///< an image before it that would be the slide, but has no directory here
  SaidPixelSize pixel_size;
  bool is_damaged = false;  ///< then nothing of it is used

  /// The slide's image; null where there is none.
  const OmeImage* slide_image() const noexcept { return images.empty() ? nullptr : &images[slide]; }

  /// An image beside the slide's that has this size, and this directory as its first plane.
  std::optional<std::size_t> image_at(std::size_t directory, std::uint64_t width, std::uint64_t height) const;
};

/// Reads a description that is OME-XML, whatever prefix its names have: format, properties and magnification go into
/// `info`, and what is doubtful into its warnings. None, and nothing written, for another text.
/// \param samples  per pixel of each directory of the main chain
/// \param file_name  of the slide, for planes in several files
/// \param meant  which of its images is the slide's, where that is known; its name says nothing then
std::optional<OmeXml> read_ome_xml(std::string_view description, const std::vector<std::uint64_t>& samples,
                                   const std::string& file_name, SlideInfo& info,
                                   std::optional<std::size_t> meant = {});

}  // namespace slidestream
