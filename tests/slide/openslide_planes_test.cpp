// Files of several focal planes and channels that OpenSlide reads: the made-up library takes them all.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/loaded_openslide.hpp"
#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

class Fixture {
 public:
  Fixture() {
    library().takes_all = true;
    library().levels = {{100, 80, 1.0}};
    library().properties = {{"openslide.vendor", "made-up"}};
    library().images.clear();
    library().icc.clear();
    library().open_error.clear();
    library().bad_x = library().bad_y = -1;
  }
  ~Fixture() { library().takes_all = false; }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  template <class Content>
  Lines lines(const std::string& name, const Content& content) {
    const auto slide = Slide::open(folder.write(name, content), {.openslide = SLIDESTREAM_MADE_UP_OPENSLIDE});
    CHECK(slide->info().container == "OpenSlide");
    return slide->info().warnings;
  }

  TemporaryFolder folder;
};

Lines line_of(int planes) { return {"has " + std::to_string(planes) + " focal planes, of which OpenSlide reads one"}; }

void append(Bytes& to, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 255));
}

/// An image of an NDPI file.
struct Page {
  float lens = 20.0F;
  std::int32_t z_offset = 0;
};

constexpr std::size_t ndpi_entries = 14;
constexpr std::uint64_t ndpi_first = 12;

/// A classic TIFF whose places of directories have 8 bytes. High words of the values stand behind each directory.
Bytes ndpi(const std::vector<Page>& pages, std::uint64_t behind_last = 0) {
  Bytes bytes;
  append(bytes, 0x002A4949, 4);
  append(bytes, ndpi_first, 8);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto [lens, z_offset] = pages[i];
    const std::array<std::array<std::uint64_t, 3>, ndpi_entries> entries = {
        {{256, 4, 64},
         {257, 4, 64},
         {258, 3, 8},
         {259, 3, 7},
         {262, 3, 6},
         {273, 4, 4},
         {277, 3, 3},
         {278, 4, 64},
         {279, 4, 8},
         {65420, 4, 1},
         {65421, 11, std::bit_cast<std::uint32_t>(lens)},
         {65422, 9, 0},
         {65423, 9, 0},
         {65424, 9, static_cast<std::uint32_t>(z_offset)}}};
    append(bytes, ndpi_entries, 2);
    for (const auto& [tag, type, value] : entries) {
      append(bytes, tag, 2);
      append(bytes, type, 2);
      append(bytes, 1, 4);
      append(bytes, value, 4);
    }
    const std::size_t next = bytes.size() + 8 + 4 * ndpi_entries;
    append(bytes, i + 1 < pages.size() ? next : behind_last, 8);
    bytes.resize(next);
  }
  return bytes;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a line counts the focal planes of an NDPI file") {
  const std::vector<Page> stack = {{20, -4000}, {20, 0}, {20, 4000}, {10, 0}, {-1, 7}, {-2, 9}};
  CHECK(lines("a.ndpi", ndpi(stack)) == line_of(3));
  // Of one plane, wherever it lies; the macro image and the map have none.
  CHECK(lines("b.ndpi", ndpi({{20, 0}, {10, 0}, {5, 0}, {-1, 4000}, {-2, 9}})).empty());
  CHECK(lines("c.ndpi", ndpi({{20, 4000}, {-1, 0}})).empty());
  // Damaged files say nothing: a loop, a place outside the file, a last directory that is cut, one of no entries.
  CHECK(lines("d.ndpi", ndpi(stack, ndpi_first)).empty());
  CHECK(lines("e.ndpi", ndpi(stack, std::uint64_t{1} << 40)).empty());
  Bytes cut = ndpi(stack);
  cut.resize(cut.size() - 4 * ndpi_entries - 1);
  CHECK(lines("f.ndpi", cut).empty());
  CHECK(lines("g.ndpi", ndpi(stack, 4 + 6)).empty());
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a line counts the focal planes of an SCN file") {
  const auto scn = [](const std::string& dimensions, const std::string& more = "") {
    TestDirectory directory = tiled_directory(64, 64, 64, 64, 3);
    directory.tiles = {Bytes(64 * 64 * 3)};
    directory.set_text(270,
                       "<?xml version=\"1.0\"?><scn xmlns=\"http://www.leica-microsystems.com/scn/2010/10/01\">"
                       "<collection><image><pixels><dimension sizeX=\"9\" r=\"0\" ifd=\"0\"/></pixels></image>"
                       "<image><pixels>" +
                           dimensions + "</pixels></image></collection></scn>" + more);
    return TestTiff{.directories = {directory}, .big = true}.bytes();
  };
  const std::string first = "<dimension r=\"0\" z=\"0\" ifd=\"1\"/><dimension r=\"1\" z=\"0\" ifd=\"2\"/>";
  CHECK(lines("a.scn", scn(first)).empty());
  const std::string stack = first +
                            "<dimension r=\"0\" z=\"1\" ifd=\"3\"/><dimension r=\"1\" z=\"1\" ifd=\"4\"/>"
                            "<dimension r=\"0\" z=\"2\" ifd=\"5\"/>";
  CHECK(lines("b.scn", scn(stack)) == line_of(3));
  CHECK(lines("c.scn", scn(stack, "<damaged")).empty());
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a line counts the focal planes of VMS and VMU files") {
  const auto vms = [](const std::string& layers) {
    return "[Virtual Microscope Specimen]\r\nNoJpegColumns=1\r\n" + layers + "\r\nImageFile=a.jpg\r\n";
  };
  CHECK(lines("a.vms", vms("NoLayers=3")) == line_of(3));
  CHECK(lines("b.vmu", std::string("[Uncompressed Virtual Microscope Specimen]\nNoLayers = 7")) == line_of(7));
  for (const char* layers :
       {"NoLayers=1", "NoLayers=0", "NoLayers=-3", "NoLayers=3x", "NoLayers=", "NoLayers", "Layers=3"}) {
    CAPTURE(layers);
    CHECK(lines("c.vms", vms(layers)).empty());
  }
  // Of a kind that isn't known.
  CHECK(lines("d.any", std::string("made up\nNoLayers=3\n")).empty());
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a line counts the focal planes that BIF's properties name") {
  const auto bif = [this](const std::string& layers) {
    library().properties = {{"openslide.vendor", "ventana"}, {"ventana.Z-layers", layers}};
    return lines("a.bif", std::string("made up"));
  };
  CHECK(bif("15") == line_of(15));
  for (const char* layers : {"1", "0", "-3", "3x", ""}) {
    CAPTURE(layers);
    CHECK(bif(layers).empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a line counts the focal planes that MIRAX's properties name") {
  const std::string hierarchy = "mirax.HIERARCHICAL.HIER_";
  const auto mirax = [&](const Lines& values, const std::string& name = "Microscope focus level") {
    library().properties = {{"openslide.vendor", "mirax"},
                            {hierarchy + "COUNT", "2"},
                            {hierarchy + "0_NAME", "Slide zoom level"},
                            {hierarchy + "0_COUNT", "1"},
                            {hierarchy + "0_VAL_0", "ZoomLevel_0"},
                            {hierarchy + "1_NAME", name},
                            {hierarchy + "1_COUNT", std::to_string(values.size())}};
    for (std::size_t i = 0; i < values.size(); ++i) {
      library().properties[hierarchy + "1_VAL_" + std::to_string(i)] = values[i];
    }
    return lines("a.any", std::string("made up"));
  };
  const Lines stack = {"ExtFocusLevel", "ZStackLevel_(-1)", "ZStackLevel_(0)", "ZStackLevel_(1)"};
  CHECK(mirax(stack) == line_of(3));
  // The level that is made of all planes is none.
  CHECK(mirax({"ExtFocusLevel", "ZStackLevel_(0)"}).empty());
  CHECK(mirax({"ExtFocusLevel"}).empty());
  CHECK(mirax(stack, "Slide filter level").empty());
  library().properties[hierarchy + "COUNT"] = "-1";
  CHECK(lines("a.any", std::string("made up")).empty());
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a channel can't be chosen of pixels that are RGB") {
  const auto path = folder.write("a.any", std::string("made up"));
  const auto error = [&](int channel) {
    return open_error(path, {.channel = channel, .openslide = SLIDESTREAM_MADE_UP_OPENSLIDE});
  };
  CHECK(error(-1).empty());
  CHECK(error(OpenOptions::any_channel).empty());
  for (const int channel : {0, 1}) {
    CHECK(error(channel) ==
          path.string() + ": input.channel is " + std::to_string(channel) + ", but its pixels are RGB; leave it out");
  }
}
