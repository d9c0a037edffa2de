// One operator that fails on a slide leaves what the others make of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::run;

namespace {

Config running(const test::TemporaryFolder& folder, const std::vector<std::string>& operators) {
  Config config = test::config_for(test::backends().back());
  if (config.pipeline.backend == Backend::cuda) config.pipeline.memory_mib = 64;
  config.output.maps = MapFormat::none;
  config.operators.run = operators;
  std::string name = "out";
  for (const std::string& op : operators) name += "-" + op;
  config.output.dir = (folder / name).string();
  config.image.compression = ImageCompression::none;
  config.image.tile = 64;
  config.pipeline.strip_height = 128;
  return config;
}

/// By its operator.
const Artifact* artifact_of(const SlideResult& slide, const std::string& maker) {
  const auto found = std::ranges::find(slide.artifacts, maker, &Artifact::maker);
  return found == slide.artifacts.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("an operator that fails on a slide makes nothing of it, and the others what they make alone") {
  const test::TemporaryFolder folder;
  // Grey slides have no stains.
  const std::vector<std::string> slides = test::equal_slides(folder, 3);
  const RunResult alone = run(running(folder, {"sobel", "spectrum", "identity"}), slides);
  const Config config = running(folder, {"sobel", "stain", "spectrum", "tissue", "identity"});
  const RunResult result = run(config, slides);
  REQUIRE(result.slides.size() == alone.slides.size());
  for (std::size_t i = 0; i < result.slides.size(); ++i) {
    const SlideResult& slide = result.slides[i];
    REQUIRE_MESSAGE(slide.done, slide.error);
    CHECK_FALSE(slide.complete());
    CHECK(slide.failure.stage == "stain");
    CHECK(slide.error.find("stain: ") == 0);
    CHECK(slide.sums.histogram == alone.slides[i].sums.histogram);
    for (const char* maker : {"sobel", "identity"}) {
      INFO(maker);
      REQUIRE(artifact_of(slide, maker) != nullptr);
      CHECK(artifact_of(slide, maker)->digest == artifact_of(alone.slides[i], maker)->digest);
    }
    CHECK(artifact_of(slide, "tissue") != nullptr);
    CHECK(artifact_of(slide, "stain") == nullptr);
    REQUIRE(slide.values.size() == 1);
    CHECK(slide.values[0].name == "tissue.share");
  }
  CHECK(result.corpus.histogram == alone.corpus.histogram);
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(config.output.dir) / "images")) {
    CHECK(file.path().filename().string().find("stain") == std::string::npos);
  }
}

TEST_CASE("a slide that all operators fail on fails") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  const RunResult result = run(running(folder, {"stain"}), slides);
  CHECK_FALSE(result.slides.at(0).done);
  CHECK(result.slides[0].failure.stage == "source");
  CHECK(result.slides[0].artifacts.empty());
  // Outlines that are missing fail the spectrum's windows of tissue, and the mask.
  Config config = running(folder, {"spectrum", "tissue"});
  config.tissue.source = TissueSource::geojson;
  config.analysis.statistics = {"split"};
  const RunResult both = run(config, slides);
  CHECK_FALSE(both.slides.at(0).done);
  CHECK(both.slides[0].error.find("geojson") != std::string::npos);
  config.operators.run = {"spectrum", "identity"};
  const RunResult one = run(config, slides);
  CHECK(one.slides.at(0).done);
  CHECK(one.slides[0].failure.stage == "spectrum");
  CHECK(one.slides[0].sums.windows == 0);
  CHECK(one.slides[0].artifacts.size() == 1);
}
