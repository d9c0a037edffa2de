#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/tiff_fixture.hpp"

namespace slidestream::test {

using Lines = std::vector<std::string>;

/// A TIFF slide of 100 x 60 black pixels.
class PixelSizeFixture : public TiffFixture {
 public:
  PixelSizeFixture() { tiff.directories = {black_level(100, 60)}; }
  SlideInfo described(const std::string& text) {
    tiff.directories[0].set_text(270, text);
    return open()->info();
  }
  /// The pixels' element has these attributes; `before` and `inside` stand before it and in its image.
  SlideInfo ome(const std::string& attributes, const std::string& before = "", const std::string& inside = "") {
    return described("<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME xmlns=\"x\">" + before +
                     "<Image ID=\"Image:0\" Name=\"a\">" + inside + "<Pixels SizeX=\"100\" SizeY=\"60\" " + attributes +
                     "><TiffData IFD=\"0\"/></Pixels></Image></OME>");
  }
  /// Resolution tags: pixels per unit. 1 is no unit, 2 inch, 3 centimetre.
  void resolution(std::uint64_t x, std::uint64_t y, std::uint64_t unit) {
    tiff.directories[0].set(282, rational, {x}).set(283, rational, {y}).set_short(296, unit);
  }
};

/// Attributes of equal sizes in both directions.
inline std::string size(const std::string& value, const std::string& unit) {
  return "PhysicalSizeX=\"" + value + "\" PhysicalSizeXUnit=\"" + unit + "\" PhysicalSizeY=\"" + value +
         "\" PhysicalSizeYUnit=\"" + unit + "\"";
}

}  // namespace slidestream::test
