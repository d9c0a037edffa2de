#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <slidestream/statistic.hpp>

#include "statistics/radial.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::vector<double> profile(const SpectrumSums& sums, const AnalysisConfig& config) {
  return findings_of(placed_statistics(config).at(0), config, sums).series.at(0).values;
}

AnalysisConfig with_radial(AnalysisConfig config) {
  config.statistics = {"radial"};
  return config;
}

void check(EngineKind kind, const AnalysisConfig& config, const Image& image, double tolerance) {
  INFO(described(image, config), ", engine ", static_cast<int>(kind));
  const auto engine = make_spectrum_engine(config, kind);
  INFO(engine->name());
  const Outcome outcome = run_whole(*engine, image, config);
  const ReferenceResult expected = reference_spectrum(image, config);
  const std::vector<double> found = profile(outcome.sums, config);
  REQUIRE(found.size() == expected.radial.size());
  for (std::size_t ring = 0; ring < found.size(); ++ring) {
    INFO("ring ", ring);
    CHECK(std::abs(found[ring] - expected.radial[ring]) <= tolerance * (1.0 + std::abs(expected.radial[ring])));
  }
  // Asking for it changes nothing else.
  AnalysisConfig plain = config;
  plain.statistics.clear();
  CHECK(same_bits(outcome, run_whole(*make_spectrum_engine(plain, kind), image, plain)));
}

}  // namespace

TEST_CASE("rings hold the whole numbers nearest to |k|, and no corner") {
  CHECK(radial_ring_of(0, 0) == 0);
  CHECK(radial_ring_of(1, 1) == 1);
  CHECK(radial_ring_of(-3, 4) == 5);
  CHECK(radial_ring_of(1, 2) == 2);
  CHECK(radial_ring_of(-2, -2) == 3);
  CHECK(radial_ring_of(128, 11) == 128);
  CHECK(radial_ring_of(128, 12) == 129);
  for (const int window : {8, 10, 64}) {
    std::vector<std::uint64_t> expected(static_cast<std::size_t>(window) / 2 + 1);
    for (int ky = -window / 2 + 1; ky <= window / 2; ++ky) {
      for (int kx = -window / 2 + 1; kx <= window / 2; ++kx) {
        const std::size_t ring = radial_ring_of(kx, ky);
        if (ring < expected.size()) ++expected[ring];
      }
    }
    CHECK(radial_ring_counts(window) == expected);
  }
}

TEST_CASE("every engine's radial profile is the reference's") {
  constexpr auto log1p = ValueKind::log1p_db;
  for (const AnalysisConfig& config :
       {analysis(256, 128, 3, log1p), analysis(16, 5, 1, log1p), analysis(32, 16, 0, log1p),
        analysis(128, 100, 3, log1p), analysis(10, 7, 0, log1p), analysis(64, 32, 1, ValueKind::db),
        analysis(64, 32, 1, ValueKind::linear)}) {
    const Image image = textured_image(2 * config.window + 70, config.window + config.stride + 13, 5);
    const double tolerance = config.value == ValueKind::linear ? 1e-4 : 3e-5;
    check(EngineKind::automatic, with_radial(config), image, tolerance);
    check(EngineKind::plain, with_radial(config), image, tolerance);
  }
}

TEST_CASE("a range that values lie outside of doesn't change the radial profile") {
  AnalysisConfig config = with_radial(AnalysisConfig{});
  config.range = {40.0, 60.0};
  check(EngineKind::automatic, config, textured_image(300, 400, 6), 3e-5);
}

TEST_CASE("the radial profile's counters are the same however windows are cut, and merge") {
  for (AnalysisConfig config : {analysis(256, 128, 3, ValueKind::log1p_db), analysis(32, 8, 3, ValueKind::log1p_db),
                                analysis(20, 9, 3, ValueKind::linear)}) {
    config = with_radial(config);
    const Image image = textured_image(5 * config.window, 4 * config.window, 7);
    const auto engine = make_spectrum_engine(config);
    const Outcome whole = run_whole(*engine, image, config);
    REQUIRE(whole.sums.counters.size() == radial_rings(config.window));
    SpectrumSums merged = empty_sums(config);
    const WindowBlock all = all_windows(image, config);
    const auto workspace = engine->make_workspace();
    for (std::int64_t row = 0; row < all.rows; row += 3) {
      for (std::int64_t column = 0; column < all.columns; column += 2) {
        SpectrumSums part = empty_sums(config);
        engine->run(
            part, {}, whole_plane(image),
            {column, std::min<std::int64_t>(2, all.columns - column), row, std::min<std::int64_t>(3, all.rows - row)},
            *workspace);
        merged += part;
      }
    }
    CHECK(merged.counters == whole.sums.counters);
    CHECK(merged == whole.sums);
  }
}

TEST_CASE("many windows are collected without overflow") {
  AnalysisConfig config = with_radial(analysis(16, 1, 0, ValueKind::log1p_db));
  const Image image{60, 60, std::vector<std::uint8_t>(3600, 255)};
  const Outcome outcome = run_whole(*make_spectrum_engine(config), image, config);
  CHECK(outcome.sums.windows == 45 * 45);
  const std::vector<double> found = profile(outcome.sums, config);
  CHECK(std::abs(found[0] - 20.0 * std::log10(1.0 + 255.0 * 256.0)) < 1e-4);
  for (std::size_t ring = 1; ring < found.size(); ++ring) CHECK(std::abs(found[ring]) < 0.01);
}

TEST_CASE("without windows the radial profile is nothing") {
  const AnalysisConfig config = with_radial(AnalysisConfig{});
  const std::vector<double> found = profile(empty_sums(config), config);
  REQUIRE(found.size() == 129);
  CHECK(std::isnan(found[0]));
  CHECK(std::isnan(found[128]));
}
