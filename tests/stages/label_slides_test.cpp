// Images of labels that are used as slides: they are read as they are, and neither averaged nor taken for colours.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>

#include "operators/tissue/mask_files.hpp"
#include "slide/test_images.hpp"
#include "support/made_up_network.hpp"
#include "tiling/slide_pictures.hpp"
#include "tiling/window_plan.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

namespace {

/// 512 x 384 pixels of 0.5 um: fields of 16 x 16 that are 0, 4 and 8.
std::string slide_of_fields(const TemporaryFolder& folder) {
  constexpr std::int64_t side = 64;
  TestDirectory directory = tiled_directory(512, 384, 64, 64, 1);
  for (std::int64_t top = 0; top < 384; top += side) {
    for (std::int64_t left = 0; left < 512; left += side) {
      Bytes pixels;
      for (std::int64_t y = top; y < top + side; ++y) {
        for (std::int64_t x = left; x < left + side; ++x) pixels.push_back(std::byte((x / 16 + y / 16) % 3 * 4));
      }
      directory.tiles.push_back(pixels);
    }
  }
  directory.set(282, rational, {20000}).set(283, rational, {20000}).set_short(296, 3);
  TestTiff tiff;
  tiff.directories = {directory};
  return folder.write("fields.tif", tiff.bytes());
}

std::shared_ptr<MadeUp> network_of_labels() {
  const auto network = std::make_shared<MadeUp>();
  network->given.kind = NetworkOutput::Kind::labels;
  network->given.channels = 1;
  return network;
}

/// The image of two levels that a network of labels makes of these fields: their own numbers.
std::string labels_of_fields(const TemporaryFolder& folder) {
  const Config config = config_of_network(folder, "labels");
  const RunResult result = run(config, {slide_of_fields(folder)}, with(network_of_labels()));
  require_done(result);
  return network_image_of(config, result.slides.at(0)).string();
}

void check_refused(const Config& config, const std::string& slide, const std::string& why,
                   const FaultInjection& faults = {}) {
  const RunResult result = run(config, {slide}, faults);
  CHECK_FALSE(result.slides.at(0).done);
  const std::string cause = "holds labels of a network or a mask, and " + why + "; read a level as it is";
  CHECK_MESSAGE(result.slides[0].failure.cause.find(cause) == 0, result.slides[0].failure.cause);
}

}  // namespace

TEST_CASE("operators don't take images of labels for colours, and sums of them are made") {
  const TemporaryFolder folder;
  const std::string fields = slide_of_fields(folder);
  CHECK_FALSE(Slide::open(fields)->info().labels);
  const std::string labels = labels_of_fields(folder);
  REQUIRE(Slide::open(labels)->info().labels);
  REQUIRE(read_level(labels).bytes == read_level(fields).bytes);
  for (const char* name : {"identity", "sobel", "gaussian", "stain", "tissue"}) {
    Config config = config_of_network(folder, name);
    config.operators.run = {name};
    check_refused(config, labels, std::string("the operator ") + name + " takes them for colours");
  }
  Config config = config_of_network(folder, "network");
  check_refused(config, labels, "the operator model takes them for colours", with(network_of_labels()));
  config = config_of_network(folder, "sums");
  config.operators.run = {"spectrum"};
  config.analysis.window = 64;
  require_done(run(config, {labels}));
}

TEST_CASE("a forecast refuses images of labels in the words of the run, where no operator takes them") {
  const TemporaryFolder folder;
  const std::string labels = labels_of_fields(folder);
  Config config = config_of_network(folder, "refused");
  config.pipeline.backend = Backend::cpu;
  config.analysis.window = 64;
  const auto refusal = [&](const std::vector<std::string>& operators) {
    config.operators.run = operators;
    return forecast_run(config, {labels}).slides.at(0).error;
  };
  const std::string begin = "holds labels of a network or a mask, and ";
  CHECK(refusal({"identity"}).starts_with(begin + "the operator identity takes them for colours; read a level"));
  CHECK(refusal({"tissue", "sobel"}).starts_with(begin + "the operator tissue takes them for colours; read a level"));
  // Of several that one is done without the others.
  CHECK(refusal({"spectrum"}).empty());
  CHECK(refusal({"tissue", "spectrum"}).empty());
  config.analysis.statistics = {"split"};
  CHECK(refusal({"spectrum"}).starts_with(begin + "tissue is found by colours; read a level"));
  const RunResult result = run(config, {labels});
  CHECK_FALSE(result.slides.at(0).done);
  CHECK(result.slides[0].failure.cause == refusal({"spectrum"}));
  config.operators.run = {"identity"};
  config.output.dir = (folder / "identity").string();
  CHECK(run(config, {labels}).slides.at(0).failure.cause == refusal({"identity"}));
}

TEST_CASE("a function gets levels of labels as they are, and none of another size") {
  const TemporaryFolder folder;
  const std::string labels = labels_of_fields(folder);
  const auto network = network_of_labels();
  for (const int level : {0, 1}) {
    Config config = config_of_network(folder, "level" + std::to_string(level));
    config.model.network = network;
    config.input.level = level;
    const RunResult result = run(config, {labels}, with(network));
    require_done(result);
    CHECK(read_level(network_image_of(config, result.slides.at(0))).bytes ==
          read_level(labels, static_cast<std::size_t>(level)).bytes);
  }
  network->cut.mpp = 0.75;
  Config config = config_of_network(folder, "other");
  config.model.network = network;
  check_refused(config, labels, "pixels of another size are means of several", with(network));
}

TEST_CASE("labels are read as they are, and pixels of another size aren't made of them") {
  const TemporaryFolder folder;
  const std::string labels = labels_of_fields(folder);
  const auto slide = Slide::open(labels);
  const SlideInfo& info = slide->info();
  REQUIRE(info.levels.size() == 2);
  CHECK(choose_resolution(info, 0, 0.5, "").level == 0);
  CHECK(choose_resolution(info, 0, 1.0, "").level == 1);
  const std::string refusal =
      labels + ": holds labels of a network or a mask, and pixels of another size are means of several; read a level";
  CHECK_THROWS_WITH_AS(choose_resolution(info, 0, 0.75, ""), doctest::Contains(refusal.c_str()), SlideError);
  RegionReader reader;
  const auto small = thumbnail(reader, *slide, {256, 192}, BadTilePolicy::fail);
  CHECK(small.size == Size{256, 192});
  CHECK(small.pixels.at(std::size_t{3} * 8) == 4);
  CHECK_THROWS_WITH_AS(thumbnail(reader, *slide, {100, 100}, BadTilePolicy::fail),
                       doctest::Contains("a thumbnail of another size has means of several"), SlideError);
  CHECK_THROWS_WITH_AS(tissue_of(*slide, BadTilePolicy::fail, ""), doctest::Contains("tissue is found by colours"),
                       SlideError);
}

TEST_CASE("classes and masks of tissue are images of labels, and images of networks aren't") {
  const TemporaryFolder folder;
  const std::string fields = slide_of_fields(folder);
  const auto network = std::make_shared<MadeUp>();
  const auto made = [&](const std::string& name) {
    const Config config = config_of_network(folder, name);
    const RunResult result = run(config, {fields}, with(network));
    require_done(result);
    return Slide::open(network_image_of(config, result.slides.at(0)));
  };
  CHECK_FALSE(made("image")->info().labels);
  network->given.channels = 1;
  CHECK_FALSE(made("grey")->info().labels);
  network->given.kind = NetworkOutput::Kind::classes;
  network->given.channels = 3;
  CHECK(made("classes")->info().labels);

  const Mask mask = empty_mask({96, 64}, {16.0, 16.0}, {1536, 1024});
  const std::string file = (folder / "a.tissue.ome.tif").string();
  operators::write_mask(mask, file, "a", {{"tissue.method", "\"auto\""}}, {}, 0.5);
  CHECK(Slide::open(file)->info().labels);
  Config config = config_of_network(folder, "mask");
  config.operators.run = {"identity"};
  check_refused(config, file, "the operator identity takes them for colours");
}
