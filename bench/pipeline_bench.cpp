#include <benchmark/benchmark.h>
#include <hwy/targets.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "bench_slides.hpp"
#include "floor.hpp"
#include "runtime/machine.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t kSide = 16384;

/// Those that this process may use, so that `taskset` chooses.
int processors() { return runtime::available_processors(); }

Config cpu_config(int threads) {
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = threads;
  return config;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Lets Highway use only what a processor with AVX2 has while it lives.
class OnlyAvx2 {
 public:
  explicit OnlyAvx2(bool wanted) {
    if (!wanted) return;
    const std::int64_t avx512 = HWY_AVX3 | HWY_AVX3_DL;
    hwy::SetSupportedTargetsForTest(hwy::SupportedTargets() & ~avx512);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~OnlyAvx2() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  OnlyAvx2(const OnlyAvx2&) = delete;
  OnlyAvx2& operator=(const OnlyAvx2&) = delete;
};

/// Every tile's bytes by positional reads, one thread.
void read_tiles(benchmark::State& state) {
  const auto slide = Slide::open(bench::bench_slide(kSide, SynthCodec::jpeg_420));
  const Level& level = slide->info().levels[0];
  std::vector<std::byte> buffer;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < level.columns * level.rows; ++i) {
      const TileRange range = slide->tile(0, i);
      buffer.resize(range.length);
      slide->read(range.offset, buffer);
      bytes += static_cast<std::int64_t>(range.length);
    }
  }
  state.SetBytesProcessed(bytes);
  state.SetItemsProcessed(state.iterations() * level.columns * level.rows);
}
BENCHMARK(read_tiles)->Unit(benchmark::kMillisecond);

/// Tiles to luminance, one thread; bytes are pixels, items tiles.
void decode_tiles(benchmark::State& state, SynthCodec codec) {
  const auto slide = Slide::open(bench::bench_slide(2048, codec));
  const Level& level = slide->info().levels[0];
  std::vector<std::vector<std::byte>> tiles(static_cast<std::size_t>(level.columns * level.rows));
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileRange range = slide->tile(0, static_cast<std::int64_t>(i));
    tiles[i].resize(range.length);
    slide->read(range.offset, tiles[i]);
  }
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(level.tile_width * level.tile_height));
  const HostPixels out{pixels.data(), level.tile_width, level.tile_width, level.tile_height};
  TileDecoder decoder;
  for (auto _ : state) {
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      decoder.decode(*slide, 0, static_cast<std::int64_t>(i), tiles[i], 0, 0, out);
    }
    benchmark::DoNotOptimize(pixels.data());
  }
  const auto count = state.iterations() * static_cast<std::int64_t>(tiles.size());
  state.SetItemsProcessed(count);
  state.SetBytesProcessed(count * level.tile_width * level.tile_height);
}
BENCHMARK_CAPTURE(decode_tiles, jpeg_420, SynthCodec::jpeg_420)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_tiles, jpeg_422, SynthCodec::jpeg_422)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_tiles, jpeg_rgb, SynthCodec::jpeg_rgb)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_tiles, jpeg_grey, SynthCodec::jpeg_grey)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_tiles, jpeg2000, SynthCodec::jpeg2000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_tiles, none, SynthCodec::none)->Unit(benchmark::kMillisecond);

/// The whole pipeline on one slide in the page cache; bytes are pixels, items windows.
void whole(benchmark::State& state) {
  const std::string slide = bench::bench_slide(kSide, SynthCodec::jpeg_420);
  const Config config = cpu_config(static_cast<int>(state.range(0)));
  std::uint64_t windows = 0;
  for (auto _ : state) {
    RunControl control;
    windows += run_pipeline(config, {slide}, control).corpus.windows;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(windows));
  state.SetBytesProcessed(state.iterations() * kSide * kSide);
}
BENCHMARK(whole)->ArgName("threads")->Arg(1)->Arg(processors())->Unit(benchmark::kMillisecond)->UseRealTime();

/// The whole against the floor (see Floor), in turn, over all processors. `whole_over_floor` is the ratio of medians.
void whole_over_floor(benchmark::State& state) {
  const OnlyAvx2 only_avx2(state.range(0) != 0);
  const std::string slide = bench::bench_slide(kSide, SynthCodec::jpeg_420);
  const int threads = processors();
  const bench::Floor floor(slide);
  const Config config = cpu_config(threads);
  std::vector<double> whole_seconds;
  std::vector<double> decode_seconds;
  std::vector<double> transform_seconds;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    RunControl control;
    const RunResult result = run_pipeline(config, {slide}, control);
    whole_seconds.push_back(seconds_since(start));
    if (result.corpus.windows != static_cast<std::uint64_t>(floor.windows()))
      state.SkipWithError("windows are missing");
    decode_seconds.push_back(floor.decode(threads));
    transform_seconds.push_back(floor.transform(threads));
    state.SetIterationTime(whole_seconds.back());
  }
  state.counters["whole_s"] = median(whole_seconds);
  state.counters["floor_decode_s"] = median(decode_seconds);
  state.counters["floor_transform_s"] = median(transform_seconds);
  state.counters["whole_over_floor"] = median(whole_seconds) / (median(decode_seconds) + median(transform_seconds));
  state.counters["threads"] = threads;
  state.SetItemsProcessed(state.iterations() * floor.windows());
  state.SetBytesProcessed(state.iterations() * floor.pixels());
}
BENCHMARK(whole_over_floor)
    ->ArgName("avx2_only")
    ->Arg(0)
    ->Arg(1)
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

}  // namespace
}  // namespace slidestream
