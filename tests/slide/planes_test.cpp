// Slides whose red, green and blue lie apart in one directory: PlanarConfiguration 2.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/copied_tiles.hpp"
#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/test_images.hpp"
#include "slide/tile_reader.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Encoder = std::function<Bytes(const Picture&)>;

constexpr int side = 32;

/// A directory of a picture, each sample in tiles of its own, which `encode` makes of a grey picture.
TestDirectory planes_of(const Picture& picture, std::uint64_t compression = 1, const Encoder& encode = to_bytes) {
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), side, side, picture.samples);
  directory.set_short(284, 2).set_short(259, compression);
  for (int plane = 0; plane < picture.samples; ++plane) {
    for (int y = 0; y < picture.height; y += side) {
      for (int x = 0; x < picture.width; x += side) {
        const Picture tile = cut(picture, x, y, side, side);
        directory.tiles.push_back(encode({side, side, 1, sample(tile, plane)}));
      }
    }
  }
  return directory;
}

/// The same picture with samples side by side.
TestDirectory interleaved(const Picture& picture) {
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), side, side, picture.samples);
  for (int y = 0; y < picture.height; y += side) {
    for (int x = 0; x < picture.width; x += side) directory.tiles.push_back(to_bytes(cut(picture, x, y, side, side)));
  }
  return directory;
}

TestTiff file_of(std::vector<TestDirectory> directories) {
  TestTiff tiff;
  tiff.directories = std::move(directories);
  return tiff;
}

/// A picture after each plane of each tile went through a codec.
Picture through(const Picture& picture, const std::function<Picture(const Picture&)>& codec) {
  Picture made = picture;
  for (int plane = 0; plane < picture.samples; ++plane) {
    for (int y = 0; y < picture.height; y += side) {
      for (int x = 0; x < picture.width; x += side) {
        const Picture tile = codec({side, side, 1, sample(cut(picture, x, y, side, side), plane)});
        for (int j = y; j < std::min(y + side, picture.height); ++j) {
          for (int i = x; i < std::min(x + side, picture.width); ++i) {
            made.data[static_cast<std::size_t>((j * picture.width + i) * picture.samples + plane)] =
                *tile.at(i - x, j - y);
          }
        }
      }
    }
  }
  return made;
}

/// Every tile's RGB and luminance at once, against the picture. \returns how many rectangles differ.
int wrong_rectangles(const Slide& slide, const Picture& picture) {
  TileDecoder decoder;
  int wrong = 0;
  const Level& level = slide.info().levels[0];
  for (std::int64_t index = 0; index < level.columns * level.rows; ++index) {
    const int x = static_cast<int>(index % level.columns) * side + 3;
    const int y = static_cast<int>(index / level.columns) * side + 2;
    const int width = std::min(17, picture.width - x), height = std::min(9, picture.height - y);
    if (width <= 0 || height <= 0) continue;
    const Picture part = cut(picture, x, y, width, height);
    const auto pixels = static_cast<std::size_t>(width * height);
    std::vector<std::uint8_t> rgb(3 * pixels), luminance(pixels);
    const TileRange range = slide.tile(0, index);
    Bytes bytes(range.length);
    slide.read(range.offset, bytes);
    decoder.decode_both(slide, 0, index, bytes, 3, 2, {rgb.data(), 3 * width, width, height, rgb_format},
                        {luminance.data(), width, width, height, luminance_format});
    wrong += rgb == rgb_of(part) && luminance == formula(part) ? 0 : 1;
  }
  return wrong;
}

void check_pixels(const std::filesystem::path& path, const Picture& expected) {
  const auto slide = Slide::open(path);
  CHECK(slide->info().levels[0].codec == Codec::planes);
  CHECK(slide->info().levels[0].colour == Colour::rgb);
  CHECK(read_level_rgb(*slide) == rgb_of(expected));
  CHECK(read_level(*slide) == formula(expected));
  CHECK(wrong_rectangles(*slide, expected) == 0);
}

}  // namespace

TEST_CASE("planes without compression, of any byte order, with and without alpha") {
  const TemporaryFolder folder;
  for (const int samples : {3, 4}) {
    const Picture picture = make_picture(75, 50, samples, 1);
    TestTiff tiff = file_of({planes_of(picture)});
    for (const bool big : {false, true}) {
      tiff.big = tiff.big_endian = big;
      check_pixels(folder.write("slide.tif", tiff.bytes()), picture);
    }
  }
}

TEST_CASE("each plane is a grey JPEG, with tables of its own or of the directory") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(75, 50, 3, 2);
  JpegOptions options{.coding = JpegOptions::Coding::grey, .horizontal = 1, .vertical = 1};
  const auto encode = [&options](const Picture& tile) { return encode_jpeg(tile, options); };
  const Picture expected =
      through(picture, [&](const Picture& tile) { return decode_jpeg_grey(encode_jpeg(tile, options)); });
  check_pixels(folder.write("own.tif", file_of({planes_of(picture, 7, encode)}).bytes()), expected);
  options.without_tables = true;
  TestDirectory shared = planes_of(picture, 7, encode);
  shared.set_bytes(347, encode_jpeg_tables(options));
  check_pixels(folder.write("shared.tif", file_of({shared}).bytes()), expected);
}

TEST_CASE("each plane is a grey codestream of JPEG 2000") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(75, 50, 3, 3);
  const auto encode = [](const Picture& tile) {
    return encode_jpeg2000(tile, {.irreversible = false, .colour_transform = false});
  };
  for (const std::uint64_t compression : {33003, 33005, 34712}) {
    check_pixels(folder.write("slide.tif", file_of({planes_of(picture, compression, encode)}).bytes()), picture);
  }
}

TEST_CASE("a channel of JPEG or JPEG 2000 is read alone, as its tiles are its own") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(75, 50, 4, 4);
  const auto encode = [](const Picture& tile) {
    return encode_jpeg2000(tile, {.irreversible = false, .colour_transform = false});
  };
  TestDirectory directory = planes_of(picture, 34712, encode);
  directory.set_short(262, 1).set(338, short_, {0, 0, 0});
  const auto path = folder.write("slide.tif", file_of({directory}).bytes());
  CHECK(open_error(path).find("has 4 channels; set input.channel to choose one, 0 to 3") != std::string::npos);
  for (int channel = 0; channel < 4; ++channel) {
    const auto slide = Slide::open(path, {.channel = channel});
    CHECK(slide->info().levels[0].codec == Codec::jpeg2000);
    CHECK(read_level(*slide) == sample(picture, channel));
  }
}

TEST_CASE("levels may differ in how samples lie, and images that are no levels too") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(256, 192, 3, 5);
  const Picture half = reduced(picture, 2), quarter = reduced(picture, 4);
  const Picture label = make_picture(40, 24, 3, 6);
  TestDirectory strips = stripped_directory(40, 24, 24, 3);
  strips.set_short(284, 2).set_text(270, "label");
  for (int plane = 0; plane < 3; ++plane) {
    strips.tiles.push_back(to_bytes({40, 24, 1, sample(label, plane)}));
  }
  for (const bool first_apart : {true, false}) {
    CAPTURE(first_apart);
    const TestTiff tiff = file_of({first_apart ? planes_of(picture) : interleaved(picture),
                                   first_apart ? interleaved(half) : planes_of(half),
                                   first_apart ? planes_of(quarter) : interleaved(quarter), strips});
    const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    REQUIRE(slide->info().levels.size() == 3);
    CHECK((slide->info().levels[0].codec == Codec::planes) == first_apart);
    CHECK((slide->info().levels[1].codec == Codec::planes) == !first_apart);
    CHECK(read_level_rgb(*slide, 0) == picture.data);
    CHECK(read_level_rgb(*slide, 1) == half.data);
    CHECK(read_level_rgb(*slide, 2) == quarter.data);
    REQUIRE(slide->info().associated.size() == 1);
    CHECK(slide->read_associated(0).pixels == label.data);
  }
}

TEST_CASE("a level that isn't like the slide goes with its planes") {
  const TemporaryFolder folder;
  const Picture picture = make_stained_picture(512, 384, 7);
  Picture other = make_stained_picture(256, 192, 8);
  for (std::uint8_t& value : other.data) value = static_cast<std::uint8_t>(255 - value);
  const Picture quarter = reduced(picture, 4);
  const auto slide = Slide::open(
      folder.write("slide.tif", file_of({planes_of(picture), planes_of(other), planes_of(quarter)}).bytes()));
  REQUIRE(slide->info().levels.size() == 2);
  CHECK(read_level_rgb(*slide, 0) == picture.data);
  CHECK(read_level_rgb(*slide, 1) == quarter.data);
  CHECK(slide->read_associated(0).pixels == other.data);
}

TEST_CASE("a tile that no plane has is white, and one that some lack is bad") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 64, 3, 9);
  TestDirectory directory = planes_of(picture);
  for (const std::size_t plane : {0, 1, 2}) directory.tiles[4 * plane + 3].clear();
  const auto path = folder.write("slide.tif", file_of({directory}).bytes());
  const auto slide = Slide::open(path);
  CHECK(slide->tile(0, 3).length == 0);
  std::vector<std::uint8_t> last(3 * side * side);
  read_rgb(*slide, 0, side, side, {last.data(), 3 * side, side, side, rgb_format}, BadTilePolicy::fail);
  CHECK(last == std::vector<std::uint8_t>(last.size(), 255));
  const char* const names[] = {"red", "green", "blue"};
  for (std::size_t plane = 0; plane < 3; ++plane) {
    directory = planes_of(picture);
    directory.tiles[4 * plane + 1].clear();
    CHECK(
        read_error(folder.write("slide.tif", file_of({directory}).bytes()))
            .ends_with("level 0 tile 1 (column 1, row 0): its " + std::string(names[plane]) + " plane: it is missing"));
  }
}

TEST_CASE("a damaged plane makes a tile bad, in one line that names the plane") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 64, 3, 10);
  const auto error_of = [&](TestDirectory directory, const std::function<void(TestDirectory&)>& change) {
    change(directory);
    const auto path = folder.write("slide.tif", file_of({std::move(directory)}).bytes());
    const std::string error = read_error(path);
    CHECK(error.find('\n') == std::string::npos);
    CHECK(error.find("slide.tif") != std::string::npos);
    return error;
  };
  CHECK(error_of(planes_of(picture), [](TestDirectory& d) {
          d.tiles[4 + 2].pop_back();
        }).ends_with("tile 2 (column 0, row 1): its green plane: 1023 bytes of samples, expected 1024"));
  const auto grey = [](const Picture& tile) {
    return encode_jpeg(tile, {.coding = JpegOptions::Coding::grey, .horizontal = 1, .vertical = 1});
  };
  CHECK(error_of(planes_of(picture, 7, grey), [](TestDirectory& d) {
          d.tiles[8].resize(d.tiles[8].size() / 2);
        }).find("tile 0 (column 0, row 0): its blue plane: ") != std::string::npos);
  const Picture colours = make_picture(side, side, 3, 11);
  CHECK(error_of(planes_of(picture, 7, grey), [&](TestDirectory& d) {
          d.tiles[4] = encode_jpeg(colours);
        }).ends_with("its green plane: the JPEG frame has 3 components, which don't fit the slide's grey"));
  CHECK(error_of(planes_of(picture, 8), [](TestDirectory&) {}).find("its red plane: libtiff: ") != std::string::npos);
  const auto claims = [](std::uint64_t bytes) {
    return [bytes](TestDirectory& d) {
      std::vector<std::uint64_t> counts(12, 1024);
      counts[0] = bytes;
      d.set(325, long_, counts);
    };
  };
  CHECK(error_of(planes_of(picture, 8), claims(100000)).ends_with("its red plane: its bytes lie outside the file"));
  CHECK(error_of(planes_of(picture, 8), claims(1 << 24)).find("its red plane: its bytes lie") != std::string::npos);
}

TEST_CASE("bad tiles of planes become white where that is asked for") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 64, 3, 12);
  TestDirectory directory = planes_of(picture);
  directory.tiles[4].resize(100);
  const auto slide = Slide::open(folder.write("slide.tif", file_of({directory}).bytes()));
  std::vector<std::uint8_t> all(3 * 64 * 64);
  read_rgb(*slide, 0, 0, 0, {all.data(), 3 * 64, 64, 64, rgb_format}, BadTilePolicy::white);
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) {
      const std::uint8_t* const found = all.data() + 3 * (y * 64 + x);
      const bool white = x < side && y < side;
      for (int i = 0; i < 3; ++i) REQUIRE(found[i] == (white ? 255 : picture.at(x, y)[i]));
    }
  }
}

TEST_CASE("the memory of all planes is counted, and taken once") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 64, 3, 13);
  const auto path = folder.write("slide.tif", file_of({planes_of(picture)}).bytes());
  const auto slide = Slide::open(path);
  // A place for each tile, and for each tile of each plane.
  CHECK(table_bytes(*slide) == 4 * (1 + 3) * sizeof(TileRange));
  const std::uint64_t needed = decoding_bytes(slide->coded_level(0), coding_of(*slide, 0));
  CHECK(needed >= std::uint64_t{6 * side * side});
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(needed);
  CHECK(read_level_rgb(*Slide::open(path, options)) == picture.data);
  options.decode_memory = std::make_shared<DecodeMemory>(needed - 1);
  const auto poor = Slide::open(path, options);
  CHECK_THROWS_WITH_AS(read_level_rgb(*poor), doctest::Contains("raise pipeline.memory_mib"), SlideError);
  options = {};
  options.max_tiles = 11;
  CHECK(open_error(path, options).find("12 tiles or more, which is above input.max_tiles 11") != std::string::npos);
}

TEST_CASE("tiles of planes aren't copied") {
  const TemporaryFolder folder;
  const Picture picture = make_picture(64, 64, 3, 14);
  const auto grey = [](const Picture& tile) {
    return encode_jpeg(tile, {.coding = JpegOptions::Coding::grey, .horizontal = 1, .vertical = 1});
  };
  const auto slide = Slide::open(folder.write("slide.tif", file_of({planes_of(picture, 7, grey)}).bytes()));
  CHECK_THROWS_WITH_AS(copied_level(*slide, 0, rgb_format, BadTilePolicy::fail),
                       doctest::Contains("its tiles can't be copied: they are planes, not JPEG"), SlideError);
}

TEST_CASE("planes behind each other under one directory are refused, unless the first is chosen") {
  const TemporaryFolder folder;
  const Picture first = make_picture(side, side, 1, 1);
  const Picture second = make_picture(side, side, 1, 2);
  const auto file_with = [&](const std::string& text, std::size_t planes) {
    TestDirectory directory = tiled_directory(side, side, side, side, 1);
    directory.set_text(270, text);
    directory.tiles = {to_bytes(first)};
    Bytes bytes = file_of({directory}).bytes();
    // They follow the first one's bytes, which end the file.
    for (std::size_t i = 1; i < planes; ++i) {
      const Bytes more = to_bytes(second);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return folder.write("stack.tif", bytes);
  };
  const auto error_of = [](const std::filesystem::path& path, const OpenOptions& options) -> std::string {
    try {
      Slide::open(path, options);
    } catch (const SlideError& error) {
      return error.what();
    }
    return {};
  };
  const std::string shape = std::to_string(side) + ", " + std::to_string(side);
  for (const std::string& text : {std::string("ImageJ=1.11a\nimages=3\nchannels=3\nhyperstack=true\n"),
                                  "{\"shape\": [3, " + shape + "], \"truncated\": true}"}) {
    CAPTURE(text);
    CHECK(error_of(file_with(text, 3), {})
              .find("has 3 planes under one directory, of which the first can be read; set input.channel to 0") !=
          std::string::npos);
    OpenOptions chosen;
    chosen.channel = 0;
    CHECK(error_of(file_with(text, 3), chosen).empty());
    // A page that somebody took out of such a file, with its description.
    CHECK(error_of(file_with(text, 1), {}).empty());
  }
  // ImageJ counts the planes of stacks with a directory each, too.
  std::vector<TestDirectory> each(3, tiled_directory(side, side, side, side, 1));
  for (TestDirectory& directory : each) directory.tiles = {to_bytes(second)};
  each.front().set_text(270, "ImageJ=1.11a\nimages=3\nchannels=3\nhyperstack=true\n");
  const std::filesystem::path path = folder.write("each.tif", file_of(each).bytes());
  CHECK(error_of(path, {}).find("under one directory") == std::string::npos);
  for (int channel = 0; channel < 3; ++channel) {
    OpenOptions chosen;
    chosen.channel = channel;
    CHECK(error_of(path, chosen).empty());
  }
  for (const char* const text : {"ImageJ=1.11a\nimages=1\n", "ImageJ=1.11a\n", "ImageJ=1.11a\nimages=x",
                                 "{\"shape\": 3", "{\"shape\": [3, 32, 32]}", "{\"truncated\": true}", "[]", "{}"}) {
    CHECK_MESSAGE(error_of(file_with(text, 3), {}).empty(), text);
  }
  // The last one of a name counts, and only of the outermost object.
  const std::string said = "\"shape\": [3, " + shape + "], \"truncated\": true";
  CHECK(error_of(file_with("{\"axes\": {\"shape\": [1]}, " + said + ", \"more\": [[\"shape\"], {}]}", 3), {})
            .find("has 3 planes") != std::string::npos);
  for (const std::string& text : {"{" + said + ", \"truncated\": false}", "{" + said + ", \"shape\": 3}",
                                  "{\"a\": {" + said + "}}", "{" + said}) {
    CHECK_MESSAGE(error_of(file_with(text, 3), {}).empty(), text);
  }
  const std::string large = "{\"a\": \"" + std::string(std::size_t{2} << 20, 'a') + "\", " + said + "}";
  CHECK(error_of(file_with(large, 3), {})
            .ends_with("its description has a text, a number or a gap of more than 1 MiB at byte 7"));
}

TEST_CASE("samples that a description of ImageJ counts as images are no planes, nor are bytes of other images") {
  const TemporaryFolder folder;
  const Picture colours = make_picture(side, side, 3, 3);
  const auto image_of = [&](std::uint32_t width, const Bytes& tile) {
    TestDirectory directory = tiled_directory(width, width, side, side, 3);
    directory.tiles = {tile};
    return directory;
  };
  const auto file_with = [&](const std::string& text, std::size_t images, std::size_t planes_behind) {
    std::vector<TestDirectory> directories(images, image_of(side - 5, Bytes(to_bytes(colours).size())));
    directories.front() = image_of(side, to_bytes(colours));
    directories.front().set_text(270, text);
    Bytes bytes = file_of(directories).bytes();
    bytes.resize(bytes.size() + planes_behind * to_bytes(colours).size());
    return folder.write("stack.tif", bytes);
  };
  const std::string samples = "ImageJ=\nhyperstack=true\nimages=3\nchannels=3\nslices=1\nframes=1\n";
  CHECK(open_error(file_with(samples, 1, 0)).empty());
  // Other images' bytes lie behind the first one's.
  CHECK(open_error(file_with(samples, 4, 0)).empty());
  CHECK(open_error(file_with("ImageJ=1.11a\nimages=3\nslices=3\n", 4, 0)).empty());
  CHECK(read_level_rgb(*Slide::open(file_with(samples, 4, 0))) == colours.data);
  // Bytes of one plane more, which may be anything.
  CHECK(open_error(file_with(samples, 1, 1)).empty());
  CHECK(open_error(file_with(samples, 1, 2)).find("has 3 planes under one directory") != std::string::npos);
}

TEST_CASE("the first of RGB planes behind each other is read in its colours") {
  const TemporaryFolder folder;
  const Picture first = make_picture(side, side, 3, 4);
  TestDirectory directory = tiled_directory(side, side, side, side, 3);
  directory.tiles = {to_bytes(first)};
  directory.set_text(270, "ImageJ=1.11a\nimages=2\nslices=2\n");
  Bytes bytes = file_of({directory}).bytes();
  bytes.resize(bytes.size() + to_bytes(first).size());
  const std::filesystem::path path = folder.write("stack.tif", bytes);
  OpenOptions options;
  CHECK(open_error(path, options).find("has 2 planes under one directory") != std::string::npos);
  options.channel = 1;
  CHECK(open_error(path, options).find("set input.channel to 0") != std::string::npos);
  options.channel = 0;
  CHECK(read_level_rgb(*Slide::open(path, options)) == first.data);
}
