#pragma once

#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>

#include "slide/pixel_size.hpp"
#include "slide/tiff/pyramid.hpp"

namespace slidestream {

/// Fills format, properties and magnification from an ImageDescription that is no OME-XML: Aperio's "key = value" pairs
/// between bars; of another program's text MPP and AppMag, wherever such a list stands; of libvips' XML its pixel size.
/// Where Aperio's text says by its arrow that the image was made smaller, both are scaled, with a warning. Where it is
/// of an image of another size, they aren't, with another warning. Returns the pixel size. \param image  its size
/// \param tile  that of its tiles, to which one of the sizes may be padded; 1 x 1 without tiles
SaidPixelSize read_description(std::string_view description, ImageSize image, ImageSize tile, SlideInfo& info);

/// What a list of keys says of its image's scale, as it stands there.
struct DescribedScale {
  std::optional<double> mpp;
  std::optional<double> magnification;  ///< AppMag
};

/// Of any description but XML. What is no number is none, without a warning.
DescribedScale scale_in(std::string_view description);

/// The name in a text that calls an image label, macro, overview, barcode or thumbnail, in any case, and says nothing
/// else but its size, other numbers, "image" and "slide"; empty for any other text. Blanks, underscores, hyphens,
/// digits and capitals as in MacroImage separate words, and a byte order mark is passed over.
std::string name_of_associated_in(std::string_view text);

/// The name that an ImageDescription gives to an image that is no level: label, macro, overview, barcode or thumbnail,
/// in any case; empty when it gives none. In Aperio's text it is the first word of the second line, and in another one
/// what `name_of_associated_in` finds in the first or second line. Of XML only the ImageType of a QPTIFF is looked at.
std::string associated_name(std::string_view description);

/// The channel that the XML of a QPTIFF says that an image shows; empty where it says none.
std::string channel_of_qptiff(std::string_view xml);

/// What Aperio's text says of an image's focus, such as "OffsetZ -0.002"; empty where it says no number.
std::string name_of_focus(std::string_view description);

/// The size of a thumbnail that Aperio's text describes: its second line begins with "WxH -> wxh", the slide's size and
/// its own. None for another text; in those of levels the size of tiles stands before the arrow.
std::optional<ImageSize> size_of_thumbnail(std::string_view description);

}  // namespace slidestream
