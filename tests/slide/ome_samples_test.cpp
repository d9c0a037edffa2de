// What OME-XML calls the samples of a pixel, and what it says of their number.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

constexpr std::uint32_t side = 64;

/// A tile of pixels whose samples are 10, 20, ...
TestDirectory interleaved(int samples) {
  TestDirectory directory = tiled_directory(side, side, side, side, samples);
  Bytes tile;
  for (std::uint32_t i = 0; i < side * side; ++i) {
    for (int sample = 1; sample <= samples; ++sample) tile.push_back(static_cast<std::byte>(10 * sample));
  }
  directory.tiles = {tile};
  return directory;
}

TestDirectory apart(int samples) {
  TestDirectory directory = interleaved(samples);
  directory.set_short(284, 2).tiles.clear();
  for (int sample = 1; sample <= samples; ++sample) {
    directory.tiles.emplace_back(std::size_t{side} * side, static_cast<std::byte>(10 * sample));
  }
  return directory;
}

std::string channels_of(const Lines& names) {
  std::string channels;
  for (const std::string& name : names) channels += "<Channel Name=\"" + name + "\" SamplesPerPixel=\"1\"/>";
  return channels;
}

class Fixture {
 public:
  std::filesystem::path write(TestDirectory directory, const std::string& size_c, const std::string& channels) {
    directory.set_text(270, "<OME xmlns=\"x\"><Image><Pixels SizeX=\"64\" SizeY=\"64\" " + size_c + ">" + channels +
                                "</Pixels></Image></OME>");
    TestTiff tiff;
    tiff.directories = {std::move(directory)};
    return folder.write("slide.tif", tiff.bytes());
  }
  std::filesystem::path named(const TestDirectory& directory, const Lines& names) {
    return write(directory, "SizeC=\"" + std::to_string(names.size()) + "\"", channels_of(names));
  }
  Lines lines(const TestDirectory& directory, const std::string& size_c, const std::string& channels) {
    return Slide::open(write(directory, size_c, channels))->info().warnings;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "samples that OME-XML names as channels are channels, though the tags say RGB") {
  const Lines stains = {"DAPI", "CD3", "CD8"};
  for (const TestDirectory& directory : {interleaved(3), apart(3)}) {
    const auto path = named(directory, stains);
    CHECK(open_error(path).ends_with("has 3 channels (DAPI, CD3, CD8); set input.channel to choose one, 0 to 2"));
    CHECK(open_error(path, {.channel = 3}).ends_with("input.channel is 3; it has 3 channels (DAPI, CD3, CD8)"));
    for (int channel = 0; channel < 3; ++channel) {
      const auto slide = Slide::open(path, {.channel = channel});
      CHECK(slide->info().levels[0].colour == Colour::grey);
      CHECK(slide->info().channels == stains);
      CHECK(slide->info().warnings == Lines{});
      CHECK(read_level(*slide) ==
            std::vector<std::uint8_t>(std::size_t{side} * side, static_cast<std::uint8_t>(10 * (channel + 1))));
    }
  }
  CHECK(open_error(named(interleaved(4), {"DAPI", "CD3", "CD8", "CD4"})).find("has 4 channels (DAPI, CD3") !=
        std::string::npos);
  // Colours, numbers, and one thing.
  for (const Lines& names : {Lines{"R", "G", "B"}, Lines{"TL Red", "TL Green", "TL Blue"}, Lines{"RGB", "RGB", "RGB"},
                             Lines{"Channel 0", "Channel 1", "Channel 2"}, Lines{"", "CD3", "CD8"},
                             Lines{"3", "1", "2"}, Lines{"H_0", "H_1", "H_2"}, Lines{"Brightfield R", "RGB_G", "x-B"},
                             Lines{"Rot", "Gr\u00fcn", "Blau"}, Lines{"Red", "Green", "Blue", "Alpha"}}) {
    CAPTURE(names[0]);
    const auto slide = Slide::open(named(interleaved(static_cast<int>(names.size())), names));
    CHECK(slide->info().levels[0].colour == Colour::rgb);
    CHECK(slide->info().warnings == Lines{});
  }
}

TEST_CASE_FIXTURE(Fixture, "dyes and wavelengths make channels, under names that say nothing or none") {
  const auto refusal = [&](const std::string& first, const std::string& second) {
    return open_error(
        write(interleaved(2), "SizeC=\"2\"",
              "<Channel SamplesPerPixel=\"1\" " + first + "/><Channel SamplesPerPixel=\"1\" " + second + "/>"));
  };
  const std::string choose = "; set input.channel to choose one, 0 to 1";
  CHECK(refusal("Fluor=\"DAPI\"", "Fluor=\"FITC\"").ends_with("has 2 channels (DAPI, FITC)" + choose));
  CHECK(refusal("Name=\"C:0\" Fluor=\"DAPI\"", "Name=\"C:1\" Fluor=\"FITC\"")
            .ends_with("has 2 channels (C:0, C:1)" + choose));
  CHECK(refusal("EmissionWavelength=\"461\"", "ExcitationWavelength=\"488\"")
            .ends_with("has 2 channels (461 nm, 488 nm)" + choose));
  CHECK(
      refusal("Name=\"0\" ContrastMethod=\"Fluorescence\"", "Name=\"1\"").ends_with("has 2 channels (0, 1)" + choose));
  CHECK(refusal("Name=\"405\"", "Name=\"488\"").ends_with("has 2 channels (405, 488)" + choose));
}

TEST_CASE_FIXTURE(Fixture, "channels that can't be read alone are read as colours, with a line") {
  TestDirectory directory = interleaved(3);
  const Picture picture{side, side, 3, std::vector<std::uint8_t>(std::size_t{3} * side * side, 99)};
  directory.set_short(259, 7).tiles = {encode_jpeg(picture)};
  directory.set_short(262, 6);
  const auto slide = Slide::open(named(directory, {"DAPI", "CD3", "CD8"}));
  CHECK(slide->info().levels[0].colour == Colour::ycbcr);
  CHECK(slide->info().warnings ==
        Lines{"its OME-XML calls the samples of a pixel DAPI, CD3 and CD8: they are read as red, green and blue"});
}

TEST_CASE_FIXTURE(Fixture, "grey samples that are channels have the names that OME-XML gives them") {
  for (TestDirectory directory : {interleaved(3), apart(3)}) {
    directory.set_short(262, 1).set(338, short_, {0, 0});
    const auto path = named(directory, {"DAPI", "FITC", "Cy5"});
    CHECK(open_error(path).ends_with("has 3 channels (DAPI, FITC, Cy5); set input.channel to choose one, 0 to 2"));
    CHECK(Slide::open(path, {.channel = 1})->info().channels == Lines{"DAPI", "FITC", "Cy5"});
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "directories of fewer samples than OME-XML says are planes by SizeC, whatever TiffData is there") {
  const auto file_of = [&](int pages, int samples, const std::string& size_c, const std::string& content) {
    TestTiff tiff;
    for (int page = 0; page < pages; ++page) {
      TestDirectory directory = interleaved(samples);
      std::ranges::fill(directory.tiles[0], static_cast<std::byte>(10 * (page + 1)));
      tiff.directories.push_back(std::move(directory));
    }
    tiff.directories[0].set_text(270, "<OME xmlns=\"x\"><Image><Pixels SizeX=\"64\" SizeY=\"64\" SizeC=\"" + size_c +
                                          "\">" + content + "</Pixels></Image></OME>");
    return folder.write("planes.tif", tiff.bytes());
  };
  const auto channel_of = [](int samples) { return "<Channel SamplesPerPixel=\"" + std::to_string(samples) + "\"/>"; };
  const auto each = [](int pages) {
    std::string data;
    for (int page = 0; page < pages; ++page) {
      const std::string number = std::to_string(page);
      data += "<TiffData FirstC=\"" + number + "\" IFD=\"" + number + "\" PlaneCount=\"1\"/>";
    }
    return data;
  };
  const auto check = [&](int pages, int samples, const std::string& channels, const std::string& line) {
    CAPTURE(channels);
    const std::string count = std::to_string(pages);
    for (const std::string& data : {std::string(), std::string("<TiffData/>"),
                                    "<TiffData IFD=\"0\" PlaneCount=\"" + count + "\"/>", each(pages)}) {
      CAPTURE(data);
      const auto path = file_of(pages, samples, count, channels + data);
      CHECK(open_error(path).ends_with("has " + count + " channels; set input.channel to choose one, 0 to " +
                                       std::to_string(pages - 1)));
      for (const int channel : {0, pages - 1}) {
        const auto slide = Slide::open(path, {.channel = channel});
        CHECK(read_level(*slide).front() == 10 * (channel + 1));
        CHECK(slide->info().warnings == (line.empty() ? Lines{} : Lines{line}));
      }
    }
  };
  const std::string three = "its OME-XML says 3 samples a pixel, and the tags 1: the tags count";
  check(3, 1, channel_of(3), three);
  check(6, 1, channel_of(3) + channel_of(3), three);
  check(4, 1, channel_of(4), "its OME-XML says 4 samples a pixel, and the tags 1: the tags count");
  check(3, 1, "<Channel/>", "");
  check(6, 1, channel_of(3), "its OME-XML says that SizeC is 6, and its Channels have 3 samples: SizeC counts");
  // Each Channel has a directory in colours.
  check(3, 3, channel_of(1) + channel_of(1) + channel_of(1),
        "its OME-XML says 1 sample a pixel, and the tags 3: the tags count");
  // A directory that TiffData doesn't name is no plane that is read, but shows what SizeC counts.
  CHECK(open_error(file_of(3, 1, "3", channel_of(3) + each(1)))
            .find("has 3 channels, of which the file holds the first") != std::string::npos);
  CHECK(open_error(file_of(1, 3, "3", channel_of(3) + each(1))).empty());
}

TEST_CASE_FIXTURE(Fixture, "numbers of samples that contradict each other get one line") {
  const auto one = [](int samples) { return "<Channel SamplesPerPixel=\"" + std::to_string(samples) + "\"/>"; };
  const std::string tags_count = ": the tags count";
  CHECK(lines(interleaved(3), "SizeC=\"3\"", one(3)) == Lines{});
  CHECK(lines(interleaved(4), "SizeC=\"3\"", one(3)) == Lines{});  // with alpha
  CHECK(lines(interleaved(3), "SizeC=\"3\"", "<Channel/>") == Lines{});
  CHECK(lines(interleaved(3), "SizeC=\"3\"", "<Channel Name=\"H&amp;E\"/>") == Lines{});
  CHECK(lines(interleaved(3), "", "") == Lines{});
  CHECK(lines(interleaved(3), "SizeC=\"3\"", one(1) + one(1) + one(1)) == Lines{});
  CHECK(lines(interleaved(1), "SizeC=\"1\"", one(1)) == Lines{});
  CHECK(lines(interleaved(3), "SizeC=\"1\"", one(1)) ==
        Lines{"its OME-XML says 1 sample a pixel, and the tags 3" + tags_count});
  CHECK(lines(interleaved(3), "SizeC=\"2\"", one(2)) ==
        Lines{"its OME-XML says 2 samples a pixel, and the tags 3" + tags_count});
  CHECK(lines(interleaved(1), "SizeC=\"3\"", one(3)) ==
        Lines{"its OME-XML says 3 samples a pixel, and the tags 1" + tags_count});
  CHECK(lines(interleaved(3), "SizeC=\"1\"", one(3)) ==
        Lines{"its OME-XML says that SizeC is 1, and its Channels have 3 samples: SizeC doesn't count"});
}
