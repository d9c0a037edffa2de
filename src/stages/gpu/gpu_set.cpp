#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <slidestream/error.hpp>

#include "operators/registry.hpp"
#include "planning/device_sizing.hpp"
#include "planning/staging_plan.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/machine.hpp"
#include "slide/file.hpp"
#include "stages/gpu/gpu_device.hpp"
#include "stages/gpu/gpu_set.hpp"

namespace slidestream {
namespace {

/// The oldest architecture that the kernels are compiled for.
constexpr int oldest_major = 8;

std::string gib(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

std::string numbers(const std::vector<runtime::cuda::Device>& devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + std::to_string(device.ordinal);
  return text;
}

/// `kernels` must outlive the sizing.
DeviceSizing sizing_of(const DeviceKernels& kernels, int ordinal) {
  DeviceSizing sizing;
  if (kernels.windows != nullptr) {
    sizing.windows = [&engine = *kernels.windows](std::int64_t width, std::int64_t height, std::int64_t columns,
                                                  std::int64_t rows) {
      return engine.scratch_bytes(width, height, {0, columns, 0, rows});
    };
  }
  sizing.images = [&kernels](const Size& rows) { return kernels.image_scratch(rows); };
  sizing.decoder = [ordinal](const TileLimits& limits) {
    const runtime::cuda::DeviceScope scope(ordinal);
    return SlotDecoder::scratch_bytes(limits);
  };
  return sizing;
}

/// Device memory that this configuration may take.
std::size_t allowed_memory(const Config& config) {
  std::size_t free = 0;
  std::size_t total = 0;
  SLIDESTREAM_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<std::size_t>(static_cast<double>(free) * config.gpu.memory_fraction);
}

/// \throws ConfigError when `needed` bytes are more than the configuration may take of what is free.
void check_memory(const Config& config, const runtime::cuda::Device& device, std::size_t needed) {
  std::size_t free = 0;
  std::size_t total = 0;
  SLIDESTREAM_CUDA(cudaMemGetInfo(&free, &total));
  const double fraction = config.gpu.memory_fraction;
  const auto allowed = static_cast<std::size_t>(static_cast<double>(free) * fraction);
  if (needed <= allowed) return;
  throw ConfigError("device " + std::to_string(device.ordinal) + " (" + device.name + "): this configuration needs " +
                    gib(needed) + " of its memory; " + gib(free) +
                    " are free, of which gpu.memory_fraction = " + std::to_string(fraction).substr(0, 4) + " allows " +
                    gib(allowed) + "; lower pipeline.memory_mib (now " + std::to_string(config.pipeline.memory_mib) +
                    ") or raise gpu.memory_fraction");
}

/// What fits every one of several devices, of which one may have less memory free, or another engine.
SlotLimits common_limits(std::vector<SlotLimits> all) {
  SlotLimits common = all.front();
  for (const SlotLimits& limits : all) common.carry_bytes = std::min(common.carry_bytes, limits.carry_bytes);
  common.makes_levels = [all](const Level& level, std::int64_t most_rows) {
    return std::ranges::all_of(all, [&](const SlotLimits& limits) { return limits.makes_levels(level, most_rows); });
  };
  common.fits = [all = std::move(all)](const BatchNeeds& needs) {
    return std::ranges::all_of(all, [&needs](const SlotLimits& limits) { return limits.fits(needs); });
  };
  return common;
}

runtime::cuda::Device device_of(const runtime::cuda::Devices& all, int ordinal) {
  const auto device = std::find_if(all.found.begin(), all.found.end(),
                                   [ordinal](const auto& found) { return found.ordinal == ordinal; });
  if (device == all.found.end()) throw CudaError("CUDA device " + std::to_string(ordinal) + " went away");
  return *device;
}

/// What the current device is to take. \throws ConfigError when it doesn't do.
DeviceLayout layout_of(const Config& config, const DeviceWork& work, const runtime::cuda::Device& device,
                       const HostSlots& host, const DeviceSizing& sizing) {
  const DeviceLayout layout = lay_out(config, work, host, sizing, allowed_memory(config));
  check_memory(config, device, layout.total());
  return layout;
}

/// Threads that pin output slots, in a run with so many threads. Half of the processors are left to those who work
/// meanwhile.
std::size_t pinning_threads(int threads) {
  constexpr int most = 8;
  return static_cast<std::size_t>(std::clamp(threads / 2, 1, most));
}

class OutputPinning final : public GpuSet::PinnedOutputs {
 public:
  OutputPinning(std::size_t threads, runtime::SlotPool& slots, GpuSet::Done failed, std::function<void()> ended)
      : slots_(slots), failed_(std::move(failed)), ended_(std::move(ended)), ranges_(slots.size()), working_(threads) {
    threads_.reserve(threads);
    try {
      while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      for (std::size_t missing = threads - threads_.size(); missing > 0; --missing) leave();
      join();
      throw;
    }
  }
  ~OutputPinning() override {
    stop();
    join();
  }

  void stop() noexcept override { stopped_.store(true); }

 private:
  void work() noexcept {
    try {
      for (std::size_t i = next_++; i < ranges_.size() && !stopped_.load(); i = next_++) {
        ranges_[i].emplace(slots_.memory(i), 1);
        slots_.make_ready(i);
      }
    } catch (...) {
      stop();
      failed_(std::current_exception());
    }
    leave();
  }
  void leave() noexcept {
    if (working_.fetch_sub(1) == 1) ended_();
  }
  void join() noexcept {
    for (std::thread& thread : threads_) thread.join();
  }

  runtime::SlotPool& slots_;
  GpuSet::Done failed_;
  std::function<void()> ended_;
  std::vector<std::optional<runtime::cuda::PinnedRange>> ranges_;
  std::atomic<std::size_t> next_{0};  ///< slot that no thread has taken
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> working_;  ///< threads
  std::vector<std::thread> threads_;
};

class Gpus final : public GpuSet {
 public:
  Gpus(RunContext& context, const std::vector<int>& ordinals) : context_(context) {
    const Config& config = context.config;
    const DeviceWork& work = work_ = device_work(config, context.operators, context.slides, ordinals.size());
    const HostSlots host = device_host_slots(config.pipeline, work, ordinals.size());
    const StagingPlan staging = staging_plan(config.gpu, runtime::last_cache_bytes(), ordinals.size());
    const runtime::cuda::Devices all = runtime::cuda::find_devices();
    std::vector<SlotLimits> limits;
    for (const int ordinal : ordinals) {
      const runtime::cuda::Device device = device_of(all, ordinal);
      const runtime::cuda::DeviceScope scope(ordinal);
      auto kernels = std::make_unique<DeviceKernels>(config, context.operators);
      const DeviceSizing sizing = sizing_of(*kernels, ordinal);
      const DeviceLayout layout = layout_of(config, work, device, host, sizing);
      if (devices_.empty()) {
        description_ = device.name;
        if (work.spectrum) description_ += std::string(", ") + kernels->windows->name();
        if (ordinals.size() > 1) description_ = std::to_string(ordinals.size()) + " x " + description_;
      }
      // The kernels outlive every plan: they belong to their device.
      limits.push_back(device_slot_limits(work, host, layout, sizing));
      std::vector<std::unique_ptr<DeviceKernels>> streams;
      streams.push_back(std::move(kernels));
      while (streams.size() < layout.streams)
        streams.push_back(std::make_unique<DeviceKernels>(config, context.operators));
      devices_.push_back(std::make_unique<GpuDevice>(context, device, std::move(streams), work, layout, staging));
    }
    limits_ = common_limits(std::move(limits));
  }

  const SlotLimits& limits() const noexcept override { return limits_; }
  std::string description() const override { return description_; }
  std::unique_ptr<PinnedOutputs> pin_outputs(runtime::SlotPool& slots, const Done& failed,
                                             const std::function<void()>& ended) override {
    return std::make_unique<OutputPinning>(pinning_threads(context_.threads), slots, failed, ended);
  }
  void finish(std::size_t lane) noexcept override { devices_[lane]->finish(); }
  runtime::StagingRing& staging(std::size_t lane) noexcept override { return devices_[lane]->staging(); }
  void begin(const Batch& batch) override { devices_[batch.lane]->begin(batch); }
  void send(const Batch& batch, runtime::StagingRing::Chunk&& chunk, std::size_t from, std::size_t to,
            std::size_t bytes) override {
    devices_[batch.lane]->send(batch, std::move(chunk), from, to, bytes);
  }
  std::size_t begin_sending(const Batch& batch) override { return devices_[batch.lane]->begin_sending(batch); }
  std::size_t begin_patching(const Batch& batch) override { return devices_[batch.lane]->begin_patching(batch); }
  bool send_piece(const Batch& batch) override { return devices_[batch.lane]->send_piece(batch); }
  bool decodes(const Slide& slide, std::size_t level) const override {
    return device_decodes(context_.config, work_, slide, level);
  }
  runtime::cuda::DeviceFileSupport device_files() const override { return runtime::cuda::device_file_support(); }
  std::shared_ptr<const runtime::cuda::DeviceFile> device_file(const File& file) const override {
    const int direct = file.direct_descriptor();
    return std::make_shared<const runtime::cuda::DeviceFile>(direct >= 0 ? direct : file.descriptor());
  }
  bool read(const Batch& batch, const ReadChunk& chunk) override { return devices_[batch.lane]->read(batch, chunk); }
  void fetch_headers(Batch& batch) override { devices_[batch.lane]->fetch_headers(batch); }
  void prepare(Batch& batch) override { devices_[batch.lane]->prepare(batch); }
  void upload(Batch& batch) override { devices_[batch.lane]->upload(batch); }
  void decode(Batch& batch, const Done& done) override { devices_[batch.lane]->decode(batch, done); }
  void patch(Batch& batch, const Done& done) override { devices_[batch.lane]->patch(batch, done); }
  void compute(Batch& batch, const Done& done) override { devices_[batch.lane]->compute(batch, done); }
  void pack(Batch& batch) override { devices_[batch.lane]->pack(batch); }
  void download(const Batch& batch, const Parcel& parcel, const Done& done) override {
    devices_[batch.lane]->download(batch, parcel, done);
  }
  void collect(Batch& batch) override { devices_[batch.lane]->collect(batch); }

 private:
  RunContext& context_;
  DeviceWork work_;
  SlotLimits limits_;
  std::string description_;
  std::vector<std::unique_ptr<GpuDevice>> devices_;
};

std::string why_unfit(const runtime::cuda::Device& device) {
  return device.name + " has compute capability " + std::to_string(device.major) + "." + std::to_string(device.minor) +
         ", this program needs " + std::to_string(oldest_major) + ".0 or newer";
}

}  // namespace

GpuChoice choose_gpus(const Config& config) {
  const runtime::cuda::Devices devices = runtime::cuda::find_devices();
  GpuChoice choice;
  if (devices.found.empty()) {
    choice.why_none = devices.why_none;
    return choice;
  }
  const std::vector<int>& wanted = config.gpu.devices;
  for (const int ordinal : wanted) {
    const auto found = std::find_if(devices.found.begin(), devices.found.end(),
                                    [ordinal](const auto& device) { return device.ordinal == ordinal; });
    if (found == devices.found.end()) {
      throw ConfigError("gpu.devices: " + std::to_string(ordinal) + " was asked for; this machine has " +
                        numbers(devices.found));
    }
    if (found->major < oldest_major) throw ConfigError("gpu.devices: " + why_unfit(*found));
    choice.devices.push_back(ordinal);
  }
  if (!wanted.empty()) return choice;
  for (const auto& device : devices.found) {
    if (device.major >= oldest_major) choice.devices.push_back(device.ordinal);
  }
  if (choice.devices.empty()) choice.why_none = why_unfit(devices.found.front());
  return choice;
}

DeviceFacts facts_of_device(const Config& config, const DeviceWork& work, int ordinal) {
  const runtime::cuda::DeviceScope scope(ordinal);
  DeviceFacts facts;
  for (const runtime::cuda::Device& device : runtime::cuda::find_devices().found) {
    if (device.ordinal == ordinal) facts.name = device.name;
  }
  const auto kernels = std::make_shared<DeviceKernels>(config, readers_of(operators::make_operators(config)));
  if (work.spectrum) facts.engine = kernels->windows->name();
  facts.sizing = sizing_of(*kernels, ordinal);
  // The forecast has no other owner for them.
  facts.sizing.decoder = [kernels, decoder = facts.sizing.decoder](const TileLimits& limits) {
    return decoder(limits);
  };
  std::size_t total = 0;
  SLIDESTREAM_CUDA(cudaMemGetInfo(&facts.free, &total));
  return facts;
}

void check_gpus(const Config& config, const std::vector<int>& devices) {
  const runtime::cuda::Devices all = runtime::cuda::find_devices();
  const Operators operators = readers_of(operators::make_operators(config));
  const DeviceWork work = device_work(config, operators, 1, devices.size());
  for (const int ordinal : devices) {
    const runtime::cuda::DeviceScope scope(ordinal);
    const DeviceKernels kernels(config, operators);
    layout_of(config, work, device_of(all, ordinal), device_host_slots(config.pipeline, work, devices.size()),
              sizing_of(kernels, ordinal));
  }
}

void wake_gpus(const std::vector<int>& devices) noexcept {
  const auto wake = [](int ordinal) noexcept {
    try {
      const runtime::cuda::DeviceScope scope(ordinal);
      SLIDESTREAM_CUDA_NOEXCEPT(cudaFree(nullptr));
    } catch (const CudaError&) {
      // Told where the device is used.
    }
  };
  try {
    // Each is waited for at the end of the block, also after an exception.
    std::vector<std::future<void>> works;
    works.reserve(devices.size());
    for (const int device : devices) works.push_back(std::async(std::launch::async, wake, device));
  } catch (const std::exception&) {
    // What isn't ready now gets ready when it is used.
  }
}

std::unique_ptr<GpuSet> make_gpu_set(RunContext& context, const std::vector<int>& devices) {
  return std::make_unique<Gpus>(context, devices);
}

}  // namespace slidestream
