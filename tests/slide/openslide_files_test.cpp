#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slide/file.hpp"
#include "slide/formats.hpp"
#include "slide/openslide/kinds.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace fs = std::filesystem;

TEST_CASE("OpenSlide: which files are for it") {
  const TemporaryFolder folder;
  const auto kind = [](const fs::path& path) -> std::string {
    const File file(path);
    std::array<std::byte, first_bytes> first;
    const openslide::Kind* found = openslide::kind_of(std::span(first).first(file.read_some(0, first)), file);
    return found == nullptr ? "" : found->name;
  };
  const auto tiff = [&](const std::function<void(TestDirectory&)>& change, bool big = false) {
    TestDirectory directory = tiled_directory(64, 64, 64, 64, 3);
    directory.tiles = {Bytes(64 * 64 * 3)};
    change(directory);
    return kind(folder.write("slide.tif", TestTiff{.directories = {directory}, .big = big}.bytes()));
  };
  const std::string leica = R"(<scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01">)";
  CHECK(tiff([](TestDirectory&) {}).empty());
  CHECK(tiff([](TestDirectory& to) { to.set_text(270, "Aperio Image Library"); }).empty());
  CHECK(tiff([](TestDirectory& to) { to.set(65420, long_, {1}); }) == "Hamamatsu NDPI");
  CHECK(tiff([&](TestDirectory& to) { to.set_text(270, leica); }, true) == "Leica SCN");
  CHECK(tiff([&](TestDirectory& to) { to.set_text(270, "<?xml version=\"1.0\"?>\n<!-- <a> -->\n" + leica); }) ==
        "Leica SCN");
  CHECK(tiff([&](TestDirectory& to) { to.set_text(270, "<?xml version=\"1.0\"?><OME>" + leica + "</OME>"); }).empty());
  CHECK(tiff([](TestDirectory& to) { to.set_text(305, "Philips DP v1.0"); }).empty());
  CHECK(tiff([](TestDirectory& to) {
          to.set_text(305, "Philips DP v1.0").set_text(270, "<DataObject ObjectType=\"DPUfsImport\">");
        }) == "Philips TIFF");
  CHECK(tiff([](TestDirectory& to) { to.set_text(305, "MedScan").set_text(270, "OverlapsXY= 4 4"); }) ==
        "Trestle TIFF");
  CHECK(tiff([](TestDirectory& to) {
          const std::string_view xmp = "<iScan Magnification=\"20\"/>";
          const auto bytes = std::as_bytes(std::span(xmp));
          to.set_bytes(700, Bytes(bytes.begin(), bytes.end()));
        }) == "Ventana BIF");
  // Behind what a scanner writes before it.
  const std::string late = "<Metadata>" + std::string(std::size_t{1} << 20, 'x') + "<iScan Magnification=\"20\"/>";
  const auto bytes_of_late = std::as_bytes(std::span(late));
  CHECK(tiff([&](TestDirectory& to) { to.set_bytes(700, Bytes(bytes_of_late.begin(), bytes_of_late.end())); }) ==
        "Ventana BIF");
  // Strips that somebody made of such a file.
  for (const bool is_tiled : {true, false}) {
    TestDirectory directory = is_tiled ? tiled_directory(64, 64, 64, 64, 3) : stripped_directory(64, 64, 64, 3);
    directory.tiles = {Bytes(64 * 64 * 3)};
    directory.set_text(305, "MedScan").set_text(270, "Objective Power=10");
    const fs::path path = folder.write("slide.tif", TestTiff{.directories = {directory}}.bytes());
    CHECK(kind(path) == (is_tiled ? "Trestle TIFF" : ""));
  }
  CHECK(kind(folder.write("a", std::string("ZISRAWFILE\0\0", 12))) == "Zeiss CZI");
  CHECK(kind(folder.write("b", std::string("[Virtual Microscope Specimen]\n"))) == "Hamamatsu VMS");
  CHECK(kind(folder.write("b", std::string("[Uncompressed Virtual Microscope Specimen]\n"))) == "Hamamatsu VMU");
  CHECK(kind(folder.write("c.svslide", std::string("SQLite format 3"))) == "Sakura SVSLIDE");
  CHECK(kind(folder.write("c.sqlite", std::string("SQLite format 3"))).empty());
  CHECK(kind(folder.write("d.svs", std::string("II*"))).empty());
  CHECK(kind(folder.write("e", std::string())).empty());
  // A name alone is never enough.
  CHECK(kind(folder.write("f.mrxs", std::string("anything"))).empty());
  CHECK(kind(folder.write("f.czi", std::string("anything"))).empty());
}

TEST_CASE("OpenSlide: an NDPI file above 4 GiB has its directory where only 64 bits reach") {
  const TemporaryFolder folder;
  const std::uint64_t at = (std::uint64_t{1} << 32) + 1000;
  std::string header("II*\0", 4);
  for (int i = 0; i < 8; ++i) header += static_cast<char>(at >> (8 * i) & 255);
  const fs::path path = folder.write("large.ndpi", header);
  fs::resize_file(path, at + 14);
  const std::string directory = {1, 0, '\x8C', '\xFF', 4, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  {
    std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.write(directory.data(), static_cast<std::streamsize>(directory.size()));
  }
  CHECK_THROWS_WITH_AS(
      Slide::open(path, {.openslide = "never"}),
      (path.string() + ": is Hamamatsu NDPI, which OpenSlide reads: input.openslide is \"never\"").c_str(), SlideError);
}

TEST_CASE("OpenSlide: the files of a slide") {
  const TemporaryFolder folder;
  const fs::path mirax = folder.write("m.mrxs", std::string("x"));
  fs::create_directory(folder / "m");
  for (const char* name : {"m/Slidedat.ini", "m/Index.dat", "m/Data0000.dat"}) folder.write(name, std::string("y"));
  CHECK(files_of_slide(mirax) ==
        std::vector<fs::path>{mirax, folder / "m/Data0000.dat", folder / "m/Index.dat", folder / "m/Slidedat.ini"});
  CHECK(is_part_of_slide(folder / "m"));
  fs::create_directory(folder / "n");
  folder.write("n/Slidedat.ini", std::string("y"));
  CHECK_FALSE(is_part_of_slide(folder / "n"));
  const fs::path vms =
      folder.write("v.vms", std::string("[Virtual Microscope Specimen]\nNoLayers=1\nImageFile=a.jpg\r\n"
                                        "ImageFile(1,0)= b.jpg\nMapFile=../m.mrxs\nMacro=gone.jpg\n"
                                        "Self=v.vms\n=\n=.\nAgain=a.jpg"));
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) folder.write(name, std::string("z"));
  CHECK(files_of_slide(vms) == std::vector<fs::path>{vms, folder / "a.jpg", folder / "b.jpg"});
}

}  // namespace slidestream::test
