#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/trace.hpp>

#include "gpu_convert.hpp"
#include "gpu_limits.hpp"
#include "gpu_runs.hpp"
#include "gpu_startup.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/completion.hpp"
#include "runtime/cuda/device_file.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/machine.hpp"
#include "stages/run_threads.hpp"

/// \file
/// The whole pipeline on a machine with GPUs: figures of whole slides, from the file to the result.
///   gpu_bench [--json FILE] [--only NAME[,NAME...]] [--size WxH] [--dir FOLDER] [--trace FILE] [--set KEY=VALUE]...
/// Slides are made in FOLDER (a temporary one by default, kept for the next run). With smaller headline slides all
/// others are smaller, too: to see that all of it runs. Settings hold for all runs, and win over what a run sets
/// itself.

namespace slidestream::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using runtime::cuda::DeviceScope;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void bench_cpu_decode(GpuBench& bench) {
  const auto slides = bench.headline(SynthCodec::jpeg_420, 9);
  const Config config = bench.config(DecodeDevice::cpu, 2048, 6);
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

void bench_uncompressed(GpuBench& bench) {
  const std::int64_t side = bench.scaled(32768);
  const auto slides = bench.slides(SynthCodec::none, 9, side, side);
  const Config config = bench.config(DecodeDevice::automatic, 4096, 6);
  const double bytes = static_cast<double>(fs::file_size(slides[0]));
  run(config, {slides[0]});
  std::vector<double> rates;
  rates.reserve(3);
  for (int round = 0; round < 3; ++round) rates.push_back(bytes / run(config, slides).seconds_a_slide);
  const double copy = pinned_copy_rate(0);
  std::vector<double> reads;
  reads.reserve(3);
  for (int round = 0; round < 3; ++round) reads.push_back(read_seconds({slides[0]}, 4));
  const double read = bytes / median(reads);
  bench.add("pinned_copy_GBps", copy * 1e-9, "GB/s");
  bench.add("read_GBps", read * 1e-9, "GB/s");
  bench.add("uncompressed_GBps", median(rates) * 1e-9, "GB/s");
  bench.add("uncompressed_over_limit", median(rates) / std::min(copy, read), "", "at_least", 0.8);
}

void bench_gpu_decode(GpuBench& bench) {
  const auto slides = bench.headline(SynthCodec::jpeg_420, 40);
  const Config config = bench.config(DecodeDevice::automatic, 8192, 8);
  run(config, {slides[0]});
  std::vector<double> times;
  std::uint64_t fallback = 0;
  for (int round = 0; round < 3; ++round) {
    const Run done = run(config, slides);
    times.push_back(done.seconds_a_slide);
    for (const SlideResult& slide : done.result.slides) fallback += slide.gpu_fallback_tiles;
  }
  bench.add("gpu_decode_slide_ms", median(times) * 1e3, "ms", "at_most", 45);
  const auto many = bench.headline(SynthCodec::jpeg_420, 160);
  std::vector<double> steady;
  steady.reserve(3);
  for (int round = 0; round < 3; ++round) steady.push_back(run(config, many).steady_seconds_a_slide);
  bench.add("gpu_decode_steady_slide_ms", median(steady) * 1e3, "ms", "at_most", 27);
  bench.add("gpu_decode_fallback_tiles", static_cast<double>(fallback), "tiles", "at_most", 0);
  TraceRecording recording;
  const double traced = run(config, slides).seconds_a_slide;
  const std::optional<Overlap> overlap = find_overlap(recording.finish());
  if (!overlap) throw Error("no record of the GPU: is libcupti there?");
  bench.add("trace_cost", (traced / median(times) - 1) * 100, "%", "at_most", 2);
  bench.add("gpu_decode_copy_hidden", overlap->copy_hidden_share().value_or(0) * 100, "%", "at_least", 98);
  bench.add("gpu_decode_gpu_busy", overlap->busy_share() * 100, "%", "at_least", 95);
}

/// Slides of one size on one GPU and on several: what each more brings.
void bench_several_gpus(GpuBench& bench) {
  const int devices = static_cast<int>(runtime::cuda::find_devices().found.size());
  const std::int64_t side = bench.scaled(16384);
  constexpr int slides_a_gpu = 48;
  const auto raw = bench.slides(SynthCodec::none, slides_a_gpu * devices, side, side);
  const auto jpeg = bench.headline(SynthCodec::jpeg_420, slides_a_gpu * devices);
  // Rates are those between the first slide that ends and the last: what several contexts take to be made is
  // start-up's.
  for (const bool compressed : {false, true}) {
    const std::string kind = compressed ? "jpeg" : "uncompressed";
    double single_rate = 0;
    for (int count = 1; count <= devices; count *= 2) {
      const Config config = bench.config(DecodeDevice::automatic, 8192, 8, count);
      const auto& all = compressed ? jpeg : raw;
      const auto ways = static_cast<std::size_t>(count);
      if (!compressed) {
        const std::size_t threads = reading_threads(static_cast<std::size_t>(runtime::available_processors()), ways);
        bench.add("ring_GBps_" + std::to_string(count) + "_gpus", ring_rate(raw[0], count, threads) * 1e-9, "GB/s");
      }
      const std::vector<std::string> slides(all.begin(), all.begin() + slides_a_gpu * count);
      run(config, {slides[0]});
      const Run done = run(config, slides);
      const double rate = 1 / done.seconds_a_slide;
      if (count == 1) single_rate = rate;
      const std::string gpus = std::to_string(count) + "_gpus";
      bench.add(kind + "_slides_a_second_" + gpus, rate, "1/s");
      bench.add(kind + "_slides_a_second_with_startup_" + gpus, static_cast<double>(slides.size()) / done.seconds,
                "1/s");
      bench.add(kind + "_cores_" + gpus, done.cores, "cores");
      report_stages(kind + "_" + gpus, done);
      if (count > 1) {
        bench.add(kind + "_efficiency_" + gpus, rate / (count * single_rate) * 100, "%", "at_least",
                  compressed ? 97 : 90);
      }
    }
  }
}

/// One slide after start-up: when others have been through all slots of all devices.
void bench_one_slide(GpuBench& bench) {
  const int devices = static_cast<int>(runtime::cuda::find_devices().found.size());
  double alone = 0;
  for (int count = 1; count <= devices; count *= 2) {
    const Config config = bench.config(DecodeDevice::automatic, 8192, 8, count);
    const auto slides = bench.headline(SynthCodec::jpeg_420, 16 * count + 1);
    std::vector<double> seconds(3);
    for (double& round : seconds) round = seconds_of_last(config, slides);
    if (!bench.trace_file.empty()) seconds_of_last(config, slides, bench.trace_file);
    const std::string gpus = std::to_string(count) + "_gpus";
    const std::string name = "one_slide_ms_" + gpus;
    if (count == 1) {
      alone = median(seconds);
      bench.add(name, alone * 1e3, "ms", "at_most", 50);
    } else {
      bench.add(name, median(seconds) * 1e3, "ms");
    }
    if (count > 1)
      bench.add("one_slide_speedup_" + gpus, alone / median(seconds), "x", "at_least", count == 2 ? 1.6 : 3);
  }
}

/// 512 slides of eight sizes, mixed, from start to end, beside the rate at which large ones go through; on four GPUs,
/// too, where there are as many.
void bench_archive(GpuBench& bench) {
  // Few are enough to see that it runs.
  const int count = bench.width() < 4096 ? 64 : 512;
  constexpr double sizes[] = {1, 0.05, 0.8, 0.1, 0.6, 0.15, 0.4, 0.25};
  constexpr int distinct = static_cast<int>(std::size(sizes));
  std::vector<std::vector<std::string>> names;
  for (const double size : sizes) {
    const auto side = [size](std::int64_t whole) {
      return std::max<std::int64_t>(512, static_cast<std::int64_t>(static_cast<double>(whole) * size) / 16 * 16);
    };
    names.push_back(bench.slides(SynthCodec::jpeg_420, count / distinct, side(bench.width()), side(bench.height())));
  }
  std::vector<std::string> slides;
  slides.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    slides.push_back(names[static_cast<std::size_t>(i % distinct)][static_cast<std::size_t>(i / distinct)]);
  }
  const Config config = bench.config(DecodeDevice::automatic, 8192, 8);
  const auto large = bench.headline(SynthCodec::jpeg_420, 40);
  run(config, {large[0]});
  std::vector<double> steady;
  std::vector<double> mixed;
  double cores = 0;
  for (int round = 0; round < 3; ++round) {
    const Run alone = run(config, large);
    steady.push_back(static_cast<double>(alone.pixels) / 40 / alone.seconds_a_slide);
    const Run all = run(config, slides);
    mixed.push_back(static_cast<double>(all.pixels) / all.seconds);
    cores = all.cores;
  }
  bench.add("archive_Gpxps", median(mixed) * 1e-9, "Gpx/s");
  bench.add("archive_over_steady", median(mixed) / median(steady), "", "at_least", 0.9);
  bench.add("archive_host_cores", cores, "cores");
  bench.add("archive_host_memory_GB", static_cast<double>(peak_memory()) * 1e-9, "GB");
  if (runtime::cuda::find_devices().found.size() < 4) return;
  const Config four = bench.config(DecodeDevice::automatic, 8192, 8, 4);
  std::vector<double> on_four;
  for (int round = 0; round < 3; ++round) {
    const Run all = run(four, slides);
    on_four.push_back(static_cast<double>(all.pixels) / all.seconds);
    cores = all.cores;
  }
  bench.add("archive_Gpxps_4_gpus", median(on_four) * 1e-9, "Gpx/s");
  bench.add("archive_efficiency_4_gpus", median(on_four) / (4 * median(mixed)) * 100, "%", "at_least", 97);
  bench.add("archive_host_cores_4_gpus", cores, "cores");
  bench.add("archive_host_memory_GB_4_gpus", static_cast<double>(peak_memory()) * 1e-9, "GB");
}

/// Uncompressed slides that aren't in the page cache, beside reading their files and nothing else.
void bench_storage(GpuBench& bench) {
  constexpr int count = 5;
  const std::int64_t side = bench.scaled(24576);
  const std::string slide = bench.slides(SynthCodec::none, 1, side, side)[0];
  const double bytes = static_cast<double>(fs::file_size(slide));
  const Config config = bench.config(DecodeDevice::automatic, 4096, 6);
  run(config, {slide});
  std::vector<double> reads;
  std::vector<double> runs;
  for (int round = 0; round < 3; ++round) {
    reads.push_back(bytes * count / read_seconds(bench.cold_copies(slide, count), 4));
    runs.push_back(bytes / run(config, bench.cold_copies(slide, count)).seconds_a_slide);
  }
  bench.add("storage_read_GBps", median(reads) * 1e-9, "GB/s");
  bench.add("storage_GBps", median(runs) * 1e-9, "GB/s");
  bench.add("storage_over_read", median(runs) / median(reads), "", "at_least", 0.9);
}

/// Slides of JPEG that the GPU decodes, from the page cache and from storage, in each way that `input.io` has for both:
/// time a slide, and what it takes of the processors.
void bench_ways_to_read(GpuBench& bench) {
  constexpr int count = 6;
  const runtime::cuda::DeviceFileSupport support = runtime::cuda::device_file_support();
  if (!support.note.empty()) std::printf("cufile: %s\n", support.note.c_str());
  const std::string slide = bench.headline(SynthCodec::jpeg_420, 1)[0];
  const double bytes = static_cast<double>(fs::file_size(slide));
  const std::vector<std::pair<std::string, InputIo>> ways = {
      {"posix", InputIo::posix}, {"direct", InputIo::direct}, {"cufile", InputIo::cufile}};
  for (const auto& [name, io] : ways) {
    if (io == InputIo::cufile && !support.there) continue;
    Config config = bench.config(DecodeDevice::gpu, 8192, 8);
    config.input.io = io;
    run(config, {slide});
    for (const bool cold : {false, true}) {
      std::vector<double> rates, processor, times;
      for (int round = 0; round < 3; ++round) {
        const auto copies = bench.cold_copies(slide, count);
        if (!cold) read_seconds(copies, 8);
        const Run done = run(config, copies);
        times.push_back(done.seconds_a_slide);
        rates.push_back(bytes / done.seconds_a_slide);
        processor.push_back(done.cores * done.seconds / count);
      }
      const std::string prefix = "io_" + name + (cold ? "_cold_" : "_warm_");
      bench.add(prefix + "slide_ms", median(times) * 1e3, "ms");
      bench.add(prefix + "GBps", median(rates) * 1e-9, "GB/s");
      bench.add(prefix + "processor_ms", median(processor) * 1e3, "ms a slide");
    }
  }
}

/// JPEG 2000 that the CPU decodes for the GPU, beside its decoder alone on the same cores; and a slide that the GPU
/// decodes.
void bench_jpeg2000(GpuBench& bench) {
  const std::int64_t side = bench.scaled(16384);
  const auto slides = bench.slides(SynthCodec::jpeg2000, 5, side, side);
  const Config config = bench.config(DecodeDevice::cpu, 2048, 6);
  run(config, {slides[0]});
  std::vector<double> whole;
  std::vector<double> alone;
  for (int round = 0; round < 3; ++round) {
    alone.push_back(decode_alone(slides[0], 0));
    whole.push_back(run(config, slides).seconds_a_slide);
  }
  bench.add("jpeg2000_slide_s", median(whole), "s");
  bench.add("jpeg2000_decode_alone_s", median(alone), "s");
  bench.add("jpeg2000_over_decode_alone", median(alone) / median(whole), "", "at_least", 0.95);
  const auto large = bench.headline(SynthCodec::jpeg2000, 20);
  const Config on_gpu = bench.config(DecodeDevice::automatic, 8192, 8);
  run(on_gpu, {large[0]});
  std::vector<double> times;
  std::uint64_t fallback = 0;
  for (int round = 0; round < 3; ++round) {
    const Run done = run(on_gpu, large);
    times.push_back(done.seconds_a_slide);
    for (const SlideResult& slide : done.result.slides) fallback += slide.gpu_fallback_tiles;
  }
  bench.add("jpeg2000_gpu_slide_ms", median(times) * 1e3, "ms", "at_most", 105);
  bench.add("jpeg2000_gpu_fallback_tiles", static_cast<double>(fallback), "tiles", "at_most", 0);
}

/// What it costs to hear of the end of small pieces of work: a thread that waits for events, against host functions.
void bench_completion(GpuBench& bench) {
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
  std::string trace;
  std::vector<std::string> settings;
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
      throw Error(
          "usage: gpu_bench [--json FILE] [--only NAME[,NAME...]] [--size WxH] [--dir FOLDER] [--trace FILE] "
          "[--set KEY=VALUE]...");
    const std::string value = argv[++i];
    if (name == "--json") {
      options.json = value;
    } else if (name == "--dir") {
      options.folder = value;
    } else if (name == "--trace") {
      options.trace = value;
    } else if (name == "--set") {
      options.settings.push_back(value);
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
  if (argc == 2 && std::string(argv[1]) == "--context") return make_context_only(), 0;
  const Options options = parse(argc, argv);
  const std::vector<std::pair<std::string, void (*)(GpuBench&)>> parts = {
      {"completion", bench_completion}, {"cpu_decode", bench_cpu_decode}, {"uncompressed", bench_uncompressed},
      {"gpu_decode", bench_gpu_decode}, {"archive", bench_archive},       {"storage", bench_storage},
      {"io", bench_ways_to_read},       {"jpeg2000", bench_jpeg2000},     {"several_gpus", bench_several_gpus},
      {"one_slide", bench_one_slide},   {"startup", bench_startup},       {"convert", bench_convert}};
  for (const std::string& name : options.only) {
    const auto is_it = [&](const auto& part) { return part.first == name; };
    if (std::ranges::none_of(parts, is_it)) throw Error("--only: no part is called " + name);
  }
  const runtime::cuda::Devices devices = runtime::cuda::find_devices();
  if (devices.found.empty()) throw Error("no GPU: " + devices.why_none);
  // As many as any run asks for.
  const tbb::global_control parallelism(
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>(threads_for_all(static_cast<int>(devices.found.size()))));
  GpuBench bench(options.folder, options.width, options.height);
  bench.trace_file = options.trace;
  bench.settings = options.settings;
  std::printf("%zu x %s, %d processors\n", devices.found.size(), devices.found[0].name.c_str(),
              runtime::available_processors());
  for (const auto& [name, part] : parts) {
    if (!options.only.empty() && !options.only.contains(name)) continue;
    const std::size_t before = bench.figures.size();
    part(bench);
    if (bench.figures.size() == before) throw Error("the part " + name + " measured nothing");
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
}  // namespace slidestream::bench

int main(int argc, char** argv) {
  try {
    return slidestream::bench::bench_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "gpu_bench: " << error.what() << '\n';
    return 2;
  }
}
