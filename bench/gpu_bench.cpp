#include <fcntl.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/trace.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/completion.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/machine.hpp"
#include "synth/synth.hpp"

/// \file
/// The whole pipeline on a machine with GPUs: figures of whole slides, from the file in the page cache to the result.
///   gpu_bench [--json FILE] [--only NAME[,NAME...]] [--size WxH] [--dir FOLDER]
/// Slides are made in FOLDER (a temporary one by default, kept for the next run).

namespace slidestream {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using runtime::cuda::DeviceScope;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  double target = 0;
  std::string direction;  ///< "at_most", "at_least" or "report"
};

class Bench {
 public:
  Bench(fs::path folder, std::int64_t width, std::int64_t height)
      : folder_(std::move(folder)), width_(width), height_(height) {
    fs::create_directories(folder_);
  }

  std::vector<Figure> figures;

  void add(const std::string& name, double value, const std::string& unit, const std::string& direction = "report",
           double target = 0) {
    figures.push_back({name, value, unit, target, direction});
    std::printf("%-42s %12.4f %s\n", name.c_str(), value, unit.c_str());
    std::fflush(stdout);
  }

  /// A slide of the headline size, or of another, under `count` names.
  std::vector<std::string> slides(SynthCodec codec, int count, std::int64_t width, std::int64_t height,
                                  int tile = 256) {
    const std::string stem = "c" + std::to_string(static_cast<int>(codec)) + "-" + std::to_string(width) + "x" +
                             std::to_string(height) + "-t" + std::to_string(tile);
    const fs::path file = folder_ / (stem + ".svs");
    if (!fs::exists(file)) {
      SynthOptions options;
      options.width = width;
      options.height = height;
      options.tile = tile;
      options.codec = codec;
      options.distinct = 300;
      options.levels = 1;
      write_synthetic_slide(file, options);
    }
    warm(file);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      const fs::path link = folder_ / (stem + "-" + std::to_string(i) + ".svs");
      if (!fs::exists(link)) fs::create_symlink(file, link);
      names.push_back(link);
    }
    return names;
  }
  std::vector<std::string> headline(SynthCodec codec, int count) { return slides(codec, count, width_, height_); }

 private:
  static void warm(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::vector<char> buffer(8 << 20);
    while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
    }
  }

  fs::path folder_;
  std::int64_t width_;
  std::int64_t height_;
};

struct Run {
  RunResult result;
  double seconds_a_slide = 0;  ///< between the first slide that ended and the last
  double seconds = 0;          ///< of all
};

Run run(const Config& config, const std::vector<std::string>& slides) {
  Run run;
  std::vector<Clock::time_point> ends;
  RunControl control;
  control.on_slide = [&](SlideResult& slide) {
    ends.push_back(Clock::now());
    if (!slide.done) std::cerr << slide.path << ": " << slide.error << '\n';
  };
  run.result = run_pipeline(config, slides, control);
  if (!run.result.failure.empty()) throw Error(run.result.failure);
  run.seconds = run.result.seconds;
  if (ends.size() > 1) {
    run.seconds_a_slide =
        std::chrono::duration<double>(ends.back() - ends.front()).count() / static_cast<double>(ends.size() - 1);
  }
  return run;
}

Config config_for(DecodeDevice decode, int memory_mib, int queue_depth) {
  Config config;
  config.pipeline.backend = Backend::cuda;
  config.pipeline.memory_mib = memory_mib;
  config.pipeline.queue_depth = queue_depth;
  config.decode.device = decode;
  config.gpu.devices = {0};
  config.gpu.split_slides = SplitSlides::never;
  return config;
}

/// Every tile of a slide decoded from memory by all cores, nothing else. Its rows go to memory, as those of a pipeline
/// must, of which `rows` are kept; 0: every tile to the same place in the cache, where nobody could use it.
double decode_alone(const std::string& path, std::int64_t rows) {
  const auto slide = Slide::open(path);
  const Level& level = slide->info().levels[0];
  const std::int64_t tiles = level.columns * level.rows;
  std::vector<std::vector<std::byte>> bytes(static_cast<std::size_t>(tiles));
  for (std::int64_t i = 0; i < tiles; ++i) {
    const TileRange range = slide->tile(0, i);
    bytes[static_cast<std::size_t>(i)].resize(range.length);
    slide->read(range.offset, bytes[static_cast<std::size_t>(i)]);
  }
  struct Local {
    TileDecoder decoder;
    std::vector<std::uint8_t> pixels;
  };
  tbb::enumerable_thread_specific<Local> locals;
  std::vector<double> times;
  const std::int64_t kept = rows / level.tile_height * level.tile_height;
  const runtime::HostMemory memory(static_cast<std::size_t>(kept * level.width));
  if (kept > 0) std::memset(memory.bytes().data(), 1, memory.bytes().size());
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    tbb::parallel_for(std::int64_t{0}, tiles, [&](std::int64_t i) {
      Local& local = locals.local();
      local.pixels.resize(static_cast<std::size_t>(level.tile_width * level.tile_height));
      const std::int64_t left = i % level.columns * level.tile_width;
      const std::int64_t top = i / level.columns * level.tile_height;
      auto* whole = reinterpret_cast<std::uint8_t*>(memory.bytes().data());
      const LuminanceView out = {kept > 0 ? whole + top % kept * level.width + left : local.pixels.data(),
                                 static_cast<std::ptrdiff_t>(kept > 0 ? level.width : level.tile_width),
                                 std::min(level.tile_width, level.width - left),
                                 std::min(level.tile_height, level.height - top)};
      local.decoder.decode(*slide, 0, i, bytes[static_cast<std::size_t>(i)], 0, 0, out);
    });
    times.push_back(seconds_since(start));
  }
  return median(times);
}

/// Pinned host memory to the device and nothing else, bytes a second.
double pinned_copy_rate(int device) {
  const DeviceScope scope(device);
  constexpr std::size_t size = std::size_t{256} << 20;
  const runtime::HostMemory host(size);
  const runtime::cuda::PinnedRange pinned(host.bytes());
  const runtime::cuda::DeviceMemory memory(size);
  const runtime::cuda::Stream stream;
  std::vector<double> times;
  for (int i = 0; i < 8; ++i) {
    const auto start = Clock::now();
    for (int j = 0; j < 8; ++j) {
      SLIDESTREAM_CUDA(
          cudaMemcpyAsync(memory.bytes().data(), host.bytes().data(), size, cudaMemcpyHostToDevice, stream.get()));
    }
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    times.push_back(seconds_since(start));
  }
  return 8.0 * static_cast<double>(size) / median(times);
}

/// A file from the page cache into memory that was touched before, with as many threads as the pipeline reads with.
double read_rate(const std::string& path, int threads) {
  const std::uint64_t size = fs::file_size(path);
  constexpr std::size_t chunk = std::size_t{16} << 20;
  std::vector<double> times;
  for (int round = 0; round < 3; ++round) {
    std::atomic<std::uint64_t> next{0};
    std::vector<runtime::HostMemory> buffers;
    buffers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      buffers.emplace_back(chunk);
      std::memset(buffers.back().bytes().data(), 1, chunk);
    }
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto start = Clock::now();
    std::vector<std::thread> readers;
    readers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      readers.emplace_back([&, i] {
        for (std::uint64_t at = next.fetch_add(chunk); at < size; at = next.fetch_add(chunk)) {
          if (pread(file, buffers[static_cast<std::size_t>(i)].bytes().data(), chunk, static_cast<off_t>(at)) < 0)
            return;
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    times.push_back(seconds_since(start));
    close(file);
  }
  return static_cast<double>(size) / median(times);
}

void bench_cpu_decode(Bench& bench) {
  const auto slides = bench.headline(SynthCodec::jpeg_420, 9);
  const Config config = config_for(DecodeDevice::cpu, 2048, 6);
  run(config, {slides[0]});
  std::vector<double> whole;
  std::vector<double> alone;
  std::vector<double> in_cache;
  for (int round = 0; round < 3; ++round) {
    alone.push_back(decode_alone(slides[0], 6 * 1024));
    in_cache.push_back(decode_alone(slides[0], 0));
    whole.push_back(run(config, slides).seconds_a_slide);
  }
  bench.add("cpu_decode_slide_s", median(whole), "s");
  bench.add("cpu_decode_alone_s", median(alone), "s");
  bench.add("cpu_decode_alone_in_cache_s", median(in_cache), "s");
  bench.add("cpu_decode_over_decode_alone", median(whole) / median(alone), "", "at_most", 1.1);
  TraceRecording recording;
  run(config, slides);
  const std::optional<Overlap> overlap = find_overlap(recording.finish());
  if (!overlap) throw Error("no record of the GPU: is libcupti there?");
  // Behind the decoder, which is the limit here.
  bench.add("cpu_decode_copy_covered", overlap->copy_covered_share().value_or(0) * 100, "%", "at_least", 95);
}

void bench_uncompressed(Bench& bench) {
  const auto slides = bench.slides(SynthCodec::none, 9, 32768, 32768);
  const Config config = config_for(DecodeDevice::automatic, 4096, 6);
  const double bytes = static_cast<double>(fs::file_size(slides[0]));
  run(config, {slides[0]});
  std::vector<double> rates;
  rates.reserve(3);
  for (int round = 0; round < 3; ++round) rates.push_back(bytes / run(config, slides).seconds_a_slide);
  const double copy = pinned_copy_rate(0);
  const double read = read_rate(slides[0], 4);
  bench.add("pinned_copy_GBps", copy * 1e-9, "GB/s");
  bench.add("read_GBps", read * 1e-9, "GB/s");
  bench.add("uncompressed_GBps", median(rates) * 1e-9, "GB/s");
  bench.add("uncompressed_over_limit", median(rates) / std::min(copy, read), "", "at_least", 0.8);
}

void bench_gpu_decode(Bench& bench) {
  const auto slides = bench.headline(SynthCodec::jpeg_420, 40);
  const Config config = config_for(DecodeDevice::automatic, 8192, 8);
  run(config, {slides[0]});
  std::vector<double> times;
  std::uint64_t fallback = 0;
  for (int round = 0; round < 3; ++round) {
    const Run done = run(config, slides);
    times.push_back(done.seconds_a_slide);
    for (const SlideResult& slide : done.result.slides) fallback += slide.gpu_fallback_tiles;
  }
  bench.add("gpu_decode_slide_ms", median(times) * 1e3, "ms", "at_most", 45);
  bench.add("gpu_decode_fallback_tiles", static_cast<double>(fallback), "tiles", "at_most", 0);
  TraceRecording recording;
  const double traced = run(config, slides).seconds_a_slide;
  const std::optional<Overlap> overlap = find_overlap(recording.finish());
  if (!overlap) throw Error("no record of the GPU: is libcupti there?");
  bench.add("trace_cost", (traced / median(times) - 1) * 100, "%", "at_most", 2);
  bench.add("gpu_decode_copy_hidden", overlap->copy_hidden_share().value_or(0) * 100, "%", "at_least", 98);
  bench.add("gpu_decode_gpu_busy", overlap->busy_share() * 100, "%", "at_least", 95);
}

void bench_several_gpus(Bench& bench) {
  const int devices = static_cast<int>(runtime::cuda::find_devices().found.size());
  const auto one = bench.headline(SynthCodec::jpeg_420, 1);
  const auto raw = bench.slides(SynthCodec::none, 32 * devices, 16384, 16384);
  const auto jpeg = bench.headline(SynthCodec::jpeg_420, 32 * devices);
  for (const bool compressed : {false, true}) {
    const std::string kind = compressed ? "jpeg" : "uncompressed";
    double single_rate = 0;
    for (int count = 1; count <= devices; count *= 2) {
      Config config = config_for(DecodeDevice::automatic, 8192 * count, 8);
      config.gpu.devices.clear();
      for (int i = 0; i < count; ++i) config.gpu.devices.push_back(i);
      config.gpu.split_slides = SplitSlides::automatic;
      const auto& all = compressed ? jpeg : raw;
      const std::vector<std::string> slides(all.begin(), all.begin() + 32 * count);
      run(config, {slides[0]});
      const double rate = static_cast<double>(slides.size()) / run(config, slides).seconds;
      if (count == 1) single_rate = rate;
      bench.add(kind + "_slides_a_second_" + std::to_string(count) + "_gpus", rate, "1/s");
      if (count > 1) {
        bench.add(kind + "_efficiency_" + std::to_string(count) + "_gpus", rate / (count * single_rate) * 100, "%",
                  "at_least", compressed ? 97 : 95);
      }
    }
  }
  if (devices >= 4) {
    Config config = config_for(DecodeDevice::automatic, 8192, 4);
    run(config, one);
    const double alone = run(config, one).seconds;
    config.gpu.devices = {0, 1, 2, 3};
    config.gpu.split_slides = SplitSlides::automatic;
    config.pipeline.memory_mib *= 4;
    run(config, one);
    bench.add("one_slide_speedup_4_gpus", alone / run(config, one).seconds, "x", "at_least", 3);
  }
}

/// What it costs to hear of the end of small pieces of work: a thread that waits for events, against host functions.
void bench_completion(Bench& bench) {
  const DeviceScope scope(0);
  constexpr int count = 2000;
  const runtime::cuda::DeviceMemory memory(1 << 16);
  const runtime::cuda::Stream stream;
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;
  const auto one_done = [&] {
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_one();
  };
  const auto wait_for = [&](int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done == wanted; });
  };
  const auto each = [&](const std::function<void()>& ask) {
    done = 0;
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      SLIDESTREAM_CUDA(cudaMemsetAsync(memory.bytes().data(), i, memory.bytes().size(), stream.get()));
      ask();
      wait_for(i + 1);
    }
    return seconds_since(start) / count * 1e6;
  };
  std::vector<double> by_thread;
  std::vector<double> by_host_function;
  const runtime::cuda::Event event;
  runtime::cuda::CompletionThread thread(0);
  std::function<void()> call = one_done;
  for (int round = 0; round < 5; ++round) {
    by_thread.push_back(each([&] {
      SLIDESTREAM_CUDA(cudaEventRecord(event.get(), stream.get()));
      thread.wait_for(event.get(), [&](const std::exception_ptr&) { one_done(); });
    }));
    by_host_function.push_back(each([&] {
      SLIDESTREAM_CUDA(cudaLaunchHostFunc(
          stream.get(), [](void* data) { (*static_cast<std::function<void()>*>(data))(); }, &call));
    }));
  }
  bench.add("completion_by_thread_us", median(by_thread), "us");
  bench.add("completion_by_host_function_us", median(by_host_function), "us");
}

struct Options {
  std::string json;
  std::set<std::string> only;
  fs::path folder = fs::temp_directory_path() / "slidestream-gpu-bench";
  std::int64_t width = 65664;
  std::int64_t height = 43264;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc)
      throw Error("usage: gpu_bench [--json FILE] [--only NAME[,NAME...]] [--size WxH] [--dir FOLDER]");
    const std::string value = argv[++i];
    if (name == "--json") {
      options.json = value;
    } else if (name == "--dir") {
      options.folder = value;
    } else if (name == "--size") {
      if (std::sscanf(value.c_str(), "%ldx%ld", &options.width, &options.height) != 2) throw Error("--size: WxH");
    } else if (name == "--only") {
      std::size_t begin = 0;
      while (begin <= value.size()) {
        const std::size_t end = std::min(value.find(',', begin), value.size());
        options.only.insert(value.substr(begin, end - begin));
        begin = end + 1;
      }
    } else {
      throw Error("gpu_bench: unknown option " + name);
    }
  }
  return options;
}

int bench_main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const runtime::cuda::Devices devices = runtime::cuda::find_devices();
  if (devices.found.empty()) throw Error("no GPU: " + devices.why_none);
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(runtime::available_processors()));
  Bench bench(options.folder, options.width, options.height);
  std::printf("%zu x %s, %d processors\n", devices.found.size(), devices.found[0].name.c_str(),
              runtime::available_processors());
  const std::vector<std::pair<std::string, void (*)(Bench&)>> parts = {{"completion", bench_completion},
                                                                       {"cpu_decode", bench_cpu_decode},
                                                                       {"uncompressed", bench_uncompressed},
                                                                       {"gpu_decode", bench_gpu_decode},
                                                                       {"several_gpus", bench_several_gpus}};
  for (const auto& [name, part] : parts) {
    if (options.only.empty() || options.only.contains(name)) part(bench);
  }
  if (!options.json.empty()) {
    nlohmann::json figures = nlohmann::json::array();
    for (const Figure& figure : bench.figures) {
      figures.push_back(
          {{"name", figure.name}, {"value", figure.value}, {"unit", figure.unit}, {"direction", figure.direction}});
      if (figure.direction != "report") figures.back()["target"] = figure.target;
    }
    std::ofstream(options.json) << nlohmann::json{{"device", devices.found[0].name}, {"figures", figures}}.dump(2)
                                << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace slidestream

int main(int argc, char** argv) {
  try {
    return slidestream::bench_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "gpu_bench: " << error.what() << '\n';
    return 2;
  }
}
