#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/pixel_size.hpp"
#include "slide/tiff/ome_image.hpp"

namespace slidestream {

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
/// \param main  the directories of the main chain
/// \param file_name  of the slide, for planes in several files
/// \param meant  which of its images is the slide's, where that is known; its name says nothing then
std::optional<OmeXml> read_ome_xml(std::string_view description, const std::vector<OmeDirectory>& main,
                                   const std::string& file_name, SlideInfo& info,
                                   std::optional<std::size_t> meant = {});

}  // namespace slidestream
