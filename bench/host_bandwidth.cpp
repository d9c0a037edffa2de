// What a host gives its GPUs: bytes a second from the page cache into a ring of small chunks, by threads, beside
// memory.
//   host_bandwidth --dir DIR [--files N] [--file-mb N] [--past-mib N] [--rounds N] [--json FILE]
// Files are made in DIR and removed at the end. Rings have the size that the program's have; a second column has rings
// of
// --past-mib in all, which is past the caches. bench/host_model.py predicts slides a second from the JSON.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "planning/staging_plan.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/machine.hpp"
#include "runtime/page_cache.hpp"
#include "slide/file.hpp"
#include "stages/run_threads.hpp"

using namespace slidestream;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t megabyte = 1'000'000;
constexpr std::size_t most_chunk = 4 * mib;
/// What the program reads with for each GPU, where there are processors enough.
constexpr std::size_t threads_of_gpu = 12;

struct Options {
  std::filesystem::path folder;
  std::string json;
  std::size_t files = 4;
  std::size_t file_mb = 800;
  std::size_t past_mib = std::max<std::size_t>(1024, 4 * runtime::last_cache_bytes() / mib);
  std::size_t rounds = 3;
};

/// Files of one size, which are in the page cache and on no way to storage any more.
class Files {
 public:
  explicit Files(const Options& options) : bytes_(options.file_mb * megabyte) {
    std::filesystem::create_directories(options.folder);
    try {
      for (std::size_t i = 0; i < options.files; ++i) {
        paths_.push_back(options.folder / ("host-bandwidth-" + std::to_string(i) + ".bin"));
        write(paths_.back());
        files_.push_back(std::make_unique<File>(paths_.back()));
      }
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Files() { remove(); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::size_t count() const noexcept { return files_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }
  const File& operator[](std::size_t i) const noexcept { return *files_[i]; }
  bool are_cached() const { return runtime::cached_share(paths_).value_or(1.0) > 0.99; }

 private:
  void write(const std::string& path) const {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const std::vector<char> block(most_chunk, 'x');
    int error = file < 0 ? errno : 0;
    for (std::size_t done = 0; error == 0 && done < bytes_;) {
      const ::ssize_t written = ::write(file, block.data(), std::min(block.size(), bytes_ - done));
      if (written < 0 && errno != EINTR) error = errno;
      if (written > 0) done += static_cast<std::size_t>(written);
    }
    if (error == 0 && ::fsync(file) != 0) error = errno;
    if (file >= 0) ::close(file);
    if (error != 0) throw Error(path + ": " + std::strerror(error));
  }
  void remove() const noexcept {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }

  std::size_t bytes_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<File>> files_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Time from when all threads are there until all have ended.
double seconds_on(std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::latch ready(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&ready, &work, i] {
      ready.arrive_and_wait();
      work(i);
    });
  }
  ready.arrive_and_wait();
  const auto start = std::chrono::steady_clock::now();
  for (std::thread& thread : all) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// GB/s of threads that read part after part of the files, each into its own ring. \param ring_bytes  of all of them
double read_rate(const Files& files, std::size_t threads, std::size_t chunk, std::size_t ring_bytes,
                 std::size_t rounds) {
  const std::size_t chunks = std::max<std::size_t>(2, ring_bytes / threads / chunk);
  std::vector<runtime::HostMemory> rings;
  for (std::size_t i = 0; i < threads; ++i) {
    rings.emplace_back(chunks * chunk);
    runtime::populate(rings.back().bytes());
  }
  const std::size_t parts_of_file = files.bytes() / chunk;
  const std::size_t parts_of_all = parts_of_file * files.count();
  const std::size_t parts = parts_of_all * (1 + threads / 4);
  std::atomic<int> error{0};
  std::vector<double> rates;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::atomic<std::size_t> next{0};
    const double seconds = seconds_on(threads, [&](std::size_t thread) {
      const std::span<std::byte> ring = rings[thread].bytes();
      std::size_t at = 0;
      for (std::size_t part = next++; part < parts && error == 0; part = next++) {
        const std::size_t place = part % parts_of_all;
        const std::int64_t read = File::read_once(files[place / parts_of_file].descriptor(),
                                                  place % parts_of_file * chunk, ring.subspan(at, chunk));
        if (read != static_cast<std::int64_t>(chunk)) error = read < 0 ? static_cast<int>(-read) : EIO;
        at = (at + chunk) % (chunks * chunk);
      }
    });
    if (error != 0) throw Error(files[0].path().string() + ": " + std::strerror(error));
    rates.push_back(1e-9 * static_cast<double>(parts * chunk) / seconds);
  }
  return median(rates);
}

nlohmann::json measure_reads(const Files& files, const Options& options, const std::set<std::size_t>& counts) {
  nlohmann::json rows = nlohmann::json::array();
  std::printf("threads  chunk     GB/s through rings   past the caches\n");
  for (const std::size_t threads : counts) {
    const std::size_t gpus = (threads + threads_of_gpu - 1) / threads_of_gpu;
    const std::size_t ring = gpus * staging_plan(GpuConfig{}, runtime::last_cache_bytes(), gpus).bytes();
    const std::size_t chunk = std::min(most_chunk, std::bit_floor(ring / (2 * threads)));
    const double in_cache = read_rate(files, threads, chunk, 2 * threads * chunk, options.rounds);
    const double past = read_rate(files, threads, chunk, options.past_mib * mib, options.rounds);
    std::printf("%7zu  %4zu KiB  %18.1f  %16.1f\n", threads, chunk >> 10, in_cache, past);
    std::fflush(stdout);
    rows.push_back({{"threads", threads}, {"chunk_kib", chunk >> 10}, {"GBps", in_cache}, {"past_caches_GBps", past}});
  }
  return rows;
}

nlohmann::json measure_memory(const Options& options, std::size_t threads) {
  const std::size_t share = options.past_mib * mib / threads / 4096 * 4096;
  runtime::require_memory(2 * share * threads, "host_bandwidth");
  const runtime::HostMemory from(share * threads);
  const runtime::HostMemory to(share * threads);
  runtime::populate(from.bytes(), threads);
  runtime::populate(to.bytes(), threads);
  std::atomic<std::uint64_t> sum{0};
  std::vector<double> reads;
  std::vector<double> copies;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    reads.push_back(seconds_on(threads, [&](std::size_t thread) {
      const auto* const words = reinterpret_cast<const std::uint64_t*>(from.bytes().data() + thread * share);
      sum += std::accumulate(words, words + share / sizeof(std::uint64_t), std::uint64_t{0});
    }));
    copies.push_back(seconds_on(threads, [&](std::size_t thread) {
      std::memcpy(to.bytes().data() + thread * share, from.bytes().data() + thread * share, share);
    }));
  }
  const double gigabytes = 1e-9 * static_cast<double>(share * threads);
  const double read = gigabytes / median(reads);
  const double copied = gigabytes / median(copies);
  std::printf("memory, %zu threads: %.1f GB/s read, %.1f GB/s copied\n", threads, read, copied);
  return {{"read_GBps", read}, {"copy_GBps", copied}};
}

void run(const Options& options) {
  const auto cores = static_cast<std::size_t>(runtime::available_processors());
  std::set<std::size_t> counts = {cores};
  for (const std::size_t threads : {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    if (threads <= cores) counts.insert(threads);
  }
  nlohmann::json of_gpus = nlohmann::json::object();
  for (const std::size_t gpus : {1, 2, 4}) {
    const std::size_t threads = gpus * reading_threads(cores, gpus);
    counts.insert(threads);
    of_gpus[std::to_string(gpus)] = threads;
  }
  const Files files(options);
  if (!files.are_cached()) throw Error(options.folder.string() + ": files don't stay in the page cache");
  std::printf("%zu processors, last caches of %zu MiB, %zu files of %zu MB\n", cores, runtime::last_cache_bytes() / mib,
              options.files, options.file_mb);
  nlohmann::json figures = {{"processors", cores},
                            {"last_caches_mib", runtime::last_cache_bytes() / mib},
                            {"reading_threads", of_gpus},
                            {"memory", measure_memory(options, cores)}};
  figures["reads"] = measure_reads(files, options, counts);
  if (options.json.empty()) return;
  std::ofstream out(options.json);
  out << figures.dump(1) << "\n";
  if (!out.flush()) throw Error(options.json + ": can't be written");
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw ConfigError(argument + " wants a value");
      return argv[i];
    };
    const auto number = [&](std::size_t least) {
      const std::string text = value();
      std::size_t wanted = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
      if (error != std::errc() || end != text.data() + text.size() || wanted < least || wanted > 1'000'000) {
        throw ConfigError(argument + " is a number from " + std::to_string(least) + " to 1000000");
      }
      return wanted;
    };
    if (argument == "--dir") {
      options.folder = value();
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--files") {
      options.files = number(1);
    } else if (argument == "--file-mb") {
      options.file_mb = number(8);
    } else if (argument == "--past-mib") {
      options.past_mib = number(8);
    } else if (argument == "--rounds") {
      options.rounds = number(1);
    } else {
      throw ConfigError(
          "usage: host_bandwidth --dir DIR [--files N] [--file-mb N] [--past-mib N] [--rounds N] [--json FILE]");
    }
  }
  if (options.folder.empty()) throw ConfigError("name a folder to make files in (--dir)");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "host_bandwidth: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_bandwidth: %s\n", error.what());
    return 1;
  }
  return 0;
}
