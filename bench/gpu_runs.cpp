#include "gpu_runs.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/trace.hpp>

#include "runtime/machine.hpp"

namespace slidestream::bench {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void warm(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> buffer(8 << 20);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
  }
}

/// Of the headline slide.
constexpr std::int64_t usual_width = 65664;

double seconds_of(const ::timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Of all threads of this process.
double processor_seconds() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

GpuBench::GpuBench(fs::path folder, std::int64_t width, std::int64_t height)
    : folder_(std::move(folder)), width_(width), height_(height) {
  fs::create_directories(folder_);
}

void GpuBench::add(const std::string& name, double value, const std::string& unit, const std::string& direction,
                   double target) {
  figures.push_back({name, value, unit, target, direction});
  std::printf("%-42s %12.4f %s\n", name.c_str(), value, unit.c_str());
  std::fflush(stdout);
}

std::vector<std::string> GpuBench::slides(SynthCodec codec, int count, std::int64_t width, std::int64_t height) {
  const std::string stem =
      "c" + std::to_string(static_cast<int>(codec)) + "-" + std::to_string(width) + "x" + std::to_string(height);
  const fs::path file = folder_ / (stem + ".svs");
  if (!fs::exists(file)) {
    SynthOptions options;
    options.width = width;
    options.height = height;
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

std::vector<std::string> GpuBench::cold_copies(const std::string& slide, int count) {
  const fs::path file = fs::canonical(slide);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const fs::path copy = folder_ / (file.stem().string() + "-copy-" + std::to_string(i) + ".svs");
    if (!fs::exists(copy)) fs::copy_file(file, copy);
    forget(copy);
    names.push_back(copy);
  }
  return names;
}

Config GpuBench::config(DecodeDevice decode, int memory_mib, int queue_depth, int gpus) const {
  constexpr std::int64_t smallest = 64;
  Config config;
  config.pipeline.backend = Backend::cuda;
  config.pipeline.memory_mib =
      static_cast<int>(std::max(smallest, std::min<std::int64_t>(memory_mib, memory_mib * width_ / usual_width))) *
      gpus;
  config.pipeline.queue_depth = queue_depth;
  config.decode.device = decode;
  for (int i = 0; i < gpus; ++i) config.gpu.devices.push_back(i);
  config.gpu.split_slides = gpus > 1 ? SplitSlides::automatic : SplitSlides::never;
  for (const std::string& setting : settings) apply_setting(config, setting);
  return config;
}

std::int64_t GpuBench::scaled(std::int64_t side) const {
  constexpr std::int64_t smallest = 512;
  return std::max(smallest, std::min(side, side * width_ / usual_width / 16 * 16));
}

void forget(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error(file.string() + ": can't be opened");
  // Only what is on the disk can be dropped.
  ::fsync(descriptor);
  const int failed = ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  if (failed != 0) throw Error(file.string() + ": can't be taken out of the page cache");
}

Run run(const Config& config, const std::vector<std::string>& slides,
        const std::function<void(const SlideResult&)>& on_slide,
        const std::function<void(const std::string&)>& on_start) {
  Run run;
  std::vector<Clock::time_point> ends;
  std::string failure;
  RunControl control;
  control.on_start = on_start;
  control.on_slide = [&](SlideResult& slide) {
    ends.push_back(Clock::now());
    run.pixels += static_cast<std::uint64_t>(slide.width) * static_cast<std::uint64_t>(slide.height);
    if (!slide.done && failure.empty()) failure = slide.path + ": " + slide.error;
    if (on_slide) on_slide(slide);
  };
  const double before = processor_seconds();
  run.result = run_pipeline(config, slides, control);
  if (!run.result.failure.empty()) throw Error(run.result.failure);
  if (!failure.empty()) throw Error(failure);
  run.seconds = run.result.seconds;
  run.cores = (processor_seconds() - before) / run.seconds;
  const auto seconds_from = [&ends](std::size_t first) {
    return std::chrono::duration<double>(ends.back() - ends[first]).count() /
           static_cast<double>(ends.size() - 1 - first);
  };
  if (ends.size() > 1) {
    run.seconds_a_slide = seconds_from(0);
    run.steady_seconds_a_slide = seconds_from((ends.size() - 1) / 2);
  }
  return run;
}

int threads_for_all(int gpus) { return std::max(runtime::available_processors(), 2 * gpus + 2); }

void report_stages(const std::string& name, const Run& done) {
  for (const StageReport& stage : done.result.stages) {
    std::printf("  %s %s: busy %.3f s of %.3f, waited for %.3f s\n", name.c_str(), stage.name.c_str(),
                stage.busy_seconds, done.seconds, stage.wait_seconds);
  }
}

double seconds_of_last(Config config, const std::vector<std::string>& slides, const std::string& trace_file) {
  // Each device's source waits for the last slide, on a thread of the graph; others have to work meanwhile.
  config.pipeline.threads = threads_for_all(static_cast<int>(config.gpu.devices.size()));
  std::optional<TraceRecording> recording;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t ended = 0;
  Clock::time_point begin, end;
  const auto on_slide = [&](const SlideResult&) {
    const std::lock_guard lock(mutex);
    end = Clock::now();
    ++ended;
    changed.notify_all();
  };
  const auto on_start = [&](const std::string& path) {
    if (path != slides.back()) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended + 1 == slides.size(); });
    if (!trace_file.empty()) recording.emplace();
    begin = Clock::now();
  };
  run(config, slides, on_slide, on_start);
  if (recording) write_trace(trace_file, recording->finish(), slides);
  return std::chrono::duration<double>(end - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::uint64_t peak_memory() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace slidestream::bench
