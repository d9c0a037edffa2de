#include "statistics/split.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "operators/spectrum/spectrum_operator.hpp"
#include "operators/spectrum/window_classes.hpp"
#include "statistics/radial.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;
using operators::ClassBlocks;
using operators::SpectrumOperator;
using operators::WindowClasses;

namespace {

/// Islands of tissue on a grid `scale` times as coarse as the image.
Mask islands(const Image& image, double scale, std::uint64_t seed) {
  const auto along = [&](std::int64_t size) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(size) / scale));
  };
  Mask mask = empty_mask({along(image.width), along(image.height)}, {scale, scale}, {image.width, image.height});
  std::mt19937_64 random(seed);
  for (int island = 0; island < 4; ++island) {
    const auto x = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mask.size.width));
    const auto y = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mask.size.height));
    const auto reach = static_cast<std::int64_t>(2 + random() % 6);
    for (std::int64_t j = std::max<std::int64_t>(0, y - reach); j < std::min(mask.size.height, y + reach); ++j) {
      for (std::int64_t i = std::max<std::int64_t>(0, x - reach); i < std::min(mask.size.width, x + reach); ++i) {
        mask.row(j)[static_cast<std::size_t>(i)] = 1;
      }
    }
  }
  return mask;
}

/// As the definition reads: of the mask pixels whose centres lie in the window.
bool is_tissue(const Mask& mask, const AnalysisConfig& config, std::int64_t column, std::int64_t row, double share) {
  int centres = 0;
  int tissue = 0;
  for (std::int64_t j = 0; j < mask.size.height; ++j) {
    for (std::int64_t i = 0; i < mask.size.width; ++i) {
      const double x = (static_cast<double>(i) + 0.5) * mask.scale.x - static_cast<double>(column * config.stride);
      const double y = (static_cast<double>(j) + 0.5) * mask.scale.y - static_cast<double>(row * config.stride);
      if (x < 0 || y < 0 || x >= config.window || y >= config.window) continue;
      ++centres;
      tissue += mask.row(j)[static_cast<std::size_t>(i)];
    }
  }
  return tissue >= share * centres;
}

Config splitting(AnalysisConfig analysis, const std::vector<std::string>& statistics = {"split"}) {
  Config config;
  config.analysis = analysis;
  config.analysis.statistics = statistics;
  return config;
}

/// What the operator makes of some columns at a time.
SpectrumSums run(const Config& config, const Image& image, const WindowClasses* classes, std::int64_t columns) {
  const SpectrumOperator spectrum(config);
  const auto kernel = spectrum.host_kernel();
  const ConstPixelView<MemorySpace::host> pixels = {reinterpret_cast<const std::byte*>(image.pixels.data()),
                                                    image.width,
                                                    {0, 0, image.width, image.height},
                                                    {image.width, image.height},
                                                    luminance_format};
  const WindowBlock all = all_windows(image, config.analysis);
  SpectrumSums sums = empty_sums(config.analysis);
  OutputViews to;
  to.sums = &sums;
  for (std::int64_t first = 0; first < all.columns; first += columns) {
    kernel->run(pixels, {first, std::min(columns, all.columns - first), 0, all.rows}, to, classes);
  }
  return sums;
}

}  // namespace

TEST_CASE("blocks of one class together are all windows, each once") {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const Image image{500, 400, {}};
    const Mask mask = islands(image, 5.0 + trial % 7, random());
    const Footprint windows = {{16, 16}, {8, 8}, {}};
    const WindowClasses classes(mask, {1.0, 1.0}, windows, 0.5);
    const OutputBlock block = {trial % 5, 1 + trial % 40, trial % 3, 40};
    std::map<std::pair<std::int64_t, std::int64_t>, int> visited;
    ClassBlocks blocks;
    int rectangles = 0;
    blocks.for_each(classes, block, [&](const OutputBlock& part, bool tissue) {
      ++rectangles;
      for (std::int64_t row = part.row; row < part.row + part.rows; ++row) {
        for (std::int64_t column = part.column; column < part.column + part.columns; ++column) {
          ++visited[{column, row}];
          CHECK(classes.is_tissue(column, row) == tissue);
        }
      }
    });
    CHECK(visited.size() == static_cast<std::size_t>(block.columns * block.rows));
    for (const auto& [window, times] : visited) CHECK(times == 1);
    CHECK(rectangles < block.columns * block.rows);
  }
}

TEST_CASE("windows are split as the definition says, on every engine (long)") {
  constexpr auto log1p = ValueKind::log1p_db;
  for (const auto& [analysis_config, share] :
       std::vector<std::pair<AnalysisConfig, double>>{{analysis(256, 128, 0, log1p), 0.5},
                                                      {analysis(32, 16, 0, log1p), 0.25},
                                                      {analysis(20, 9, 0, ValueKind::db), 0.75}}) {
    const Config config = splitting(analysis_config, {"radial", "split"});
    const AnalysisConfig& settings = config.analysis;
    const Image image = textured_image(5 * settings.window, 4 * settings.window + 3, 8);
    const Mask mask = islands(image, settings.window / 9.0, 3);
    const WindowClasses classes(mask, {1.0, 1.0}, SpectrumOperator(config).footprint(), share);
    const SpectrumSums sums = run(config, image, &classes, 2);
    INFO(described(image, settings));

    // Unsmoothed, a window is what it is alone.
    ReferenceResult expected[2];
    double mean[2] = {};
    std::uint64_t windows[2] = {};
    const WindowBlock all = all_windows(image, settings);
    for (std::int64_t row = 0; row < all.rows; ++row) {
      for (std::int64_t column = 0; column < all.columns; ++column) {
        Image one{settings.window, settings.window, {}};
        for (std::int64_t y = 0; y < settings.window; ++y) {
          const auto begin =
              image.pixels.begin() + (row * settings.stride + y) * image.width + column * settings.stride;
          one.pixels.insert(one.pixels.end(), begin, begin + settings.window);
        }
        const ReferenceResult of_one = reference_spectrum(one, settings);
        const int which = is_tissue(mask, settings, column, row, share) ? 1 : 0;
        ++windows[which];
        mean[which] += of_one.mean;
        expected[which].histogram.resize(of_one.histogram.size());
        for (std::size_t bin = 0; bin < of_one.histogram.size(); ++bin) {
          expected[which].histogram[bin] += of_one.histogram[bin];
        }
      }
    }
    REQUIRE(windows[0] > 0);
    REQUIRE(windows[1] > 0);
    const PlacedStatistic split = split_of(settings);
    const SpectrumSums tissue = tissue_sums(settings, counters_of(split, sums));
    const SpectrumSums background = background_sums(sums, tissue);
    for (const int which : {0, 1}) {
      const SpectrumSums* const found = which == 1 ? &tissue : &background;
      INFO("class ", which);
      CHECK(found->windows == windows[which]);
      CHECK(std::abs(found->mean() - mean[which] / static_cast<double>(windows[which])) < 1e-4);
      std::uint64_t off = 0;
      for (std::size_t bin = 0; bin < found->histogram.size(); ++bin) {
        const std::uint64_t a = found->histogram[bin];
        const std::uint64_t b = expected[which].histogram[bin];
        off += a > b ? a - b : b - a;
      }
      CHECK(static_cast<double>(off) <= 2e-3 * static_cast<double>(found->values));
    }

    // All windows together, and the other statistic, are what they are without the split, however work is cut.
    const SpectrumSums without = run(splitting(analysis_config, {"radial"}), image, nullptr, all.columns);
    CHECK(std::equal(without.counters.begin(), without.counters.end(), sums.counters.begin()));
    SpectrumSums distribution = sums;
    distribution.counters = without.counters;
    CHECK(distribution == without);
    CHECK(run(config, image, &classes, 1) == sums);
    CHECK(run(config, image, &classes, all.columns) == sums);
  }
}

TEST_CASE("a class without windows has no figures but their number") {
  const Config config = splitting(AnalysisConfig{});
  const PlacedStatistic split = split_of(config.analysis);
  SpectrumSums sums = empty_sums(config.analysis);
  sums.counters.resize(split.all);
  sums.add_window(65536.0 * 20.0, 65536.0 * 500.0, 65536);
  sums.histogram[200] = 65536;
  const Findings findings = findings_of(split, config.analysis, sums);
  for (const Figure& figure : findings.figures) {
    const bool of_tissue = figure.name.starts_with("tissue");
    if (figure.name.ends_with("_windows")) {
      CHECK(figure.value == (of_tissue ? 0.0 : 1.0));
    } else {
      CHECK(figure.value.has_value() == !of_tissue);
    }
    if (figure.name == "background_mean_db") CHECK(figure.value == doctest::Approx(20.0));
  }
  REQUIRE(findings.series.size() == 2);
  CHECK(findings.series[0].name == "tissue_histograms");
  CHECK(findings.series[1].counts[200] == 65536);
}

TEST_CASE("no two figures, series or settings of all statistics have one name") {
  AnalysisConfig config;
  for (const Statistic& statistic : statistics()) config.statistics.emplace_back(statistic.name);
  std::map<std::string, int> names;
  for (const PlacedStatistic& placed : placed_statistics(config)) {
    const Findings findings = findings_of(placed, config, {});
    for (const Figure& figure : findings.figures) CHECK(++names[figure.name] == 1);
    for (const Series& series : findings.series) CHECK(++names[series.name] == 1);
  }
  CHECK(placed_statistics(config).size() == statistics().size());
  CHECK(statistic_counters(config) == placed_statistics(config).back().first + placed_statistics(config).back().count);
}
