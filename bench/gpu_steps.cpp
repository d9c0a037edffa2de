#include "gpu_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <slidestream/error.hpp>
#include <utility>

#include "runtime/cuda/check.hpp"

namespace slidestream::bench {
namespace {

std::vector<std::uint8_t> tissue_tile(int width, int height) {
  std::mt19937 random(7);
  const auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-24F; };
  std::vector<float> grey(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 150.0F);
  for (int cell = 64; cell >= 2; cell /= 2) {
    const int columns = width / cell + 2;
    std::vector<float> knots(static_cast<std::size_t>(columns) * static_cast<std::size_t>(height / cell + 2));
    for (float& knot : knots) knot = (uniform() - 0.5F) * 8.0F * std::sqrt(static_cast<float>(cell));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float* knot = &knots[static_cast<std::size_t>(y / cell) * static_cast<std::size_t>(columns) +
                                   static_cast<std::size_t>(x / cell)];
        const float fx = static_cast<float>(x % cell) / static_cast<float>(cell);
        const float fy = static_cast<float>(y % cell) / static_cast<float>(cell);
        const float above = knot[0] + fx * (knot[1] - knot[0]);
        const float below = knot[columns] + fx * (knot[columns + 1] - knot[columns]);
        grey[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] +=
            above + fy * (below - above);
      }
    }
  }
  std::vector<std::uint8_t> tile(grey.size());
  std::transform(grey.begin(), grey.end(), tile.begin(), [&](float value) {
    return static_cast<std::uint8_t>(std::clamp(value + 6.0F * (uniform() - 0.5F), 0.0F, 255.0F));
  });
  return tile;
}

std::string device_line() {
  int device = 0;
  cudaDeviceProp properties{};
  int clock = 0;
  int memory_clock = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaGetDeviceProperties(&properties, device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device));
  return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) +
         " multiprocessors, at most " + std::to_string(clock / 1000) + " MHz, memory " +
         std::to_string(memory_clock / 1000) + " MHz";
}

void write_json(const Options& options, const std::vector<Figure>& figures) {
  nlohmann::json report = {{"device", device_line()}, {"figures", nlohmann::json::array()}};
  const bool default_size = options.width == Options().width && options.height == Options().height;
  for (const Figure& figure : figures) {
    nlohmann::json entry = {{"name", figure.name}, {"value", figure.median}, {"unit", "ms"}, {"direction", "at_most"}};
    entry["target"] = nullptr;
    if (figure.target && default_size) entry["target"] = *figure.target;
    entry["note"] = std::to_string(options.width) + " x " + std::to_string(options.height) + " pixels, least " +
                    std::to_string(figure.least) + ", most " + std::to_string(figure.most) + figure.note;
    report["figures"].push_back(entry);
  }
  std::ofstream file(options.json);
  file << report.dump(2) << '\n';
  if (!file.flush()) throw OutputError(options.json + ": can't be written");
}

bool parse(Options& options, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (++i == argc) return false;
    const std::string value = argv[i];
    const auto number = [&] { return std::strtoll(value.c_str(), nullptr, 10); };
    if (name == "--json") {
      options.json = value;
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--width") {
      options.width = number();
    } else if (name == "--height") {
      options.height = number();
    } else if (name == "--repeats") {
      options.repeats = static_cast<int>(number());
    } else {
      return false;
    }
  }
  return options.width >= 256 && options.height >= 256 && options.repeats > 0;
}

}  // namespace

void Figures::add(Figure figure, std::optional<double> target) {
  figure.target = target;
  std::printf("%-28s %8.3f ms (%.3f to %.3f)%s\n", figure.name.c_str(), figure.median, figure.least, figure.most,
              figure.note.c_str());
  std::fflush(stdout);
  figures_.push_back(std::move(figure));
}

void fill_with_tissue(std::byte* rows, std::int64_t pitch, std::int64_t width, std::int64_t height) {
  constexpr int tile_width = 2303;  // odd, so that windows differ from one tile to the next
  constexpr int tile_height = 1789;
  const std::vector<std::uint8_t> tile = tissue_tile(tile_width, tile_height);
  for (std::int64_t y = 0; y < height; y += tile_height) {
    for (std::int64_t x = 0; x < width; x += tile_width) {
      SLIDESTREAM_CUDA(cudaMemcpy2D(rows + y * pitch + x, static_cast<std::size_t>(pitch), tile.data(), tile_width,
                                    static_cast<std::size_t>(std::min<std::int64_t>(tile_width, width - x)),
                                    static_cast<std::size_t>(std::min<std::int64_t>(tile_height, height - y)),
                                    cudaMemcpyHostToDevice));
    }
  }
}

Figure measure(const std::string& name, int repeats, cudaStream_t stream, const std::function<void()>& enqueue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  SLIDESTREAM_CUDA(cudaEventCreate(&begin));
  SLIDESTREAM_CUDA(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = -2; i < repeats; ++i) {  // two for warming up
    SLIDESTREAM_CUDA(cudaEventRecord(begin, stream));
    enqueue();
    SLIDESTREAM_CUDA(cudaEventRecord(end, stream));
    SLIDESTREAM_CUDA(cudaEventSynchronize(end));
    float milliseconds = 0.0F;
    SLIDESTREAM_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 0) times.push_back(milliseconds);
  }
  SLIDESTREAM_CUDA(cudaEventDestroy(begin));
  SLIDESTREAM_CUDA(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return {name, times[times.size() / 2], times.front(), times.back()};
}

int measure_steps(int argc, char** argv, const std::function<Figures(const Options&)>& run) {
#ifndef NDEBUG
  (void)argc, (void)run;
  std::fprintf(stderr, "%s: built without NDEBUG; build with CMAKE_BUILD_TYPE=Release to measure\n", argv[0]);
  return 2;
#else
  Options options;
  if (!parse(options, argc, argv)) {
    std::fprintf(stderr, "usage: %s [--json FILE] [--width N] [--height N] [--repeats N] [--only FIGURE]\n", argv[0]);
    return 2;
  }
  try {
    std::printf("%s\n%lld x %lld pixels, median of %d\n", device_line().c_str(), static_cast<long long>(options.width),
                static_cast<long long>(options.height), options.repeats);
    const Figures figures = run(options);
    if (!options.json.empty()) write_json(options, figures.all());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
#endif
}

}  // namespace slidestream::bench
