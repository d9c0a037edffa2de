// A network beside other operators.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "operators/registry.hpp"
#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

TEST_CASE("what other operators make of a slide stands where a network fails on it (long)") {
  const TemporaryFolder folder;
  std::vector<std::string> slides = equal_slides(folder, 1);
  Image other = textured_image(200, 190, 1);
  slides.push_back(folder / "other.tif");
  write_test_slide(slides.back(), other);
  Config config = config_of_network(folder, "alone");
  config.operators.run = {"sobel", "tissue"};
  const RunResult alone = run(config, slides);
  require_done(alone);
  int i = 0;
  for (const StitchMode mode : {StitchMode::strict, StitchMode::lenient}) {
    for (const std::int64_t tile : {0, 12, 60}) {
      INFO("tile " << tile);
      const auto network = std::make_shared<MadeUp>();
      network->cut.batch = 1;
      network->count = 2;
      network->slow = true;
      know(*network, slides[0], config);
      network->failing = {tile};
      Config both = config_of_network(folder, "both" + std::to_string(i++));
      both.operators.run = config.operators.run;
      both.stitch.mode = mode;
      FaultInjection faults = dawdling;
      faults.operators = operators::make_operators(both);
      faults.operators.push_back(std::make_shared<MadeUpOperator>(network));
      const RunResult result = run(both, slides, faults);
      REQUIRE(result.slides.size() == 2);
      const SlideResult& failed = result.slides[0];
      REQUIRE_MESSAGE(failed.done, failed.error);
      CHECK(failed.failure.stage == "model");
      CHECK(failed.failure.tile == tile);
      REQUIRE(failed.artifacts.size() == 3);
      for (std::size_t k = 0; k < 3; ++k) CHECK(failed.artifacts[k].digest == alone.slides[0].artifacts[k].digest);
      CHECK(std::filesystem::exists(network_image_of(both, failed, ".model.partial.ome.tif")));
      CHECK_FALSE(std::filesystem::exists(network_image_of(both, failed)));
      CHECK(result.slides[1].complete());
      CHECK(result.slides[1].artifacts.size() == 4);
    }
  }
}

TEST_CASE("a network that memory lacks for ends the run, and fails no slide") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 2);
  Config config = config_of_network(folder, "short");
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 1;
  know(*network, slides[0], config);
  network->failing = {12};
  network->lacks_memory = true;
  FaultInjection faults;
  faults.operators.push_back(std::make_shared<MadeUpOperator>(network));
  const RunResult result = run(config, slides, faults);
  CHECK(result.lacks_memory);
  CHECK(result.failure.starts_with("there is no memory for a batch of 1 tiles"));
  for (const SlideResult& slide : result.slides) CHECK_MESSAGE(slide.complete(), slide.error);
  CHECK(result.slides.size() < 2);
}
