// The fused kernels' logic, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"
#include "support/reference.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/spectrum/fused_hopper.cuh"
#include "cuda/spectrum/fused_portable.cuh"
#include "cuda/spectrum/ring_sums.cuh"
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
  std::vector<std::uint8_t> tissue;
  std::vector<std::uint64_t> tissue_histogram;
  std::vector<std::int64_t> rings;
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

/// Has the run make the other statistics, too. Without classes windows aren't split.
void ask_for_more(Run& run, const std::vector<std::uint8_t>& tissue, int ring_copies) {
  run.task.copies = 1;
  if (!tissue.empty()) {
    run.tissue = tissue;
    run.tissue_histogram.assign(run.histogram.size(), 0);
    run.task.more.tissue = run.tissue.data();
    run.task.more.tissue_histogram = run.tissue_histogram.data();
  }
  if (ring_copies > 0) {
    run.rings.assign(fused_rings, 0);
    run.task.more.rings = run.rings.data();
    run.task.more.ring_scale =
        static_cast<float>(std::ldexp(decibels_per_octave, radial_fraction_bits(ValueKind::log1p_db)));
    run.task.more.ring_copies = ring_copies;
  }
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

/// The build with more statistics finds what the other does, the profile of the definition, and of each window the
/// same whatever stands around it.
void check_more(Kernel plain, Kernel more, unsigned threads) {
  const int columns = 3;
  const int rows = 2;
  const test::Image image = test::textured_image(128 * (columns + 1), 128 * (rows + 1), 19);
  const std::vector<std::uint8_t> tissue = {1, 0, 0, 1, 1, 0};
  const Run expected = make_run(image, columns, rows);
  execute(expected, plain, threads, 2);

  std::vector<std::uint64_t> tissue_histogram(expected.histogram.size());
  std::vector<std::int64_t> rings(fused_rings);
  for (int window = 0; window < columns * rows; ++window) {
    Run one = make_run(image, 1, 1);
    ask_for_more(one, {tissue[static_cast<std::size_t>(window)]}, 16);
    one.task.plane += window / columns * strip_rows * one.task.pitch + window % columns * (side / 2);
    execute(one, more, threads, 66);
    if (tissue[static_cast<std::size_t>(window)] != 0) CHECK(one.tissue_histogram == one.histogram);
    for (std::size_t bin = 0; bin < tissue_histogram.size(); ++bin) tissue_histogram[bin] += one.tissue_histogram[bin];
    for (std::size_t ring = 0; ring < rings.size(); ++ring) rings[ring] += one.rings[ring];
  }
  struct Case {
    bool split;
    int ring_copies;
    int teams;
  };
  for (const Case& asked : {Case{true, 16, 2}, Case{true, 1, 1}, Case{false, 4, 3}, Case{true, 0, 2}}) {
    INFO("split ", asked.split, ", ", asked.ring_copies, " copies, ", asked.teams, " teams");
    Run run = make_run(image, columns, rows);
    ask_for_more(run, asked.split ? tissue : std::vector<std::uint8_t>(), asked.ring_copies);
    execute(run, more, threads, asked.teams);
    CHECK(run.histogram == expected.histogram);
    CHECK(run.moments == expected.moments);
    if (asked.split) CHECK(run.tissue_histogram == tissue_histogram);
    if (asked.ring_copies > 0) CHECK(run.rings == rings);
  }

  AnalysisConfig config;
  config.smoothing_radius = 0;
  config.statistics = {"radial"};
  const test::Outcome on_cpu = test::run_whole(*make_spectrum_engine(config), image, config);
  const std::vector<double> definition = test::reference_spectrum(image, config).radial;
  const std::vector<std::uint64_t> counts = radial_ring_counts(side);
  for (std::size_t ring = 0; ring < rings.size(); ++ring) {
    INFO("ring ", ring);
    const double values = static_cast<double>(counts[ring]) * columns * rows;
    const auto mean_of = [&](auto sum) {
      return std::ldexp(static_cast<double>(sum), -radial_fraction_bits(config.value)) / values;
    };
    CHECK(std::abs(mean_of(rings[ring]) - definition[ring]) < 1e-4);
    CHECK(std::abs(mean_of(rings[ring]) - mean_of(on_cpu.sums.counters[ring])) < 1e-4);
  }
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

TEST_CASE("the portable build's threads split windows and sum over rings") {
  check_more(fused_portable<1>, fused_portable<1, true>, PortableShape::threads);
}

TEST_CASE("the Hopper build's threads split windows and sum over rings") {
  check_more(fused_hopper<1>, fused_hopper<1, true>, HopperShape::threads);
}

TEST_CASE("rings' sums in 32 bits hold what lies between two times that they are taken out") {
  for (int ky = 0; ky <= side / 2; ++ky) {
    for (int kx = 0; kx <= side / 2; ++kx)
      CHECK(RingCounter::ring_of(kx * kx + ky * ky) == static_cast<int>(radial_ring_of(kx, ky)));
  }
  Run run = make_run(test::textured_image(256, 256, 1), 1, 1);
  ask_for_more(run, {}, 2);
  // No ring of a block has more values of a window than the outermost in the half spectrum.
  const std::uint64_t values = radial_ring_counts(side).back() / 2 * RingCounter::most_windows;
  constexpr float largest = 24.0F;
  std::int64_t value = 0;
  test::emulator::run_block(0, 1, 32, [&] {
    unsigned* const sums = reinterpret_cast<unsigned*>(block_memory());
    for (int i = threadIdx.x; i < 2 * fused_rings * 2; i += 32) sums[i] = 0;
    __syncthreads();
    const RingCounter counter(sums, run.task, 0);
    value = counter.whole(largest);
    if (threadIdx.x == 7) {
      for (std::uint64_t i = 0; i < values / 2; ++i) counter.add(largest, 128 * 128);
      counter.add(largest, 129 * 129);
    }
    __syncthreads();
    counter.flush(run.task, threadIdx.x, 32);
  });
  CHECK(run.rings.back() == static_cast<std::int64_t>(2 * (values / 2)) * value);
  CHECK(run.rings[0] == 0);
}

TEST_CASE("rings of spectra in memory are summed as the host sums them") {
  for (const int window : {8, 30, 256}) {
    const auto half = static_cast<std::size_t>(window) / 2 + 1;
    const auto rows = static_cast<std::size_t>(window);
    constexpr int windows = 2;
    const test::Image noise = test::textured_image(static_cast<std::int64_t>(half) * windows, window, 21);
    std::vector<float2> spectra;
    for (const std::uint8_t pixel : noise.pixels) spectra.push_back({static_cast<float>(pixel) - 99.5F, 3.25F});
    const RingTask task = {spectra.data(), window, windows, window / 2 + 1, 256.0F};
    std::vector<std::int64_t> found(half);
    std::vector<std::int64_t> expected(half);
    for (unsigned block = 0; block < 2; ++block) {
      test::emulator::run_block(block, 2, RingShape::threads, [&] {
        add_to_rings<ValueKind::db>(reinterpret_cast<unsigned long long*>(found.data()), task);
      });
    }
    for (std::size_t i = 0; i < spectra.size(); ++i) {
      const std::size_t kx = i % half;
      const std::size_t ky = std::min(i / half % rows, rows - i / half % rows);
      const std::size_t ring = radial_ring_of(static_cast<int>(kx), static_cast<int>(ky));
      float2 f = spectra[i];
      if (i % (half * rows) == 0) f.x += static_cast<float>(luminance_offset * window * window);
      const std::int64_t value = std::llrint(value_of<ValueKind::db>(f) * 256.0F);
      if (ring < half) expected[ring] += (kx == 0 || kx == half - 1 ? 1 : 2) * value;
    }
    CHECK(found == expected);
  }
}
