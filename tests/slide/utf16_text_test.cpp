#include "slide/tiff/utf16_text.hpp"

#include <doctest/doctest.h>

#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <string_view>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::string bytes_of(std::u16string_view text, bool big_endian) {
  std::string bytes;
  for (const char16_t unit : text) {
    for (const bool high : {big_endian, !big_endian}) bytes += static_cast<char>(high ? unit >> 8 : unit & 0xFF);
  }
  return bytes;
}

/// "none" for what isn't UTF-16.
std::string decoded(const std::string& bytes) {
  return text_of_utf16(std::as_bytes(std::span(bytes.data(), bytes.size()))).value_or("none");
}

}  // namespace

TEST_CASE("UTF-16 is known by its mark, or by characters of ASCII, and ends at a NUL") {
  for (const bool big_endian : {false, true}) {
    const auto utf16 = [big_endian](std::u16string_view text) { return bytes_of(text, big_endian); };
    CHECK(decoded(utf16(u"\uFEFFa\u00E9\u20AC\U0001F52C")) == "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\xAC");
    CHECK(decoded(utf16(u"\uFEFF")).empty());
    CHECK(decoded(utf16(u"<OME \u00B5")) == "<OME \xC2\xB5");
    CHECK(decoded(utf16(u"\r\n\r\nab") + std::string(3, '\0') + utf16(u"cd")) == "\r\n\r\nab");
    // Half a unit at the end.
    CHECK(decoded(utf16(u"abcd") + "e") == "abcd");
    // Half a pair of surrogates, within a text and at its end.
    const std::u16string halves = {0xFEFF, 0xDC00, u'b', 0xD83D, u'c', 0xD83D};
    CHECK(decoded(utf16(halves)) ==
          "\xEF\xBF\xBD"
          "b\xEF\xBF\xBD"
          "c\xEF\xBF\xBD");
    // Too little to tell, and what begins otherwise.
    for (const std::u16string_view text : {u"", u"abc", u"ab\u00B5d", u"\u00B5bcd"})
      CHECK(decoded(utf16(text)) == "none");
  }
  for (const char* text : {"", "<", "<?xml version=\"1.0\"?>", "Aperio", "\xEF\xBB\xBF<OME", "\xB5m"}) {
    CHECK(decoded(text) == "none");
  }
  // Of two bytes only one order has a mark.
  CHECK(decoded("\xFE\xFF").empty());
  CHECK(decoded("\xFF") == "none");
}

TEST_CASE("descriptions in UTF-16 are read") {
  const TemporaryFolder folder;
  const auto described = [&folder](const std::string& text) {
    TestTiff tiff;
    tiff.directories = {tiled_directory(64, 64, 64, 64, 1)};
    tiff.directories[0].tiles = {Bytes(64 * 64)};
    tiff.directories[0].set_text(270, text);
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info();
  };
  constexpr std::u16string_view xml =
      u"<?xml version='1.0' encoding='UTF-16'?><OME><Image Name='a \u00E9'><Pixels SizeX='64' SizeY='64' "
      u"PhysicalSizeX='0.25' PhysicalSizeXUnit='\u00B5m' PhysicalSizeY='250' PhysicalSizeYUnit='nm'/></Image></OME>";
  for (const bool big_endian : {false, true}) {
    const std::string text = bytes_of(xml, big_endian);
    for (const std::string& described_by : {text, bytes_of(u"\uFEFF", big_endian) + text}) {
      const SlideInfo info = described(described_by);
      CHECK(info.format == "ome-tiff");
      CHECK(info.mpp.value_or(0.0) == doctest::Approx(0.25));
      CHECK(info.properties.at("name") == "a \xC3\xA9");
      CHECK(info.warnings.empty());
    }
    const SlideInfo aperio = described(bytes_of(u"Aperio\n|MPP = 0.5", big_endian));
    CHECK(aperio.format == "aperio");
    CHECK(aperio.mpp.value_or(0.0) == 0.5);
  }
  // A text in bytes that says UTF-16 is what its bytes are.
  CHECK(described("<?xml version='1.0' encoding='utf-16'?><OME><Image><Pixels SizeX='64' SizeY='64' "
                  "PhysicalSizeX='0.25' PhysicalSizeY='0.25'/></Image></OME>")
            .mpp.value_or(0.0) == 0.25);
}
