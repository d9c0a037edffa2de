#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "support/test_data.hpp"

using namespace slidestream;

namespace {

void compare_with_oracle(const std::string& name) {
  const auto root = test::test_data_root();
  if (!root) {
    test::report_skipped("no real slides: set SLIDESTREAM_TEST_DATA");
    return;
  }
  std::ifstream file(*root / "oracle" / (name + ".json"));
  REQUIRE(file);
  const nlohmann::json oracle = nlohmann::json::parse(file);

  Config config;
  config.pipeline.backend = Backend::cpu;
  config.output.maps = MapFormat::npy;
  RunControl control;
  const RunResult run = run_pipeline(config, {(*root / "data" / (name + ".svs")).string()}, control);
  REQUIRE(run.slides.size() == 1);
  const SlideResult& slide = run.slides[0];
  REQUIRE_MESSAGE(slide.done, slide.error);
  CHECK(slide.width == oracle["width"].get<std::int64_t>());
  CHECK(slide.height == oracle["height"].get<std::int64_t>());
  const double values = oracle["values"].get<double>();
  CHECK(static_cast<double>(slide.sums.values) == values);
  CHECK(std::abs(slide.sums.mean() - oracle["mean"].get<double>()) <= 1e-3);
  CHECK(std::abs(slide.sums.standard_deviation() - oracle["std"].get<double>()) <= 1e-3);

  const auto expected = oracle["histogram"].get<std::vector<double>>();
  REQUIRE(expected.size() == slide.sums.histogram.size());
  double distance = 0;
  double cumulative = 0;
  double worst = 0;
  for (std::size_t bin = 0; bin < expected.size(); ++bin) {
    const double off = static_cast<double>(slide.sums.histogram[bin]) - expected[bin];
    distance += std::abs(off);
    cumulative += off;
    worst = std::max(worst, std::abs(cumulative));
  }
  CHECK(distance / values <= std::max(1e-3, 5 / std::sqrt(values)));
  CHECK(worst / values <= 3e-4);

  const auto& rows = oracle["window_means"];
  REQUIRE(slide.map.rows == static_cast<std::int64_t>(rows.size()));
  double worst_window = 0;
  for (std::size_t y = 0; y < rows.size(); ++y) {
    REQUIRE(slide.map.columns == static_cast<std::int64_t>(rows[y].size()));
    for (std::size_t x = 0; x < rows[y].size(); ++x) {
      const std::size_t at = (y * rows[y].size() + x) * 2;
      worst_window = std::max(worst_window, std::abs(slide.map.values[at] - rows[y][x].get<double>()));
    }
  }
  CHECK(worst_window <= 1e-3);
}

}  // namespace

TEST_CASE("RGB-coded JPEG slide equals the oracle") { compare_with_oracle("cmu-1-small-region"); }

TEST_CASE("JPEG 2000 slide equals the oracle (long)") { compare_with_oracle("tcga-cr-7395"); }
