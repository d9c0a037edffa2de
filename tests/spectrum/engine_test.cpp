#include "spectrum/engine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

void check_against_reference(const Image& image, const AnalysisConfig& config,
                             std::initializer_list<EngineKind> kinds) {
  const ReferenceResult expected = reference_spectrum(image, config);
  for (const EngineKind kind : kinds) {
    const auto engine = make_spectrum_engine(config, kind);
    INFO(engine->name(), ": ", described(image, config));
    const Outcome outcome = run_whole(*engine, image, config);
    CHECK(difference(outcome.sums, outcome.map, expected, tolerance_for(config, expected)) == "");
  }
}

constexpr auto plain = EngineKind::plain;
constexpr auto fast = EngineKind::highway;

}  // namespace

TEST_CASE("the plain engine agrees with the definition (long)") {
  std::mt19937_64 random(11);
  for (const ValueKind value : {ValueKind::log1p_db, ValueKind::db, ValueKind::linear}) {
    for (const int window : {8, 24, 64, 128}) {
      for (const int stride : {window / 2, window + 5, 3 * window / 4 + 1}) {
        for (const int radius : {0, 3, 16}) {
          const auto extent = [&] { return window + static_cast<std::int64_t>(random() % (2U * window)); };
          check_against_reference(textured_image(extent(), extent(), random()), analysis(window, stride, radius, value),
                                  {plain});
        }
      }
    }
  }
}

TEST_CASE("the plain engine takes large windows, odd strides and images of one window") {
  check_against_reference(textured_image(530, 601, 3), analysis(512, 61, 3, ValueKind::log1p_db), {plain});
  check_against_reference(textured_image(256, 256, 4), analysis(256, 128, 3, ValueKind::log1p_db), {plain});
  check_against_reference(textured_image(19, 14, 5), analysis(8, 1, 3, ValueKind::log1p_db), {plain});
  check_against_reference(textured_image(8, 8, 6), analysis(8, 1, 16, ValueKind::log1p_db), {plain});
  check_against_reference(textured_image(300, 40, 7), analysis(10, 100, 0, ValueKind::log1p_db), {plain});
}

TEST_CASE("the vectorised engine agrees with the definition") {
  std::mt19937_64 random(12);
  for (const int radius : {0, 1, 3}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    const auto extent = [&] { return 256 + static_cast<std::int64_t>(random() % 500U); };
    check_against_reference(textured_image(extent(), extent(), random()), config, {fast});
  }
  check_against_reference(textured_image(256, 256, 9), AnalysisConfig(), {fast});
  check_against_reference(textured_image(256, 640, 10), AnalysisConfig(), {fast});
  check_against_reference(textured_image(1100, 257, 11), AnalysisConfig(), {fast});
}

TEST_CASE("both engines divide any range, and count what lies outside") {
  const Image image = textured_image(500, 400, 13);
  for (const auto& [bins, range] : divisions()) {
    AnalysisConfig config;
    config.bins = bins;
    config.range = range;
    check_against_reference(image, config, {plain, fast});
  }
}

TEST_CASE("constant images and single points come out right") {
  for (const Image& image : plain_images(400, 272)) {
    for (const int radius : {0, 3}) {
      AnalysisConfig config;
      config.smoothing_radius = radius;
      INFO("grey ", static_cast<int>(image.pixels[1]), ", radius ", radius);
      check_against_reference(image, config, {plain, fast});
    }
  }
}

TEST_CASE("a constant window has one value at F(0,0), and all others in the bin of 0 dB") {
  Image image{256, 256, std::vector<std::uint8_t>(256 * 256, 200)};
  AnalysisConfig config;
  config.smoothing_radius = 0;
  for (const EngineKind kind : {plain, fast}) {
    const Outcome outcome = run_whole(*make_spectrum_engine(config, kind), image, config);
    const double peak = 20.0 * std::log10(1.0 + 200.0 * 65536.0);
    CHECK(outcome.sums.histogram[0] == 65535);
    CHECK(outcome.sums.histogram[static_cast<std::size_t>(peak * 10.0)] == 1);
    CHECK(outcome.sums.mean() == doctest::Approx(peak / 65536.0).epsilon(1e-4));
    CHECK(outcome.sums.clipped == 0);
  }
  // The lowest bin's edge at 0 dB, and one in the middle of the range.
  for (const double low : {-15.0, -30.0, 0.0}) {
    config.bins = 100;
    config.range = {low, low + 200.0};
    for (const EngineKind kind : {plain, fast}) {
      const Outcome outcome = run_whole(*make_spectrum_engine(config, kind), image, config);
      CHECK(outcome.sums.histogram[static_cast<std::size_t>(-low / 2.0)] == 65535);
    }
  }
}

TEST_CASE("many windows of one value don't overflow the counters") {
  // White glass: all but one value of every window fall into the same bin.
  const Image image{256 + 128 * 3, 256 + 128 * 30, std::vector<std::uint8_t>(640 * 4096, 243)};
  const AnalysisConfig config;
  for (const EngineKind kind : {plain, fast}) {
    const Outcome outcome = run_whole(*make_spectrum_engine(config, kind), image, config);
    CHECK(outcome.sums.windows == 4 * 31);
    CHECK(outcome.sums.histogram[0] == 4 * 31 * 65535ULL);
    CHECK(std::accumulate(outcome.sums.histogram.begin(), outcome.sums.histogram.end(), std::uint64_t{0}) ==
          outcome.sums.values);
  }
}

TEST_CASE("vectorised windows of every side agree with the definition (long)") {
  std::mt19937_64 random(14);
  for (const int window : {16, 32, 64, 128, 256}) {
    for (const int stride : {window / 2, window / 4 + 1, window + 7}) {
      for (const int radius : {0, 3, 16}) {
        const auto extent = [&] {
          return window + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::min(2 * window, 128)));
        };
        const Image image = textured_image(extent(), extent(), random());
        check_against_reference(image, analysis(window, stride, radius, ValueKind::log1p_db), {fast});
      }
      // Values and bins that the plain engine counts.
      const Image image = textured_image(window + window / 2 + 3, window + 17, random());
      check_against_reference(image, analysis(window, stride, 3, ValueKind::db), {fast});
      check_against_reference(image, analysis(window, stride, 3, ValueKind::linear), {fast});
      AnalysisConfig many = analysis(window, stride, 0, ValueKind::log1p_db);
      many.bins = 6000;
      check_against_reference(image, many, {plain, fast});
    }
  }
  // Two windows across and three down, or more.
  check_against_reference(textured_image(wide_or_few(519, 515), wide_or_few(530, 518), 15),
                          analysis(512, 3, 3, ValueKind::log1p_db), {fast});
  check_against_reference(textured_image(1030, 1024, 16), analysis(1024, 6, 1, ValueKind::log1p_db), {fast});
}

TEST_CASE("vectorised windows of every side agree with KISS FFT's (long)") {
  std::mt19937_64 random(15);
  for (const int window : {16, 32, 64, 128, 256, 512, 1024}) {
    for (const int stride : {window / 2, window / 3}) {
      AnalysisConfig config;
      config.window = window;
      config.stride = stride;
      // Nine windows and more, or four of those that take long.
      const bool is_small = window >= 512 && !is_wide();
      const int side = is_small ? window * 3 / 2 : 2 * window;
      const Image image = textured_image(side + 100, side + 5, random());
      const Outcome slow = run_whole(*make_spectrum_engine(config, plain), image, config);
      const auto engine = make_spectrum_engine(config, fast);
      INFO(engine->name(), ": ", described(image, config));
      const Outcome outcome = run_whole(*engine, image, config);
      Tolerance tolerance;
      tolerance.moment = 1e-4;
      CHECK(difference(outcome.sums, outcome.map, as_reference(slow.sums, slow.map), tolerance) == "");
    }
  }
}

TEST_CASE("any range of vectorised windows is divided, and what lies outside is counted") {
  const Image image = textured_image(300, 260, 16);
  for (const auto& [bins, range] : divisions()) {
    for (const int window : {16, 32, 64, 128}) {
      AnalysisConfig config = analysis(window, 48, 3, ValueKind::log1p_db);
      config.bins = bins;
      config.range = range;
      check_against_reference(image, config, {fast});
    }
  }
}

TEST_CASE("many vectorised windows of one value don't overflow the counters (long)") {
  for (const int window : {16, 32, 64, 128, 256, 512, 1024}) {
    AnalysisConfig config;
    config.window = window;
    config.stride = window / 8 + 1;
    const std::uint64_t area = static_cast<std::uint64_t>(window) * static_cast<std::uint64_t>(window);
    const Image image{1100, 1300, std::vector<std::uint8_t>(1100 * 1300, 243)};
    const Outcome outcome = run_whole(*make_spectrum_engine(config, fast), image, config);
    CHECK(outcome.sums.histogram[0] == outcome.sums.windows * (area - 1));
    CHECK(outcome.sums.values == outcome.sums.windows * area);
    CHECK(std::accumulate(outcome.sums.histogram.begin(), outcome.sums.histogram.end(), std::uint64_t{0}) ==
          outcome.sums.values);
  }
}

TEST_CASE("the engine follows the configuration, and says what it can't do") {
  const auto name = [](auto change) {
    AnalysisConfig config;
    change(config);
    return std::string(make_spectrum_engine(config)->name());
  };
  const auto nothing = [](AnalysisConfig&) {};
  CHECK(name(nothing).starts_with("highway-256 "));
  CHECK(name([](AnalysisConfig& config) { config.window = 128; }).starts_with("highway-128 "));
  CHECK(name([](AnalysisConfig& config) { config.stride = 64; }).starts_with("highway-256 "));
  CHECK(name([](AnalysisConfig& config) { config.value = ValueKind::db; }).starts_with("highway-256 "));
  for (const int window : {8, 100, 2048}) {
    const auto other = [&](AnalysisConfig& config) { config.window = window; };
    CHECK(name(other).starts_with("kissfft-" + std::to_string(window) + " "));
    AnalysisConfig config;
    other(config);
    CHECK_THROWS_AS(make_spectrum_engine(config, fast), ConfigError);
  }
}

TEST_CASE("an engine refuses a histogram of the wrong size, and gives nothing for no windows") {
  const Image image = textured_image(256, 256, 1);
  const AnalysisConfig config;
  for (const EngineKind kind : {plain, fast}) {
    const auto engine = make_spectrum_engine(config, kind);
    const auto workspace = engine->make_workspace();
    SpectrumSums wrong;
    CHECK_THROWS_AS(engine->run(wrong, {}, whole_plane(image), {0, 1, 0, 1}, *workspace), std::invalid_argument);
    SpectrumSums none = empty_sums(config);
    engine->run(none, {}, whole_plane(image), {0, 0, 0, 1}, *workspace);
    engine->run(none, {}, whole_plane(image), {0, 1, 0, 0}, *workspace);
    CHECK(none.values == 0);
    CHECK(std::accumulate(none.histogram.begin(), none.histogram.end(), std::uint64_t{0}) == 0);
  }
}
