#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/trace.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/stage_meter.hpp"
#include "support/spin_kernel.hpp"
#include "support/test_data.hpp"
#include "support/trap_kernel.hpp"

using namespace slidestream;
using runtime::StageMeter;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t bytes = std::size_t{32} << 20;

/// Two streams, and memory to copy between.
struct Gpu {
  Gpu() {
    SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
    SLIDESTREAM_CUDA(cudaMallocHost(&host, bytes));
    SLIDESTREAM_CUDA(cudaMalloc(reinterpret_cast<void**>(&device), 2 * bytes));
    // The first launch and copy load what they need.
    test::launch_spin(0.1, compute);
    upload();
    wait();
  }
  ~Gpu() {
    cudaFree(device);
    cudaFreeHost(host);
    cudaStreamDestroy(copy);
    cudaStreamDestroy(compute);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void spin(double time) {
    test::launch_spin(time, compute);
    SLIDESTREAM_CUDA_LAUNCHED();
  }
  void upload() { SLIDESTREAM_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, copy)); }
  void wait() {
    SLIDESTREAM_CUDA(cudaStreamSynchronize(copy));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(compute));
  }

  cudaStream_t compute = nullptr;
  cudaStream_t copy = nullptr;
  void* host = nullptr;
  std::byte* device = nullptr;
};

bool gpu_or_skip() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  static_cast<void>(cudaGetLastError());
  test::report_skipped("no GPU");
  return false;
}

bool records_or_skip(const Trace& trace) {
  if (trace.device_warning.empty()) return true;
  test::report_skipped(trace.device_warning);
  return false;
}

std::vector<DeviceRecord> of_kind(const Trace& trace, DeviceRecord::Kind kind) {
  std::vector<DeviceRecord> records;
  for (const DeviceRecord& record : trace.device_records) {
    if (record.kind == kind) records.push_back(record);
  }
  std::ranges::sort(records, {}, &DeviceRecord::start_ns);
  return records;
}

}  // namespace

TEST_CASE("a GPU's work is recorded by kind, with the host's time") {
  if (!gpu_or_skip()) return;
  Gpu gpu;
  StageMeter meter("launch and wait");
  TraceRecording recording;
  constexpr std::size_t rounds = 20;
  for (std::size_t i = 0; i < rounds; ++i) {
    const StageMeter::Busy busy(meter);
    gpu.spin(2.0);
    gpu.wait();
    std::this_thread::sleep_for(milliseconds(i == 0 ? 150 : 0));
  }
  gpu.upload();
  SLIDESTREAM_CUDA(cudaMemcpyAsync(gpu.host, gpu.device, bytes / 2, cudaMemcpyDeviceToHost, gpu.copy));
  SLIDESTREAM_CUDA(cudaMemcpyAsync(gpu.device + bytes, gpu.device, bytes / 4, cudaMemcpyDeviceToDevice, gpu.copy));
  SLIDESTREAM_CUDA(cudaMemsetAsync(gpu.device, 0, bytes / 8, gpu.copy));
  gpu.wait();
  const Trace trace = recording.finish();
  if (!records_or_skip(trace)) return;

  CHECK(trace.dropped_device_records == 0);
  const std::vector<DeviceRecord> kernels = of_kind(trace, DeviceRecord::Kind::kernel);
  REQUIRE(kernels.size() == rounds);
  REQUIRE(trace.ranges.size() == rounds);
  std::int64_t least_margin = 1'000'000'000;
  for (std::size_t i = 0; i < rounds; ++i) {
    CHECK(trace.names[kernels[i].name] == "spin");
    CHECK(1e-6 * static_cast<double>(kernels[i].end_ns - kernels[i].start_ns) == doctest::Approx(2.0).epsilon(0.1));
    // A kernel runs between its launch and the end of the wait for it, if both clocks agree.
    CHECK(kernels[i].start_ns >= trace.ranges[i].start_ns);
    CHECK(kernels[i].end_ns <= trace.ranges[i].end_ns);
    least_margin = std::min({least_margin, kernels[i].start_ns - trace.ranges[i].start_ns,
                             i == 0 ? least_margin : trace.ranges[i].end_ns - kernels[i].end_ns});
  }
  MESSAGE("clocks agree within ", least_margin, " ns");
  const auto check_one = [&](DeviceRecord::Kind kind, std::size_t expected_bytes) {
    const std::vector<DeviceRecord> records = of_kind(trace, kind);
    REQUIRE(records.size() == 1);
    CHECK(records[0].bytes == expected_bytes);
    CHECK(records[0].stream != kernels[0].stream);
  };
  check_one(DeviceRecord::Kind::upload, bytes);
  check_one(DeviceRecord::Kind::download, bytes / 2);
  check_one(DeviceRecord::Kind::device_copy, bytes / 4);
  check_one(DeviceRecord::Kind::fill, bytes / 8);
}

TEST_CASE("copies behind a kernel are hidden, copies alone aren't, and a gap names its stage") {
  if (!gpu_or_skip()) return;
  Gpu gpu;
  StageMeter decode("artificial decode");
  TraceRecording recording;
  gpu.spin(30.0);
  for (int i = 0; i < 4; ++i) gpu.upload();  // some 3 ms together
  gpu.wait();
  for (int i = 0; i < 4; ++i) gpu.upload();
  gpu.wait();
  {
    const StageMeter::Busy busy(decode);
    std::this_thread::sleep_for(milliseconds(40));
  }
  gpu.spin(10.0);
  gpu.wait();
  const Trace trace = recording.finish();
  if (!records_or_skip(trace)) return;

  REQUIRE(of_kind(trace, DeviceRecord::Kind::upload).size() == 8);
  const Overlap overlap = find_overlap(trace).value();
  REQUIRE(overlap.devices.size() == 1);
  CHECK(overlap.devices[0].kernel_seconds == doctest::Approx(0.040).epsilon(0.05));
  CHECK(overlap.copy_hidden_share().value() == doctest::Approx(0.5).epsilon(0.1));
  const double gap = overlap.longest_gap().longest_gap_seconds;
  CHECK(gap >= 0.040);
  CHECK(gap < 0.080);
  CHECK(overlap.longest_gap().waited_for == "artificial decode");
  CHECK(overlap.busy_share() == doctest::Approx(0.040 / (0.040 + gap)).epsilon(0.05));
}

TEST_CASE("records that find no room are counted, and the next recording begins empty") {
  if (!gpu_or_skip()) return;
  Gpu gpu;
  constexpr std::size_t launches = 200;
  for (const std::size_t room : {std::size_t{50}, launches}) {
    TraceRecording recording(TraceRecording::Options{.devices = true, .most_records = room});
    for (std::size_t i = 0; i < launches; ++i) gpu.spin(0.001);
    gpu.wait();
    const Trace trace = recording.finish();
    if (!records_or_skip(trace)) return;
    CHECK(trace.device_records.size() == room);
    CHECK(trace.dropped_device_records == launches - room);
  }
}

// The last one: the device is lost to the process from here on.
TEST_CASE("a recording ends when its GPU is lost") {
  if (!gpu_or_skip()) return;
  TraceRecording recording;
  StageMeter meter("before the loss");
  test::launch_spin(1.0, nullptr);
  cudaDeviceSynchronize();
  { const StageMeter::Busy busy(meter); }
  test::launch_trap();
  CHECK(cudaDeviceSynchronize() != cudaSuccess);
  const Trace trace = recording.finish();
  CHECK(trace.ranges.size() == 1);
  MESSAGE(trace.device_records.size(), " records, ", trace.dropped_device_records, " lost");
}
