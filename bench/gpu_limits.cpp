#include "gpu_limits.hpp"

#include <fcntl.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "gpu_runs.hpp"
#include "planning/staging_plan.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/machine.hpp"

namespace slidestream::bench {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using runtime::cuda::DeviceScope;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

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
      const HostPixels out = {kept > 0 ? whole + top % kept * level.width + left : local.pixels.data(),
                              static_cast<std::ptrdiff_t>(kept > 0 ? level.width : level.tile_width),
                              std::min(level.tile_width, level.width - left),
                              std::min(level.tile_height, level.height - top)};
      local.decoder.decode(*slide, 0, i, bytes[static_cast<std::size_t>(i)], 0, 0, out);
    });
    times.push_back(seconds_since(start));
  }
  return median(times);
}

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

double ring_rate(const std::string& path, int devices, std::size_t threads) {
  constexpr std::uint64_t passes = 4;
  const std::size_t chunk =
      staging_plan(GpuConfig{}, runtime::last_cache_bytes(), static_cast<std::size_t>(devices)).chunk_bytes;
  const std::uint64_t size = fs::file_size(path), all = passes * static_cast<std::uint64_t>(devices) * size;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::atomic<std::uint64_t> next{0}, carried{0};
  std::atomic<bool> failed = false;
  std::barrier ready(static_cast<std::ptrdiff_t>(threads) * devices + 1);
  const auto carry = [&](int device) {
    const DeviceScope scope(device);
    const runtime::HostMemory host(2 * chunk);
    const runtime::cuda::PinnedRange pinned(host.bytes());
    const runtime::cuda::DeviceMemory memory(2 * chunk);
    const std::array<runtime::cuda::Stream, 2> streams;
    ready.arrive_and_wait();
    for (std::size_t i = 0;; i = 1 - i) {
      const std::uint64_t at = next.fetch_add(chunk);
      if (at >= all) break;
      SLIDESTREAM_CUDA(cudaStreamSynchronize(streams[i].get()));
      std::byte* const from = host.bytes().data() + i * chunk;
      const ssize_t count = pread(file, from, chunk, static_cast<off_t>(at % size / chunk * chunk));
      if (count <= 0) {
        failed = true;
        break;
      }
      carried += static_cast<std::uint64_t>(count);
      SLIDESTREAM_CUDA(cudaMemcpyAsync(memory.bytes().data() + i * chunk, from, static_cast<std::size_t>(count),
                                       cudaMemcpyHostToDevice, streams[i].get()));
    }
    for (const runtime::cuda::Stream& stream : streams) SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    ready.arrive_and_wait();
  };
  std::vector<std::jthread> workers;
  for (int device = 0; device < devices; ++device) {
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(carry, device);
  }
  ready.arrive_and_wait();
  const auto start = Clock::now();
  ready.arrive_and_wait();
  const double seconds = seconds_since(start);
  workers.clear();
  close(file);
  if (failed) throw Error("can't read " + path);
  return static_cast<double>(carried) / seconds;
}

double read_seconds(const std::vector<std::string>& files, int threads) {
  constexpr std::size_t chunk = std::size_t{16} << 20;
  std::vector<runtime::HostMemory> buffers;
  buffers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    buffers.emplace_back(chunk);
    std::memset(buffers.back().bytes().data(), 1, chunk);
  }
  std::atomic<bool> failed = false;
  const auto start = Clock::now();
  for (const std::string& path : files) {
    const std::uint64_t size = fs::file_size(path);
    std::atomic<std::uint64_t> next{0};
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::thread> readers;
    readers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      readers.emplace_back([&, i] {
        auto* const to = buffers[static_cast<std::size_t>(i)].bytes().data();
        for (std::uint64_t at = next.fetch_add(chunk); at < size; at = next.fetch_add(chunk)) {
          if (pread(file, to, chunk, static_cast<off_t>(at)) < 0) failed = true;
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    close(file);
  }
  if (failed) throw Error("the slides can't be read");
  return seconds_since(start);
}

}  // namespace slidestream::bench
