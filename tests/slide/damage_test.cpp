#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"
#include "slide/tiff/raw_directory.hpp"
#include "support/test_data.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

struct Outcome {
  int opened = 0;
  int refused = 0;
  int bad_tiles = 0;
};

bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == std::string::npos; }

/// Decodes the tiles whose bytes, or the place of whose bytes, differ from the sound slide's.
void decode_changed_tiles(const Slide& slide, const Slide& sound, std::uint64_t changed, Outcome& outcome) {
  TileDecoder decoder;
  std::vector<std::uint8_t> out;
  Bytes bytes;
  for (std::size_t l = 0; l < slide.info().levels.size(); ++l) {
    const Level& level = slide.info().levels[l];
    const bool same_shape = l < sound.info().levels.size() && sound.info().levels[l].columns == level.columns &&
                            sound.info().levels[l].rows == level.rows && sound.info().levels[l].codec == level.codec &&
                            sound.info().levels[l].colour == level.colour &&
                            sound.info().levels[l].tile_width == level.tile_width &&
                            sound.info().levels[l].tile_height == level.tile_height;
    out.resize(static_cast<std::size_t>(level.tile_width * level.tile_height));
    int decoded = 0;
    for (std::int64_t i = 0; i < level.columns * level.rows && decoded < 4; ++i) {
      const TileRange range = slide.tile(l, i);
      const bool hit = changed >= range.offset && changed < range.offset + range.length;
      const bool moved =
          !same_shape || sound.tile(l, i).offset != range.offset || sound.tile(l, i).length != range.length;
      if ((!hit && !moved) || range.length == 0) continue;
      ++decoded;
      try {
        if (!slide.contains(range)) throw TileError("outside");
        bytes.resize(range.length);
        slide.read(range.offset, bytes);
        decoder.decode(slide, l, i, bytes, 0, 0, {out.data(), level.tile_width, level.tile_width, level.tile_height});
      } catch (const TileError& error) {
        CHECK(one_line(error.what()));
        ++outcome.bad_tiles;
      }
    }
  }
}

void open_and_decode(const std::filesystem::path& path, const Slide& sound, std::uint64_t changed, Outcome& outcome) {
  try {
    const auto slide = Slide::open(path);
    ++outcome.opened;
    decode_changed_tiles(*slide, sound, changed, outcome);
  } catch (const SlideError& error) {
    CHECK(one_line(error.what()));
    CHECK(std::string(error.what()).starts_with(path.string()));
    ++outcome.refused;
  }
}

constexpr const char* slides[] = {"cmu-1-small-region.svs", "tcga-cr-7395.svs"};

/// Directories, and the values they point to.
std::vector<std::uint64_t> structure(const std::filesystem::path& path) {
  const File file(path);
  const OpenOptions options;
  OpenBudget budget(path, file.size(), options);
  std::vector<std::uint64_t> places{0, 1, 2, 3, 4, 5, 6, 7};
  const auto add = [&places](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 400); ++i) places.push_back(first + i);
  };
  for (const RawDirectory& directory : RawTiff(file, budget).main_chain()) {
    add(directory.offset, 2 + 12 * directory.entries.size() + 4);
    for (const RawEntry& entry : directory.entries) {
      const std::uint64_t bytes = entry.type == long_ ? 4 : 1;
      if (entry.count * bytes > 4) add(entry.value_at, entry.count * bytes);
    }
  }
  return places;
}

/// Half of them anywhere, half in the structure.
std::vector<std::uint64_t> places(const std::filesystem::path& path, int count) {
  const std::vector<std::uint64_t> sensitive = structure(path);
  const std::uint64_t size = std::filesystem::file_size(path);
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(i % 2 == 0 ? random() % size : sensitive[random() % sensitive.size()]);
  }
  return result;
}

void put(const std::filesystem::path& path, std::uint64_t place, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(place));
  file.put(byte);
}

}  // namespace

TEST_CASE("real slides cut at 200 lengths give one line or a result") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const TemporaryFolder folder;
  for (const char* name : slides) {
    const auto sound = Slide::open(*root / "data" / name);
    const Bytes whole = read_file(*root / "data" / name);
    const auto path = folder.write(name, whole);
    Outcome outcome;
    for (int i = 199; i >= 0; --i) {
      // Densely near both ends, where header and directories lie.
      const std::size_t length = i < 60    ? static_cast<std::size_t>(i)
                                 : i < 140 ? whole.size() * static_cast<std::size_t>(i - 59) / 82
                                           : whole.size() - static_cast<std::size_t>((200 - i) * (200 - i));
      std::filesystem::resize_file(path, length);  // always shorter than before
      open_and_decode(path, *sound, length, outcome);
    }
    CHECK(outcome.opened + outcome.refused == 200);
    CHECK(outcome.refused > 100);
  }
}

TEST_CASE("one changed byte at many places gives one line or a result (long)") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const int count = wide_or_few(500, 80);
  const TemporaryFolder folder;
  for (const char* name : slides) {
    const auto sound = Slide::open(*root / "data" / name);
    const Bytes bytes = read_file(*root / "data" / name);
    const auto path = folder.write(name, bytes);
    Outcome outcome;
    std::mt19937 random(11);
    for (const std::uint64_t place : places(path, count)) {
      const auto before = std::to_integer<unsigned>(bytes[place]);
      put(path, place, static_cast<char>(before ^ (1 + random() % 255)));
      open_and_decode(path, *sound, place, outcome);
      put(path, place, static_cast<char>(before));
    }
    CAPTURE(name);
    CHECK(outcome.opened + outcome.refused == count);
    CHECK(outcome.opened > count / 5);
    // Few places are in what opening reads.
    if (is_wide()) CHECK(outcome.refused > 0);
    CHECK(outcome.bad_tiles > count / 25);
  }
}
