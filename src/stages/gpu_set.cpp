#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include <slidestream/error.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "stages/gpu.hpp"
#include "stages/gpu_device.hpp"

namespace slidestream {
namespace {

/// The oldest architecture that the kernels are compiled for.
constexpr int oldest_major = 8;
/// Windows that a batch may complete at most: their moments are copied back, 16 bytes each.
constexpr std::size_t most_windows = std::size_t{4} << 20;

/// Tiles that a slot's decoder is ready for: as many as it would hold if they had so few bytes each, within limits.
constexpr std::size_t least_tile_bytes = 2048;
constexpr std::size_t least_tiles = 1024;
constexpr std::size_t most_tiles = std::size_t{1} << 18;

/// Compute streams of a device, where memory allows: small slides are computed side by side.
constexpr std::size_t most_compute_streams = 4;

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

/// Scratch for planes of up to `pixels`, whatever their shape.
std::size_t scratch_for(const cuda::WindowEngine& engine, std::size_t pixels, const AnalysisConfig& analysis) {
  std::size_t most = 0;
  for (const std::int64_t wide : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
    const std::int64_t width = std::max<std::int64_t>(wide, analysis.window);
    const std::int64_t height = std::max<std::int64_t>(static_cast<std::int64_t>(pixels) / width, analysis.window);
    const WindowBlock block = {0, (width - analysis.window) / analysis.stride + 1, 0,
                               (height - analysis.window) / analysis.stride + 1};
    most = std::max(most, engine.scratch_bytes(width, height, block));
  }
  return most;
}

/// Device memory that this configuration may take.
std::size_t allowed_memory(const Config& config) {
  std::size_t free = 0;
  std::size_t total = 0;
  SLIDESTREAM_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<std::size_t>(static_cast<double>(free) * config.gpu.memory_fraction);
}

DeviceLayout lay_out(const Config& config, std::size_t slots, std::size_t slot_bytes,
                     const cuda::WindowEngine& engine) {
  DeviceLayout layout;
  layout.slots = slots;
  layout.bins = static_cast<std::size_t>(config.analysis.bins);
  const auto with_plane = [&](std::size_t plane) {
    layout.plane = plane;
    layout.carry = std::max(slot_bytes / 4, plane / 16);
    const auto stride = static_cast<std::size_t>(config.analysis.stride);
    layout.windows = std::min(plane / (stride * stride) * 2 + 65536, most_windows);
    layout.scratch = scratch_for(engine, plane, config.analysis);
  };
  // Rows that were decoded on the CPU, and those carried, are no more than this.
  const std::size_t least = slot_bytes + slot_bytes / 4;
  with_plane(least);
  if (config.decode.device == DecodeDevice::cpu) return layout;
  layout.compressed = slot_bytes;
  layout.tiles.slot_bytes = slot_bytes;
  layout.tiles.tiles = std::clamp(slot_bytes / least_tile_bytes, least_tiles, most_tiles);
  layout.decode_scratch = SlotDecoder::scratch_bytes(layout.tiles);
  layout.decode_pinned = SlotDecoder::pinned_bytes(layout.tiles);
  // What is decoded on the device is many times larger than its compressed bytes: as much as a launch wants, if there
  // is memory for it.
  const std::size_t allowed = allowed_memory(config);
  const std::size_t wanted = device_batch_pixels + device_batch_pixels / 8;
  const auto with_streams = [&] {
    for (layout.streams = std::min(most_compute_streams, slots); layout.streams > 1; layout.streams /= 2) {
      if (layout.total() <= allowed) return true;
    }
    return layout.total() <= allowed;
  };
  for (std::size_t plane = std::max(least, std::min(wanted, 64 * slot_bytes)); plane > least; plane -= plane / 8) {
    with_plane(plane);
    if (with_streams()) return layout;
  }
  with_plane(least);
  with_streams();
  return layout;
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

class Gpus final : public GpuSet {
 public:
  Gpus(RunContext& context, const std::vector<int>& ordinals) : context_(context) {
    const Config& config = context.config;
    const auto depth = static_cast<std::size_t>(config.pipeline.queue_depth);
    const std::size_t memory = static_cast<std::size_t>(config.pipeline.memory_mib) << 20;
    const std::size_t slot_bytes = memory / (depth * ordinals.size()) / 4096 * 4096;
    const runtime::cuda::Devices all = runtime::cuda::find_devices();
    for (const int ordinal : ordinals) {
      const auto device = std::find_if(all.found.begin(), all.found.end(),
                                       [ordinal](const auto& found) { return found.ordinal == ordinal; });
      if (device == all.found.end()) throw CudaError("CUDA device " + std::to_string(ordinal) + " went away");
      const runtime::cuda::DeviceScope scope(ordinal);
      auto engine = cuda::make_window_engine(config.analysis);
      const DeviceLayout layout = lay_out(config, depth, slot_bytes, *engine);
      check_memory(config, *device, layout.total());
      if (devices_.empty()) {
        set_limits(slot_bytes, layout, *engine);
        description_ = device->name + ", " + engine->name();
        if (ordinals.size() > 1) description_ = std::to_string(ordinals.size()) + " x " + description_;
      }
      std::vector<std::unique_ptr<cuda::WindowEngine>> engines;
      engines.push_back(std::move(engine));
      while (engines.size() < layout.streams) engines.push_back(cuda::make_window_engine(config.analysis));
      devices_.push_back(std::make_unique<GpuDevice>(context, *device, std::move(engines), layout));
    }
  }

  const SlotLimits& limits() const noexcept override { return limits_; }
  std::string description() const override { return description_; }
  void adopt(std::size_t lane, runtime::SlotPool& slots) override { devices_[lane]->adopt(slots); }
  bool decodes(const Slide& slide, std::size_t level) const override {
    return device_decodes(context_.config, slide, level);
  }
  void prepare(Batch& batch) override { devices_[batch.lane]->prepare(batch); }
  void upload(Batch& batch) override { devices_[batch.lane]->upload(batch); }
  void decode(Batch& batch, Done done) override { devices_[batch.lane]->decode(batch, std::move(done)); }
  void patch(Batch& batch, Done done) override { devices_[batch.lane]->patch(batch, std::move(done)); }
  void compute(Batch& batch, Done done) override { devices_[batch.lane]->compute(batch, std::move(done)); }
  void collect(Batch& batch) override { devices_[batch.lane]->collect(batch); }

 private:
  void set_limits(std::size_t slot_bytes, const DeviceLayout& layout, const cuda::WindowEngine& engine) {
    limits_.slot_bytes = slot_bytes;
    limits_.carry_bytes = layout.carry;
    // `engine` outlives every plan: it belongs to the first device.
    limits_.fits = [slot_bytes, layout, &engine](const BatchNeeds& needs) {
      const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count); };
      const std::int64_t rows = needs.carried_rows + needs.rows;
      if (bytes(needs.carried_rows * needs.pitch) > layout.carry) return false;
      if (needs.decoded_on_device) {
        if (bytes(needs.tiles) > layout.tiles.tiles) return false;
        const DeviceTail tail = device_tail(slot_bytes, bytes(needs.tiles), needs.tile_pixels);
        if (bytes(needs.compressed_bytes + slot_slack) > tail.descriptors_offset) return false;
      } else if (bytes(needs.rows * needs.pitch + needs.compressed_bytes + slot_slack) > slot_bytes) {
        return false;
      }
      if (bytes(rows * needs.pitch) > layout.plane) return false;
      if (bytes(needs.window_columns) * bytes(needs.window_rows) > layout.windows) return false;
      const WindowBlock block = {0, needs.window_columns, 0, needs.window_rows};
      return engine.scratch_bytes(needs.width, rows, block) <= layout.scratch;
    };
  }

  RunContext& context_;
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

std::unique_ptr<GpuSet> make_gpu_set(RunContext& context, const std::vector<int>& devices) {
  return std::make_unique<Gpus>(context, devices);
}

}  // namespace slidestream
