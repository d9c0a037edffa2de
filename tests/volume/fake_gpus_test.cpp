// Volumes on GPUs that are made up, with a library that stands in for ONNX Runtime.

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "networks/made_up_runtime.hpp"
#include "networks/onnx_runtime.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/device_full.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/temporary_folder.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_networks.hpp"
#include "volume/volume_run.hpp"

using namespace slidestream;
using namespace slidestream::volume;
using namespace slidestream::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gpu_bytes = 1000 * mib;
constexpr std::size_t network_bytes = 100 * mib;

/// The library with networks that give the label sample % 4 + the digit in front of ".onnx".
MadeUpRuntime& made_up() {
  static const auto keep = networks::OnnxRuntime::load(SLIDESTREAM_MADE_UP_RUNTIME);
  void* library = dlopen(SLIDESTREAM_MADE_UP_RUNTIME, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto find = reinterpret_cast<MadeUpRuntime* (*)()>(dlsym(library, "made_up_runtime"));
  REQUIRE((find != nullptr));
  return *find();
}

class Case {
 public:
  explicit Case(std::size_t networks = 8) : made_(made_up()) {
    free_ = {gpu_bytes, gpu_bytes};
    fake_set_devices(free_);
    made_.type = networks::onnx::ElementType::float32;
    made_.wanted_at_once = 0;
    made_.most_running = 0;
    made_.most_sessions = 1000;
    made_.loaded.clear();
    made_.input_shape = made_.output_shape = {1, 1, 4, 5, 6};
    made_.compute = [](const auto&, const std::string& file, std::span<const float> in, std::span<float> out) {
      const int add = file[file.size() - std::string(".onnx").size() - 1] - '0';
      for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>(static_cast<int>(in[i]) % 4 + add);
    };
    made_.on_session = [this](const MadeUpRuntime::Options& cuda, bool begins) {
      if (!cuda.contains("device_id")) return;
      const auto gpu = static_cast<std::size_t>(std::stoi(cuda.at("device_id")));
      std::size_t& free = free_[gpu];
      if (begins && gpu == 0 && free < others + network_bytes) throw std::runtime_error(full);
      if (begins && gpu == 0 && loads_until_full > 0 && --loads_until_full == 0) others = free - network_bytes;
      free = begins ? free - network_bytes : free + network_bytes;
      least_free_ = std::min(least_free_, free);
      fake_set_devices(free_);
    };
    std::filesystem::create_directory(folder_ / "nets");
    for (std::size_t i = 0; i < networks; ++i) {
      folder_.write("nets/network-" + std::to_string(i) + ".onnx", std::string("made up"));
    }
    config.volume.networks = (folder_ / "nets").string();
    config.volume.fragment = {4, 5, 6};
    config.volume.grid = {2, 2, 2};
    config.model.runtime = SLIDESTREAM_MADE_UP_RUNTIME;
    config.operators.run = {"volume"};
    config.output.dir = (folder_ / "out").string();
    config.pipeline.threads = 2;
  }
  ~Case() {
    made_.compute = {};
    made_.on_session = {};
    made_.input_shape.clear();
    made_.output_shape.clear();
    made_.most_sessions = 1;
    fake_recover();
    fake_set_devices({std::size_t{4} << 30, std::size_t{4} << 30});
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  std::vector<std::string> volumes(std::size_t count) {
    std::vector<std::string> paths;
    std::mt19937 random(3);
    for (std::size_t i = 0; i < count; ++i) {
      NiftiHeader header;
      header.size = {9, 8, 7};
      std::vector<std::uint8_t> samples(static_cast<std::size_t>(header.voxels()));
      std::ranges::generate(samples, [&] { return static_cast<std::uint8_t>(random() >> 24); });
      paths.push_back((folder_ / ("scan" + std::to_string(i) + ".nii.gz")).string());
      write_nifti(paths.back(), header, ScalarType::uint8, false, std::as_bytes(std::span(samples)));
    }
    return paths;
  }

  RunResult run(const std::vector<std::string>& paths) {
    RunControl control;
    return run(paths, control);
  }

  RunResult run(const std::vector<std::string>& paths, RunControl& control) {
    const VolumeNetworks networks(config);
    check_budget(config, networks);
    least_free_ = gpu_bytes;
    measured_ = devices_of(made_.loaded);
    made_.loaded.clear();
    return run_volumes(config, networks, paths, control, longest_wait);
  }

  /// Labels of a volume that was computed.
  std::vector<float> labels(std::size_t i) const {
    NiftiFile file(config.output.dir + "/images/scan" + std::to_string(i) + ".labels.nii.gz");
    std::vector<float> values(static_cast<std::size_t>(file.header().voxels()));
    file.read(values);
    return values;
  }

  /// Devices that loaded networks in the last run, and before it to measure them.
  std::set<std::string> used() { return devices_of(made_.loaded); }
  const std::set<std::string>& measured() const { return measured_; }

  MadeUpRuntime& made() { return made_; }
  std::size_t least_free() const { return least_free_; }

  Config config;
  std::chrono::milliseconds longest_wait = std::chrono::minutes(10);
  std::atomic<std::size_t> others = 0;    ///< bytes that other processes have of the first GPU
  std::atomic<int> loads_until_full = 0;  ///< until others have the rest of it; 0: never
  static constexpr const char* full = "Conv node 'stem': CUDA failure 2: out of memory ; GPU=0";

 private:
  static std::set<std::string> devices_of(const std::vector<MadeUpRuntime::Options>& loaded) {
    std::set<std::string> devices;
    for (const auto& options : loaded) devices.insert(options.contains("device_id") ? options.at("device_id") : "-");
    return devices;
  }

  TemporaryFolder folder_;
  MadeUpRuntime& made_;
  std::vector<std::size_t> free_;
  std::size_t least_free_ = gpu_bytes;
  std::set<std::string> measured_;
};

}  // namespace

TEST_CASE("networks of volumes run on all GPUs, to the labels of the CPU, and within their memory") {
  Case test;
  const auto paths = test.volumes(5);
  test.config.model.provider = ModelProvider::cpu;
  const RunResult host = test.run(paths);
  CHECK(host.failure.empty());
  CHECK(host.backend == "cpu");
  CHECK(test.used() == std::set<std::string>{"-"});
  std::vector<std::vector<float>> expected;
  for (std::size_t i = 0; i < paths.size(); ++i) expected.push_back(test.labels(i));

  test.config.model.provider = ModelProvider::automatic;
  // Room for all networks, and for two.
  for (const double fraction : {0.95, 0.26}) {
    test.config.gpu.memory_fraction = fraction;
    test.config.output.dir += "-gpu";
    const RunResult result = test.run(paths);
    CHECK(result.failure == "");
    CHECK(result.backend == "cuda");
    CHECK(result.devices == 2);
    CHECK(test.used() == std::set<std::string>{"0", "1"});
    CHECK(test.least_free() >= static_cast<std::size_t>(static_cast<double>(gpu_bytes) * (1.0 - fraction)));
    REQUIRE(result.slides.size() == paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      CHECK(result.slides[i].done);
      CHECK(test.labels(i) == expected[i]);
      CHECK(result.slides[i].backend == "cuda");
    }
  }
}

TEST_CASE("scores of classes become labels on the GPU, those of the CPU, and what isn't finite is told alike") {
  Case test(1);
  const auto paths = test.volumes(3);
  constexpr std::size_t voxels = 4 * 5 * 6;
  // One fragment after the other, so that the same one fails first.
  test.config.pipeline.threads = 1;
  test.config.model.sessions = 1;
  test.config.gpu.devices = {0};
  test.made().output_shape = {1, 5, 4, 5, 6};
  float odd_above = 1000.0F;
  test.made().compute = [&](const auto&, const std::string&, std::span<const float> in, std::span<float> out) {
    for (std::size_t i = 0; i < voxels; ++i) {
      // Of many voxels two channels are equal.
      for (std::size_t c = 0; c < 5; ++c) {
        out[c * voxels + i] = static_cast<float>(static_cast<std::size_t>(in[i]) * (c + 1) % 7);
      }
      if (in[i] > odd_above) out[3 * voxels + i] = std::numeric_limits<float>::quiet_NaN();
    }
  };
  std::vector<std::vector<float>> labels;
  std::vector<std::string> errors;
  for (const auto provider : {ModelProvider::cpu, ModelProvider::cuda}) {
    test.config.model.provider = provider;
    odd_above = 1000.0F;
    test.config.output.dir += "-next";
    const RunResult sound = test.run(paths);
    CHECK(sound.failure == "");
    for (std::size_t i = 0; i < paths.size(); ++i) {
      REQUIRE(sound.slides[i].done);
      labels.push_back(test.labels(i));
    }
    odd_above = 250.0F;
    test.config.output.dir += "-odd";
    const RunResult odd = test.run({paths.front()});
    REQUIRE(odd.slides.size() == 1);
    REQUIRE(!odd.slides[0].done);
    errors.push_back(odd.slides[0].failure.cause);
  }
  CHECK(std::set<float>(labels[0].begin(), labels[0].end()).size() > 2);
  for (std::size_t i = 0; i < paths.size(); ++i) CHECK(labels[i] == labels[i + paths.size()]);
  CHECK(errors[0].find("the network gives no finite number in channel 3 at z, y, x = ") != std::string::npos);
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("gpu.devices says which GPU has the networks, and the first one isn't loaded again once it was measured") {
  Case test(1);
  const auto paths = test.volumes(3);
  test.config.gpu.devices = {1};
  CHECK(test.run(paths).failure == "");
  CHECK(test.measured() == std::set<std::string>{"1"});
  CHECK(test.made().loaded.empty());
  test.config.gpu.devices = {};
  test.config.output.dir += "-both";
  CHECK(test.run(paths).devices == 2);
  CHECK(test.made().loaded.size() == 1);
  CHECK(test.used() == std::set<std::string>{"1"});
}

TEST_CASE("the first network is measured, and loaded again where its file was written since then") {
  Case test(1);
  test.config.gpu.devices = {1};
  for (const bool is_written : {false, true}) {
    CAPTURE(is_written);
    const VolumeNetworks networks(test.config);
    // An eighth more than was measured, up to a whole MiB.
    CHECK(networks.needs().front().loaded == 113 * mib);
    test.made().loaded.clear();
    if (is_written) std::ofstream(test.config.volume.networks + "/network-0.onnx", std::ios::app) << " again";
    networks.load(0);
    CHECK(test.made().loaded.size() == (is_written ? 1 : 0));
  }
}

TEST_CASE("a GPU without room for a network is refused before the run, and so is one that isn't there") {
  Case test;
  test.config.gpu.memory_fraction = 0.1;
  CHECK_THROWS_WITH_AS(test.run({}), doctest::Contains("raise gpu.memory_fraction"), ConfigError);
  test.config.gpu.devices = {5};
  test.config.pipeline.backend = Backend::cuda;
  CHECK_THROWS_WITH_AS(test.run({}), doctest::Contains("pipeline.backend = \"cuda\": none of gpu.devices is there"),
                       ConfigError);
  test.config.pipeline.backend = Backend::automatic;
  test.config.model.provider = ModelProvider::cuda;
  CHECK_THROWS_WITH_AS(test.run({}), doctest::Contains("model.provider = \"cuda\": none of"), ConfigError);
}

TEST_CASE("a GPU that is lost ends the run in one line, and one network's mistake costs one volume") {
  Case test;
  const auto paths = test.volumes(4);
  const auto good = test.made().compute;
  std::atomic<int> calls = 0;
  test.made().compute = [&](const auto& cuda, const std::string& file, std::span<const float> in,
                            std::span<float> out) {
    // The first three look at the memory that networks take.
    if (++calls == 20) throw std::runtime_error("no number");
    good(cuda, file, in, out);
  };
  const RunResult one = test.run(paths);
  CHECK(one.failure == "");
  CHECK(std::ranges::count_if(one.slides, [](const SlideResult& slide) { return !slide.done; }) == 1);
  calls = 0;
  test.config.output.dir += "-lost";
  test.made().compute = [&](const auto& cuda, const std::string& file, std::span<const float> in,
                            std::span<float> out) {
    if (++calls == 20) {
      fake_fail_call(0, FakeFailure::for_ever);
      throw std::runtime_error("CUDA failure 719");
    }
    good(cuda, file, in, out);
  };
  const RunResult lost = test.run(paths);
  CHECK(lost.failure.find("unspecified launch failure") != std::string::npos);
  CHECK(lost.failure.find('\n') == std::string::npos);
  CHECK(lost.slides.size() < paths.size());
}

TEST_CASE("a GPU that others fill during a run makes fragments wait, to the same labels") {
  Case test;
  const auto paths = test.volumes(3);
  test.config.gpu.devices = {0};
  CHECK(test.run(paths).failure == "");
  std::vector<std::vector<float>> expected;
  for (std::size_t i = 0; i < paths.size(); ++i) expected.push_back(test.labels(i));
  const auto good = test.made().compute;
  std::atomic<bool> is_full = false;
  std::atomic<int> calls = 0;
  // Networks find it full when the rest is loaded, or fragments do, which of the library's messages there is.
  for (const std::string says : {"", Case::full, "Failed to allocate memory for requested buffer of size 4096"}) {
    CAPTURE(says);
    test.config.output.dir += "-next";
    calls = 0;
    std::mutex mutex;
    std::vector<std::string> lines;
    RunControl control;
    std::atomic<bool> has_begun = false;
    control.on_start = [&](const std::string&) {
      if (!has_begun.exchange(true) && says.empty()) test.loads_until_full = 3;
    };
    control.on_warning = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      if (line.find("voxel") == std::string::npos) lines.push_back(line);
      if (line.starts_with("GPU ")) is_full = false;
    };
    test.made().compute = [&](const auto& cuda, const std::string& file, std::span<const float> in,
                              std::span<float> out) {
      if (has_begun && ++calls == 9 && !says.empty()) is_full = true;
      if (is_full) throw std::runtime_error(says);
      good(cuda, file, in, out);
    };
    const RunResult result = test.run(paths, control);
    test.others = 0;
    test.loads_until_full = 0;
    CHECK(result.failure == "");
    REQUIRE(result.slides.size() == paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      REQUIRE_MESSAGE(result.slides[i].done, result.slides[i].failure.cause);
      CHECK(test.labels(i) == expected[i]);
    }
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("GPU 0 is full, and fragments wait for its memory: "));
    CHECK(lines[0].find('\n') == std::string::npos);
  }
}

TEST_CASE("a GPU that stays full without anything of the run fails its volumes, or others do its work") {
  for (const bool is_alone : {true, false}) {
    CAPTURE(is_alone);
    Case test;
    const auto paths = test.volumes(3);
    if (is_alone) test.config.gpu.devices = {0};
    test.longest_wait = std::chrono::milliseconds(0);
    const auto good = test.made().compute;
    std::atomic<bool> is_full = false;
    RunControl control;
    control.on_start = [&](const std::string&) { is_full = true; };
    test.made().compute = [&](const auto& cuda, const std::string& file, std::span<const float> in,
                              std::span<float> out) {
      if (is_full && cuda.at("device_id") == "0") throw std::runtime_error(Case::full);
      good(cuda, file, in, out);
    };
    const RunResult result = test.run(paths, control);
    CHECK(result.failure == "");
    REQUIRE(result.slides.size() == paths.size());
    for (const SlideResult& slide : result.slides) {
      REQUIRE(slide.done == !is_alone);
      if (slide.done) continue;
      CHECK(slide.failure.stage == "compute");
      CHECK(slide.failure.cause.ends_with(std::string(": GPU 0 stays full: ") + Case::full));
    }
  }
}

TEST_CASE("a GPU that stayed full takes part again when it has room") {
  Case test(1);
  const auto paths = test.volumes(4);
  test.longest_wait = std::chrono::milliseconds(0);
  const auto good = test.made().compute;
  std::atomic<bool> is_full = false;
  std::atomic<int> by_first = 0;
  std::mutex mutex;
  std::vector<std::string> lines;
  RunControl control;
  std::atomic<bool> has_begun = false;
  control.on_start = [&](const std::string&) {
    if (has_begun.exchange(true)) return;
    by_first = 0;
    is_full = true;
  };
  control.on_warning = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    if (!line.starts_with("GPU ")) return;
    lines.push_back(line);
    if (line.find("stays full") != std::string::npos) is_full = false;
  };
  test.made().compute = [&](const auto& cuda, const std::string& file, std::span<const float> in,
                            std::span<float> out) {
    const bool is_first = cuda.at("device_id") == "0";
    if (is_first && is_full) throw std::runtime_error(Case::full);
    by_first += is_first ? 1 : 0;
    // The other one leaves fragments for it.
    for (int i = 0; is_full && i < 60'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    good(cuda, file, in, out);
  };
  const RunResult result = test.run(paths, control);
  CHECK(result.failure == "");
  REQUIRE(result.slides.size() == paths.size());
  for (const SlideResult& slide : result.slides) CHECK(slide.done);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("GPU 0 is full, and fragments wait for its memory: "));
  CHECK(lines[1] == "GPU 0 stays full, and others compute until it has room");
  CHECK(lines[2] == "GPU 0 has room again");
  CHECK(by_first > 0);
}

TEST_CASE("memory of a GPU that isn't there is told from a GPU that is lost") {
  Case test;
  // No address space has so much.
  CHECK_THROWS_AS(runtime::cuda::DeviceMemory(std::size_t{1} << 60), runtime::DeviceFullError);
  fake_fail_call(0, FakeFailure::for_ever);
  bool is_full = false;
  try {
    const runtime::cuda::DeviceMemory memory(16);
  } catch (const CudaError& error) {
    is_full = dynamic_cast<const runtime::DeviceFullError*>(&error) != nullptr;
    CHECK(std::string(error.what()).find("cudaMalloc") != std::string::npos);
  }
  CHECK_FALSE(is_full);
}

TEST_CASE("a run over volumes tells how far it is, and at its end all") {
  Case test(1);
  // 504 voxels by 27 fragments, and by 8.
  for (const std::int64_t along : {3, 2}) {
    test.config.volume.grid = {along, along, along};
    test.config.output.dir += "-next";
    auto paths = test.volumes(3);
    paths.push_back(paths.front() + ".gone");
    std::vector<Progress> told;
    RunControl control;
    control.on_progress = [&](const Progress& progress) { told.push_back(progress); };
    CHECK(test.run(paths, control).failure == "");
    REQUIRE(!told.empty());
    for (std::size_t i = 1; i < told.size(); ++i) {
      CHECK(told[i].slides_done >= told[i - 1].slides_done);
      CHECK(told[i].pixels >= told[i - 1].pixels);
      CHECK(told[i].pixels <= told[i].pixels_started);
      CHECK(told[i].bytes_read >= told[i - 1].bytes_read);
      CHECK(told[i].bytes_written >= told[i - 1].bytes_written);
      CHECK(told[i].seconds >= told[i - 1].seconds);
    }
    const Progress& last = told.back();
    CHECK(last.slides_total == 4);
    CHECK(last.slides_done == 3);
    CHECK(last.slides_failed == 1);
    CHECK(last.pixels_started == 3 * 504);
    CHECK(last.pixels == 3 * 504);
    CHECK(last.bytes_read > 0);
    CHECK(last.bytes_written > 0);
    CHECK(!last.busiest_stage.empty());
  }
}

TEST_CASE("input.max_seconds bounds the reading of a volume, and a stop that comes then leaves it for the next start") {
  Case test(1);
  const auto paths = test.volumes(1);
  test.config.input.max_seconds = 1;
  RunControl slow;
  // Volumes without geometry are warned of before their samples are read.
  slow.on_warning = [](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(1100)); };
  const RunResult late = test.run(paths, slow);
  REQUIRE(late.slides.size() == 1);
  CHECK(late.slides[0].failure.stage == "read");
  CHECK(late.slides[0].failure.cause == "reading takes longer than input.max_seconds = 1");
  RunControl stopped;
  stopped.on_warning = [&stopped](const std::string&) { stopped.request_stop(); };
  test.config.output.dir += "-stopped";
  const RunResult left = test.run(paths, stopped);
  CHECK(left.interrupted);
  CHECK(left.slides.empty());
}
