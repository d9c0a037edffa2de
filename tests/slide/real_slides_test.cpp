#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// Checks a slide's luminance against the oracle's, and returns it.
std::shared_ptr<const Slide> open_and_sum(const std::string& name) {
  const auto root = test_data_root();
  if (!root) {
    report_skipped("no test data");
    return nullptr;
  }
  std::ifstream file(*root / "oracle" / (name + ".json"));
  const nlohmann::json oracle = nlohmann::json::parse(file);
  auto slide = Slide::open(*root / "data" / (name + ".svs"));
  CHECK(slide->info().levels.at(0).width == oracle.at("width").get<std::int64_t>());
  CHECK(slide->info().levels.at(0).height == oracle.at("height").get<std::int64_t>());
  const std::vector<std::uint8_t> pixels = read_level(*slide);
  CHECK(std::accumulate(pixels.begin(), pixels.end(), std::uint64_t{0}) == oracle.at("gray_sum").get<std::uint64_t>());
  return slide;
}

}  // namespace

TEST_CASE("CMU-1 small region: JPEG coded as RGB") {
  const auto slide = open_and_sum("cmu-1-small-region");
  if (!slide) return;
  const SlideInfo& info = slide->info();
  CHECK(info.format == "aperio");
  REQUIRE(info.levels.size() == 1);
  CHECK(info.levels[0].tile_width == 240);
  CHECK(info.levels[0].columns == 10);
  CHECK(info.levels[0].rows == 13);
  CHECK(info.levels[0].codec == Codec::jpeg);
  CHECK(info.levels[0].colour == Colour::rgb);
  CHECK(info.mpp.value() == doctest::Approx(0.499));
  CHECK(info.magnification.value() == doctest::Approx(20.0));
  CHECK(info.associated == std::vector<std::string>{"thumbnail", "label", "macro"});
  CHECK(info.properties.at("ScanScope ID") == "CPAPERIOCS");
}

TEST_CASE("TCGA-CR-7395: JPEG 2000, two levels") {
  const auto slide = open_and_sum("tcga-cr-7395");
  if (!slide) return;
  const SlideInfo& info = slide->info();
  REQUIRE(info.levels.size() == 2);
  CHECK(info.levels[1].width == 2221);
  CHECK(info.levels[1].height == 1783);
  CHECK(info.levels[0].codec == Codec::jpeg2000);
  CHECK(info.levels[0].compression == 33005);
  CHECK(info.levels[0].colour == Colour::rgb);
  CHECK_FALSE(info.mpp.has_value());
  CHECK(info.associated == std::vector<std::string>{"thumbnail"});
  CHECK(read_level(*slide, 1).size() == 2221 * 1783);
}
