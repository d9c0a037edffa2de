// The encoder's steps on the host, a thread after the other, against libjpeg-turbo.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <slidestream/error.hpp>
#include <stdexcept>
#include <string>

#include "cuda/encode_cases.hpp"
#include "support/host_coders/jpeg_encoder.hpp"

using namespace slidestream;
using test::Content;

namespace {

std::mt19937 seeded(unsigned seed) {
  const char* chosen = std::getenv("SLIDESTREAM_TEST_SEED");
  return std::mt19937(chosen != nullptr ? static_cast<unsigned>(std::atoi(chosen)) + seed : seed);
}

/// Every tile of a grid over the image.
void check_image(const test::PixelImage& image, std::uint32_t side, int quality,
                 ChromaSubsampling subsampling = ChromaSubsampling::s420) {
  CAPTURE(side);
  CAPTURE(static_cast<int>(subsampling));
  CAPTURE(quality);
  CAPTURE(image.image.width);
  CAPTURE(image.image.height);
  CAPTURE(image.format.channels);
  const auto encoder =
      make_tile_encoder(TileCompression::jpeg, image.format, quality, static_cast<int>(side), subsampling);
  cuda::HostJpegEncoder host({.tiles = 1, .side = side, .format = image.format, .subsampling = subsampling}, quality);
  CHECK(std::ranges::equal(host.tables(), encoder->tables()));
  for (const cuda::JpegTilePosition at : test::tile_grid(image.image, side)) {
    CAPTURE(at.x);
    CAPTURE(at.y);
    CHECK(host.encode(image.view(), at) == test::expected_tile(*encoder, image.view(), side, at));
  }
}

}  // namespace

TEST_CASE("tiles of the GPU's encoder are libjpeg-turbo's at every quality") {
  std::mt19937 random = seeded(1);
  for (int quality = 1; quality <= 100; ++quality) {
    for (const PixelFormat& format : {luminance_format, rgb_format}) {
      const Content content = test::all_contents[random() % std::size(test::all_contents)];
      CAPTURE(static_cast<int>(content));
      check_image(test::image_to_encode(random, {48, 48}, format, content, 0), 48, quality);
    }
  }
}

TEST_CASE("tiles of the GPU's encoder are libjpeg-turbo's for images, tiles and rows of any size") {
  std::mt19937 random = seeded(2);
  for (int run = 0; run < 60; ++run) {
    const PixelFormat format = run % 2 == 0 ? luminance_format : rgb_format;
    const auto side = static_cast<std::uint32_t>(16 * (1 + test::random_below(random, 12)));
    const Size size = test::random_size(random, 2 * side);
    const Content content = test::all_contents[random() % std::size(test::all_contents)];
    CAPTURE(static_cast<int>(content));
    check_image(test::image_to_encode(random, size, format, content, random() % 9), side,
                static_cast<int>(1 + test::random_below(random, 100)));
  }
}

TEST_CASE("tiles of the GPU's encoder are libjpeg-turbo's for every resolution of colour (long)") {
  std::mt19937 random = seeded(6);
  for (const ChromaSubsampling subsampling : {ChromaSubsampling::s422, ChromaSubsampling::s444}) {
    for (int run = 0; run < 40; ++run) {
      const auto side = static_cast<std::uint32_t>(16 * (1 + test::random_below(random, 12)));
      const Size size = test::random_size(random, 2 * side);
      const Content content = test::all_contents[random() % std::size(test::all_contents)];
      CAPTURE(static_cast<int>(content));
      const int quality = run < 4 ? 1 + 33 * run : static_cast<int>(1 + test::random_below(random, 100));
      check_image(test::image_to_encode(random, size, rgb_format, content, random() % 9), side, quality, subsampling);
    }
    for (const std::uint32_t side : {16U, 256U, 1024U}) {
      const Size size{side + 3, side};
      check_image(test::image_to_encode(random, size, rgb_format, Content::few, 0), side, 75, subsampling);
      if (side < 1024) {
        check_image(test::image_to_encode(random, size, rgb_format, Content::extreme, 0), side, 100, subsampling);
      }
    }
    const cuda::JpegEncoderLimits limits{.tiles = 1, .side = 64, .format = rgb_format, .subsampling = subsampling};
    cuda::HostJpegEncoder host(limits, 100);
    const auto image = test::image_to_encode(random, {64, 64}, rgb_format, Content::noise, 0);
    const std::size_t bytes = host.encode(image.view(), {0, 0}).size();
    CHECK(bytes <= cuda::most_tile_bytes(limits));
    CHECK(bytes <= cuda::most_scratch_bytes(limits));
  }
}

TEST_CASE("large tiles of the GPU's encoder are libjpeg-turbo's (long)") {
  std::mt19937 random = seeded(3);
  for (const std::uint32_t side : {256U, 512U, 1024U}) {
    for (const PixelFormat& format : {luminance_format, rgb_format}) {
      const Size size{side + 3, side};
      check_image(test::image_to_encode(random, size, format, Content::few, 0), side, 75);
      if (side == 256) check_image(test::image_to_encode(random, size, format, Content::noise, 0), side, 100);
    }
  }
}

TEST_CASE("the GPU's encoder takes tiles out of a part of an image, wherever they begin") {
  std::mt19937 random = seeded(4);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    const auto whole = test::image_to_encode(random, {150, 130}, format, Content::noise, 0);
    const auto part = whole.cut({30, 20, 120, 110}, 5);
    const auto encoder = make_tile_encoder(TileCompression::jpeg, format, 90, 32);
    cuda::HostJpegEncoder host({.tiles = 1, .side = 32, .format = format}, 90);
    for (const cuda::JpegTilePosition at :
         {cuda::JpegTilePosition{30, 20}, {31, 27}, {118, 98}, {141, 111}, {149, 129}}) {
      CHECK(host.encode(part.view(), at) == test::expected_tile(*encoder, whole.view(), 32, at));
    }
    CHECK_THROWS_AS(host.encode(part.view(), {29, 20}), std::invalid_argument);
    CHECK_THROWS_AS(host.encode(part.view(), {150, 20}), std::invalid_argument);
    CHECK_THROWS_AS(host.encode(part.view(), {30, 4'000'000'000U}), std::invalid_argument);
    CHECK_THROWS_AS(host.encode(whole.cut({0, 0, 40, 40}).view(), {20, 0}), std::invalid_argument);
  }
}

TEST_CASE("the GPU's encoder says what it can't be made for") {
  const cuda::JpegEncoderLimits sound{.tiles = 1, .side = 16, .format = luminance_format};
  cuda::JpegEncoderLimits limits = sound;
  CHECK_NOTHROW(cuda::HostJpegEncoder(limits, 1));
  for (const std::uint32_t side : {0U, 8U, 24U, 1040U}) {
    limits.side = side;
    CHECK_THROWS_AS(cuda::HostJpegEncoder(limits, 75), std::invalid_argument);
  }
  limits = sound;
  limits.format.channels = 2;
  CHECK_THROWS_AS(cuda::HostJpegEncoder(limits, 75), std::invalid_argument);
  limits.format = {SampleType::uint16, 1};
  CHECK_THROWS_AS(cuda::HostJpegEncoder(limits, 75), std::invalid_argument);
  limits = sound;
  limits.tiles = 0;
  CHECK_THROWS_AS(cuda::HostJpegEncoder(limits, 75), std::invalid_argument);
  limits.tiles = 1U << 31;
  limits.side = 1024;
  CHECK_THROWS_AS(cuda::HostJpegEncoder(limits, 75), std::length_error);
}

TEST_CASE("no tile is larger than the GPU's encoder says, nor a batch's bits") {
  std::mt19937 random = seeded(5);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    const cuda::JpegEncoderLimits limits{.tiles = 1, .side = 64, .format = format};
    cuda::HostJpegEncoder host(limits, 100);
    for (const Content content : {Content::noise, Content::extreme}) {
      const auto image = test::image_to_encode(random, {64, 64}, format, content, 0);
      const std::size_t bytes = host.encode(image.view(), {0, 0}).size();
      CHECK(bytes <= cuda::most_tile_bytes(limits));
      CHECK(bytes <= cuda::most_scratch_bytes(limits));
    }
  }
}
