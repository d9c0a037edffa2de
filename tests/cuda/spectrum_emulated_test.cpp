// The fused kernels' logic, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "cuda/emulator/device_words.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"
#include "support/reference.hpp"

// Kernels are compiled for a GPU elsewhere: here only what is wrong for the host counts.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "cuda/spectrum/fused_hopper.cuh"
#include "cuda/spectrum/fused_portable.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;

namespace {

/// Half of an image's pixels less the offset, as the kernels take them, and what they make of it.
struct Run {
  std::vector<float> plane;
  FusedTask task;
  std::vector<std::uint64_t> histogram;
  std::vector<std::int64_t> moments;
};

Run make_run(const test::Image& image, int columns, int rows) {
  Run run;
  run.task.pitch = (image.width + 3) / 4 * 4;
  run.plane.assign(static_cast<std::size_t>(run.task.pitch * image.height), NAN);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      run.plane[static_cast<std::size_t>(y * run.task.pitch + x)] =
          0.5F * static_cast<float>(image.at(x, y) - luminance_offset);
    }
  }
  run.task.plane = run.plane.data();
  run.task.columns = columns;
  run.task.rows = rows;
  run.task.bins_per_octave = static_cast<float>(10.0 * decibels_per_octave);
  run.task.bin_of_zero = 1.0F;
  run.task.bins = 1450;
  run.task.copies = 2;  // of no account here: kernels are named with theirs
  run.histogram.resize(static_cast<std::size_t>(run.task.bins));
  run.moments.resize(static_cast<std::size_t>(2 * columns * rows));
  run.task.histogram = run.histogram.data();
  run.task.moments = run.moments.data();
  return run;
}

using Kernel = void (*)(FusedTask);

void execute(const Run& run, Kernel kernel, unsigned threads, int teams) {
  const unsigned blocks = blocks_for(run.task, teams);
  for (unsigned block = 0; block < blocks; ++block) {
    test::emulator::run_block(block, blocks, threads, [&] { kernel(run.task); });
  }
}

/// Against the definition: a window's mean, and all bins.
void check(const Run& run, const test::Image& image, double moment = 2e-5, double histogram = 1e-3) {
  AnalysisConfig config;
  config.smoothing_radius = 0;
  const test::ReferenceResult expected = test::reference_spectrum(image, config);
  std::uint64_t distance = run.histogram[0];
  for (std::size_t bin = 0; bin < expected.histogram.size(); ++bin) {
    const std::uint64_t found = bin + 1 < run.histogram.size() ? run.histogram[bin + 1] : 0;
    distance += found > expected.histogram[bin] ? found - expected.histogram[bin] : expected.histogram[bin] - found;
  }
  CHECK(static_cast<double>(distance) <= histogram * static_cast<double>(expected.values));
  for (std::size_t window = 0; window < expected.window_means.size(); ++window) {
    constexpr double values = side * side;
    const double mean =
        2.0 * decibels_per_octave / (1 << fused_sum_bits) * static_cast<double>(run.moments[2 * window]) / values;
    const double square = 2.0 * decibels_per_octave * decibels_per_octave / (1 << fused_square_bits) *
                          static_cast<double>(run.moments[2 * window + 1]) / values;
    CHECK(std::abs(mean - expected.window_means[window]) < moment);
    CHECK(std::abs(std::sqrt(square - mean * mean) - expected.window_standard_deviations[window]) < moment);
  }
}

/// Where float32's error shows whole.
void check_zeros(Kernel kernel, unsigned threads) {
  AnalysisConfig config;
  config.smoothing_radius = 0;
  const test::Tolerance tolerance = test::tolerance_for_zeros(config);
  for (const auto& [name, image] : test::stepped_images(side)) {
    INFO(name);
    const Run run = make_run(image, 1, 1);
    execute(run, kernel, threads, 66);
    check(run, image, tolerance.moment, tolerance.histogram);
  }
}

void check_kernel(Kernel kernel, unsigned threads) {
  struct Case {
    int columns, rows, teams;
  };
  // One window; whole columns for each team; columns that teams share.
  for (const Case& size : {Case{1, 1, 66}, Case{2, 2, 1}, Case{3, 2, 2}, Case{1, 4, 3}}) {
    INFO(size.columns, " x ", size.rows, " windows, ", size.teams, " teams");
    const test::Image image = test::textured_image(128 * (size.columns + 1), 128 * (size.rows + 1), 17);
    const Run run = make_run(image, size.columns, size.rows);
    execute(run, kernel, threads, size.teams);
    check(run, image);
  }
}

/// What a window gives doesn't depend on those around it, or on the team that works on it.
void check_cut(Kernel kernel, unsigned threads) {
  const test::Image image = test::textured_image(512, 384, 18);
  const Run whole = make_run(image, 3, 2);
  execute(whole, kernel, threads, 2);
  std::vector<std::uint64_t> histogram(whole.histogram.size());
  for (int window = 0; window < 6; ++window) {
    Run one = make_run(image, 1, 1);
    one.task.plane += window / 3 * strip_rows * one.task.pitch + window % 3 * (side / 2);
    execute(one, kernel, threads, 66);
    CHECK(one.moments[0] == whole.moments[static_cast<std::size_t>(2 * window)]);
    CHECK(one.moments[1] == whole.moments[static_cast<std::size_t>(2 * window + 1)]);
    for (std::size_t bin = 0; bin < histogram.size(); ++bin) histogram[bin] += one.histogram[bin];
  }
  CHECK(histogram == whole.histogram);
}

}  // namespace

TEST_CASE("the portable build's threads compute the windows' statistics") {
  check_kernel(fused_portable<2>, PortableShape::threads);
  check_cut(fused_portable<1>, PortableShape::threads);
  check_zeros(fused_portable<2>, PortableShape::threads);
}

TEST_CASE("the Hopper build's threads compute the windows' statistics") {
  check_kernel(fused_hopper<2>, HopperShape::threads);
  check_cut(fused_hopper<1>, HopperShape::threads);
  check_zeros(fused_hopper<2>, HopperShape::threads);
}
