// Pixels that aren't square keep both sizes, and what needs one is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "operators/common/tile_grid.hpp"
#include "slide/test_images.hpp"
#include "support/made_up_network.hpp"
#include "tiling/tile_stream.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

namespace {

constexpr std::uint32_t tile = 64;

TestDirectory level_of(const Picture& picture) {
  const int width = picture.width;
  const int height = picture.height;
  TestDirectory directory =
      tiled_directory(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), tile, tile, 3);
  for (int y = 0; y < height; y += static_cast<int>(tile)) {
    for (int x = 0; x < width; x += static_cast<int>(tile)) {
      directory.tiles.push_back(to_bytes(cut(picture, x, y, tile, tile)));
    }
  }
  return directory;
}

/// 1,005 x 799 pixels of 0.5 x 0.8 um; level 1 has 250 x 198, that is 4.02 x 4.035 of them each.
std::string unequal_slide(const TemporaryFolder& folder) {
  TestTiff tiff;
  const Picture whole = make_stained_picture(1005, 799, 1);
  Picture small = reduced(whole, 4);  // 252 x 200
  tiff.directories = {level_of(whole), level_of(cut(small, 0, 0, 250, 198))};
  for (TestDirectory& directory : tiff.directories) {
    directory.set(282, rational, {20000}).set(283, rational, {12500}).set_short(296, 3);
  }
  return folder.write("unequal.tif", tiff.bytes());
}

Config config_of(const TemporaryFolder& folder, const std::string& name) {
  Config config = config_of_network(folder, name);
  config.image.levels = 0;
  return config;
}

}  // namespace

TEST_CASE("images, masks and maps have both sizes of pixels that aren't square (long)") {
  const TemporaryFolder folder;
  const std::string slide = unequal_slide(folder);
  REQUIRE(Slide::open(slide)->info().mpp_y.value() == doctest::Approx(0.8));
  Config config = config_of(folder, "tiff");
  config.operators.run = {"identity", "tissue"};
  const RunResult result = run(config, {slide});
  REQUIRE_MESSAGE(result.slides.at(0).complete(), result.slides[0].error);
  CHECK(result.slides[0].mpp.value() == doctest::Approx(0.5));
  const auto& values = result.slides[0].values;
  const auto down = std::ranges::find(values, "mpp_y", &NamedValue::name);
  REQUIRE(down != values.end());
  CHECK(down->value == doctest::Approx(0.8));
  const std::filesystem::path images = std::filesystem::path(config.output.dir) / "images";
  const auto image = Slide::open(images / "unequal.identity.ome.tif");
  CHECK(image->info().mpp.value() == doctest::Approx(0.5));
  CHECK(image->info().mpp_y.value() == doctest::Approx(0.8));
  // The mask's pixels have an area of 64 square micrometres.
  const auto mask = Slide::open(images / "unequal.tissue.ome.tif");
  CHECK(mask->info().mpp.value() * mask->info().mpp_y.value() == doctest::Approx(64.0).epsilon(0.01));
  CHECK(mask->info().mpp_y.value() / mask->info().mpp.value() == doctest::Approx(1.6).epsilon(0.01));
  // Both name the slide, whatever the file was called while it was written, and the settings.
  for (const auto& expected : {std::pair{"unequal.identity.ome.tif", "K=\"identity."},
                               std::pair{"unequal.tissue.ome.tif", "K=\"tissue.method\""}}) {
    CAPTURE(expected.first);
    std::ifstream stream(images / expected.first, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    CHECK(text.find("Name=\"unequal\"") != std::string::npos);
    CHECK(text.find(expected.second) != std::string::npos);
  }

  config = config_of(folder, "zarr");
  config.image.tile = 256;
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_zarr;
  require_done(run(config, {slide}));
  std::ifstream file(std::filesystem::path(config.output.dir) / "images/unequal.identity.ome.zarr/.zattrs");
  const nlohmann::json attributes = nlohmann::json::parse(file);
  const auto& transforms = attributes["multiscales"][0]["datasets"][1]["coordinateTransformations"];
  CHECK(transforms[0]["scale"] == nlohmann::json{1.0, 1.6, 1.0});
  CHECK(transforms[1]["translation"][1].get<double>() == doctest::Approx(0.4));
  CHECK(transforms[1]["translation"][2].get<double>() == doctest::Approx(0.25));
}

TEST_CASE("images keep both sizes of pixels that are taken for square") {
  const TemporaryFolder folder;
  TestTiff tiff;
  tiff.directories = {level_of(make_stained_picture(500, 400, 1))};
  tiff.directories[0].set(282, rational, {20000}).set(283, rational, {20100}).set_short(296, 3);
  const std::string slide = folder.write("nearly.tif", tiff.bytes());
  Config config = config_of(folder, "nearly");
  config.operators.run = {"identity"};
  const RunResult result = run(config, {slide});
  REQUIRE_MESSAGE(result.slides.at(0).complete(), result.slides[0].error);
  const auto& values = result.slides[0].values;
  CHECK(std::ranges::find(values, "mpp_y", &NamedValue::name) == values.end());
  const auto image = Slide::open(std::filesystem::path(config.output.dir) / "images/nearly.identity.ome.tif");
  CHECK(image->info().mpp.value() == doctest::Approx(0.5));
  CHECK_FALSE(image->info().mpp_y.has_value());
  CHECK(image->info().said_mpp_y.value_or(0.0) == doctest::Approx(10000.0 / 20100.0));
}

TEST_CASE("images of a level that is smaller by other factors across and down have both sizes") {
  const TemporaryFolder folder;
  TestTiff tiff;
  const Picture whole = make_stained_picture(1005, 799, 1);
  tiff.directories = {level_of(whole), level_of(cut(reduced(whole, 4), 0, 0, 250, 198))};
  tiff.directories[0].set(282, rational, {20000}).set(283, rational, {20000}).set_short(296, 3);
  const std::string slide = folder.write("square.tif", tiff.bytes());
  REQUIRE(Slide::open(slide)->info().levels.size() == 2);
  REQUIRE_FALSE(Slide::open(slide)->info().said_mpp_y.has_value());
  Config config = config_of(folder, "square");
  config.operators.run = {"identity"};
  config.input.level = 1;
  const RunResult result = run(config, {slide});
  REQUIRE_MESSAGE(result.slides.at(0).complete(), result.slides[0].error);
  const auto image = Slide::open(std::filesystem::path(config.output.dir) / "images/square.identity.ome.tif");
  CHECK(image->info().mpp.value() == doctest::Approx(0.5 * 1005 / 250).epsilon(1e-6));
  CHECK(image->info().said_mpp_y.value_or(0.0) == doctest::Approx(0.5 * 799 / 198).epsilon(1e-6));
}

TEST_CASE("what needs one pixel size refuses others by name, and takes input.mpp") {
  const TemporaryFolder folder;
  const std::string slide = unequal_slide(folder);
  const auto network = std::make_shared<MadeUp>();
  network->cut.mpp = 1.0;
  Config config = config_of(folder, "refused");
  const RunResult refused = run(config, {slide}, with(network));
  CHECK_FALSE(refused.slides.at(0).done);
  CHECK(refused.slides[0].failure.cause.find("its pixels aren't square, 0.5 x 0.8 micrometres, and model.mpp needs one "
                                             "size for both directions; set input.mpp") == 0);
  config = config_of(folder, "given");
  config.input.mpp = 0.5;
  require_done(run(config, {slide}, with(network)));
  TileStreamOptions options;
  options.slides = {slide};
  options.windows.size = {64, 64};
  options.windows.step = {64, 64};
  options.windows.mpp = 1.0;
  TileStream stream(options);
  TileBatch batch;
  CHECK_THROWS_WITH_AS(
      stream.next(batch, std::chrono::seconds(60)),
      doctest::Contains("and mpp needs one size for both directions; set slide_mpp, or ask for a level"), SlideError);
}

TEST_CASE("a line about pixels that are too coarse names the level that was asked for") {
  const TemporaryFolder folder;
  const std::string slide = unequal_slide(folder);
  const auto network = std::make_shared<MadeUp>();
  network->cut.mpp = 0.5;
  Config config = config_of(folder, "coarse");
  config.input.mpp = 0.5;
  config.input.level = 1;
  const RunResult result = run(config, {slide}, with(network));
  CHECK_FALSE(result.slides.at(0).done);
  const std::string named = " micrometres at input.level 1, and the 0.5 of the network is ";
  CHECK_MESSAGE(result.slides[0].error.find(named) != std::string::npos, result.slides[0].error);
  CHECK_MESSAGE(result.slides[0].error.ends_with("; a lower input.level has finer pixels"), result.slides[0].error);
  // The coarser pixels are the slide's own.
  config = config_of(folder, "own");
  config.input.mpp = 2.0;
  const RunResult own = run(config, {slide}, with(network));
  CHECK_MESSAGE(own.slides.at(0).error.find("pixels have 2 micrometres, and the 0.5 of the network is 75 % less") !=
                    std::string::npos,
                own.slides[0].error);
}

TEST_CASE("corners of features and of windows are the same, each axis by its own factor") {
  const TemporaryFolder folder;
  const std::string slide = unequal_slide(folder);
  std::vector<std::array<std::int64_t, 2>> corners;
  const auto network = std::make_shared<MadeUp>();
  network->given.kind = NetworkOutput::Kind::vector;
  network->given.channels = 2;
  network->cut.overlap = 0;
  Config config = config_of(folder, "corners");
  config.image.format = ImageFormat::none;
  config.input.level = 1;
  FaultInjection faults;
  faults.operators = {
      std::make_shared<VectorsOperator>(network, [&](const TileVectors& vectors) { corners = vectors.corners; })};
  require_done(run(config, {slide}, faults));
  TileStreamOptions options;
  options.slides = {slide};
  options.windows.level = 1;
  options.windows.size = {96, 96};
  options.windows.step = {96, 96};
  options.windows.edge = WindowEdge::pad;
  options.batch = 4;
  TileStream stream(options);
  TileBatch batch;
  std::vector<std::array<std::int64_t, 2>> windows;
  while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.count); ++i) {
      windows.push_back({batch.coords[2 * i], batch.coords[2 * i + 1]});
    }
  }
  REQUIRE(corners.size() == 9);
  CHECK(corners == windows);
  CHECK(corners.back() == std::array<std::int64_t, 2>{772, 775});
  CHECK(operators::level0_corner({192, 192, 96, 96}, {1005.0 / 250.0, 799.0 / 198.0}) == corners.back());
}
