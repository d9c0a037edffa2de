// Which rows of which levels a batch of an image has on a device, and in which order tiles leave it.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "operators/registry.hpp"
#include "planning/pyramid_rows.hpp"

using namespace slidestream;

namespace {

std::int64_t in(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

DeviceImage random_image(std::mt19937& random) {
  DeviceImage image;
  image.format = in(random, 0, 1) == 0 ? luminance_format : rgb_format;
  image.options.compression = TileCompression::jpeg;
  image.options.tile = static_cast<int>(16 * in(random, 1, 4));
  image.options.levels = static_cast<int>(in(random, 0, 6));
  return image;
}

}  // namespace

TEST_CASE("the device encodes colour of every resolution") {
  Config config;
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_tiff;
  for (const PixelColour colour : {PixelColour::rgb, PixelColour::luminance}) {
    config.identity.colour = colour;
    for (const ChromaSubsampling subsampling :
         {ChromaSubsampling::s420, ChromaSubsampling::s422, ChromaSubsampling::s444}) {
      config.image.subsampling = subsampling;
      const std::vector<DeviceImage> images = device_images(config, operators::make_operators(config));
      REQUIRE(images.size() == 1);
      CHECK(images[0].is_encoded);
      CHECK(images[0].encoder_limits(4).subsampling == subsampling);
    }
  }
}

TEST_CASE("batches of any height publish every tile once, in the order of publishing, from rows that they have") {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    const DeviceImage image = random_image(random);
    const Size size{in(random, 1, 700), in(random, 1, 700)};
    const PyramidLayout layout(size, image.options.tile, image.options.levels);
    const KeptRows kept(layout, image.pixel_bytes());
    const std::int64_t most_rows = in(random, 1, 300);
    std::vector<std::int64_t> left(static_cast<std::size_t>(layout.levels()), 0);
    std::int64_t position = 0;
    CAPTURE(size.width);
    CAPTURE(size.height);
    CAPTURE(image.options.tile);
    for (std::int64_t y = 0; y < size.height;) {
      const std::int64_t end = std::min(size.height, y + in(random, 1, most_rows));
      const PyramidRows rows(layout, image.pixel_bytes(), y, end);
      const PyramidRoom room(image, size.width, end - y);
      REQUIRE(rows.bytes <= room.bytes);
      std::int64_t tiles = 0;
      for (int level = 0; level < layout.levels(); ++level) {
        const auto k = static_cast<std::size_t>(level);
        const BatchLevel& of_level = rows.levels[k];
        // What the batch before left is what this one has of it, and fits where it waits.
        REQUIRE(of_level.kept == left[k]);
        left[k] = of_level.left;
        const std::int64_t there = k + 1 < kept.offsets.size() ? kept.offsets[k + 1] : kept.bytes;
        REQUIRE(of_level.left * of_level.pitch <= there - kept.offsets[k]);
        REQUIRE(of_level.first + of_level.count == layout.known_rows(level, end));
        REQUIRE(of_level.first == of_level.first_tile * layout.tile());
        tiles += of_level.tile_rows * layout.columns(level);
      }
      REQUIRE(tiles <= room.tiles);
      for (const PyramidRows::TileRow& row : rows.published) {
        REQUIRE(layout.position(row.level, {0, row.row}) == position);
        position += layout.columns(row.level);
        const BatchLevel& of_level = rows.levels[static_cast<std::size_t>(row.level)];
        const Rect rect = layout.rect(row.level, {0, row.row});
        REQUIRE(rect.y >= of_level.first);
        REQUIRE(rect.bottom() <= of_level.first + of_level.count - of_level.left);
        tiles -= layout.columns(row.level);
      }
      REQUIRE(tiles == 0);
      y = end;
    }
    REQUIRE(position == layout.tiles());
    REQUIRE(std::ranges::count(left, 0) == layout.levels());
  }
}

TEST_CASE("a device reduces as many rows at a time as there is memory for, and images of too many levels not at all") {
  DeviceImage image;
  image.format = rgb_format;
  image.options.tile = 256;
  const PyramidLayout layout({65664, 43264}, 256, 0);
  const std::int64_t kept = KeptRows(layout, 3).bytes;
  CHECK(rows_at_a_time(image, layout, kept) == 0);
  CHECK(rows_at_a_time(image, layout, kept + (std::int64_t{1} << 34)) == 2048);
  const std::int64_t some = rows_at_a_time(image, layout, kept + (40 << 20));
  CHECK(some >= 32);
  CHECK(some < 2048);
  CHECK(rows_at_a_time(image, PyramidLayout({65664, 43264}, 256, 32), std::int64_t{1} << 40) == 0);
  // Images share memory by their pixels' bytes, and no more than there is.
  DeviceImage grey = image;
  grey.format = luminance_format;
  const std::vector<DeviceImage> images = {grey, image};
  CHECK(share_of(images, 0, 1 << 20) == 1 << 18);
  CHECK(share_of(images, 1, 1 << 20) == 3 << 18);
}
