#include "stages/gpu_device.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>

#include <slidestream/error.hpp>

#include "operators/spectrum/window_classes.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/machine.hpp"
#include "runtime/slot_preparation.hpp"

namespace slidestream {

using runtime::cuda::DeviceArena;
using runtime::cuda::DeviceScope;

namespace {

/// The spectrum is the only one that devices compute.
constexpr std::size_t the_operator = 0;

}  // namespace

GpuDevice::GpuDevice(RunContext& context, const runtime::cuda::Device& device,
                     std::vector<std::unique_ptr<cuda::WindowEngine>> engines, const DeviceLayout& layout)
    : context_(context),
      device_(device),
      layout_(layout),
      split_(split_of(context.config.analysis)),
      memory_(layout.total()),
      decode_completion_(device.ordinal, device.numa_node),
      completion_(device.ordinal, device.numa_node) {
  for (std::unique_ptr<cuda::WindowEngine>& engine : engines) {
    compute_streams_.push_back(std::make_unique<ComputeStream>());
    compute_streams_.back()->engine = std::move(engine);
    compute_streams_.back()->scratch = memory_.take(layout.scratch);
  }
  for (std::size_t i = 0; i < layout.slots + 1; ++i) {
    carries_.push_back(std::make_unique<CarryBuffer>());
    carries_.back()->memory = memory_.take(layout.carry);
    free_carries_.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < layout.slots; ++i) {
    SlotMemory memory;
    memory.plane = memory_.take(layout.plane);
    memory.results = memory_.take(layout.result_bytes());
    memory.compressed = memory_.take(layout.compressed);
    memory.scratch = memory_.take(layout.decode_scratch);
    memory.host = runtime::HostMemory(layout.slot_host_bytes());
    runtime::place_on_node(memory.host.bytes(), device.numa_node);
    slot_memory_.push_back(std::move(memory));
  }
  slots_.resize(layout.slots);
}

void GpuDevice::make_slot(std::size_t index) {
  const SlotMemory& memory = slot_memory_[index];
  auto slot = std::make_unique<DeviceSlot>();
  slot->plane = memory.plane;
  slot->results = memory.results;
  slot->host_results = memory.host.bytes().first(layout_.result_bytes());
  if (layout_.compressed > 0) {
    slot->decoder =
        std::make_unique<SlotDecoder>(layout_.tiles, memory.compressed, memory.scratch,
                                      memory.host.bytes().last(DeviceArena::aligned(layout_.decode_pinned)));
  }
  slots_[index] = std::move(slot);
}

/// Slots of a lane. What is still under way reads and writes memory that goes away after it.
class GpuDevice::Pins final : public GpuSet::PinnedSlots {
 public:
  Pins(GpuDevice& device, runtime::SlotPool& slots, const GpuSet::Done& failed, const std::function<void()>& settled)
      : device_(device),
        slots_(slots),
        front_(pinned_front(slots.bytes_per_slot(), device.context_.pinned_front)),
        ranges_(slots.size()) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      runtime::place_on_node(slots.memory(i), device.device_.numa_node);
    }
    runtime::SlotPreparation::Steps steps;
    steps.besides = [&device](std::size_t index) { return device.slot_memory_[index].host.bytes(); };
    steps.begin = [&device] { runtime::run_near_node(device.device_.numa_node); };
    steps.complete = [this](std::size_t index) { pin_front(index); };
    steps.failed = failed;
    steps.settled = settled;
    preparation_.emplace(slots, front_, preparing_threads(device.context_.threads, device.context_.lanes),
                         std::move(steps));
    device_.pins_ = this;
  }
  ~Pins() override {
    preparation_.reset();
    device_.pins_ = nullptr;
    device_.finish();
    const auto unpin = [this] { ranges_.clear(); };
    device_.on_device(unpin);
  }

  bool want() override { return preparation_->want(); }
  void stop() noexcept override { preparation_->stop(); }

  const std::byte* boundary(std::size_t index) const { return slots_.memory(index).data() + front_; }

  void pin(const Batch& batch) {
    const bool compressed =
        batch.decode_on_device && batch.slide->slide->info().levels[batch.slide->level].codec == Codec::jpeg;
    if (!compressed || batch.compressed_end + static_cast<std::size_t>(slot_slack) > front_)
      pin_whole(batch.slot.index());
  }

  void pin_whole(std::size_t index) {
    if (front_ == slots_.bytes_per_slot() || ranges_[index].rest) return;
    const std::span<std::byte> rest = slots_.memory(index).subspan(front_);
    runtime::populate(rest);
    const DeviceScope scope(device_.device_.ordinal);
    ranges_[index].rest.emplace(rest);
  }

 private:
  struct Ranges {
    std::optional<runtime::cuda::PinnedRange> host;
    std::optional<runtime::cuda::PinnedRange> front;
    std::optional<runtime::cuda::PinnedRange> rest;  ///< its batch's alone: taken when one needs it
  };

  /// Its pages are there, and no other thread has to do with the slot.
  void pin_front(std::size_t index) {
    const DeviceScope scope(device_.device_.ordinal);
    device_.make_slot(index);
    ranges_[index].front.emplace(slots_.memory(index).first(front_));
    ranges_[index].host.emplace(device_.slot_memory_[index].host.bytes());
  }

  GpuDevice& device_;
  runtime::SlotPool& slots_;
  std::size_t front_;
  std::deque<Ranges> ranges_;
  std::optional<runtime::SlotPreparation> preparation_;
};

std::unique_ptr<GpuSet::PinnedSlots> GpuDevice::pin(runtime::SlotPool& slots, const GpuSet::Done& failed,
                                                    const std::function<void()>& settled) {
  return std::make_unique<Pins>(*this, slots, failed, settled);
}

void GpuDevice::pin(const Batch& batch) { pins_->pin(batch); }

GpuDevice::~GpuDevice() { finish(); }

void GpuDevice::on_device(const std::function<void()>& work) const noexcept {
  try {
    const DeviceScope scope(device_.ordinal);
    work();
  } catch (const CudaError&) {
    // A device that is lost.
    work();
  }
}

void GpuDevice::finish() noexcept {
  on_device([this] { wait_for_streams(); });
}

void GpuDevice::wait_for_streams() noexcept {
  SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(copy_stream_.get()));
  for (const auto& compute : compute_streams_) SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(compute->stream.get()));
  for (const auto& slot : slots_) {
    if (slot) SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(slot->decode_stream.get()));
  }
}

void GpuDevice::upload(Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  SLIDESTREAM_CUDA(cudaEventRecord(slot.copy_begun.get(), copy_stream_.get()));
  if (batch.decode_on_device) {
    slot.copied_bytes = slot.decoder->upload(batch, pins_->boundary(batch.slot.index()), copy_stream_.get());
  } else {
    const StripPlan& strip = batch.strip;
    slot.copied_bytes = static_cast<std::size_t>((strip.y1 - strip.y0) * batch.panel().pitch[luminance_plane]);
    copy_from_slot(own_rows(batch, slot), reinterpret_cast<const std::byte*>(batch.own_rows[luminance_plane]),
                   slot.copied_bytes, pins_->boundary(batch.slot.index()), copy_stream_.get());
  }
  SLIDESTREAM_CUDA(cudaEventRecord(slot.copied.get(), copy_stream_.get()));
  slot.copying = true;
}

std::byte* GpuDevice::own_rows(const Batch& batch, const DeviceSlot& slot) {
  return slot.plane.data() +
         (batch.strip.y0 - batch.strip.carry_in_y0[luminance_plane]) * batch.panel().pitch[luminance_plane];
}

void GpuDevice::decode(Batch& batch, const GpuSet::Done& done) {
  DeviceSlot& slot = slot_of(batch);
  try {
    const DeviceScope scope(device_.ordinal);
    const cudaStream_t stream = slot.decode_stream.get();
    SLIDESTREAM_CUDA(cudaStreamWaitEvent(stream, slot.copied.get()));
    SLIDESTREAM_CUDA(cudaEventRecord(slot.decode_begun.get(), stream));
    slot.decoding = !batch.skip();
    if (slot.decoding) slot.decoder->decode(batch, own_rows(batch, slot), stream);
    SLIDESTREAM_CUDA(cudaEventRecord(slot.decoded.get(), stream));
    decode_completion_.wait_for(slot.decoded.get(), [this, &batch, &slot, done](std::exception_ptr failure) {
      float decoding = 0.0F;
      if (!failure && cudaEventElapsedTime(&decoding, slot.decode_begun.get(), slot.decoded.get()) == cudaSuccess) {
        context_.device_decode.add_busy(std::chrono::duration<float, std::milli>(decoding));
        const auto pixels = (batch.strip.y1 - batch.strip.y0) * (batch.panel().x1 - batch.panel().x0);
        context_.device_decode.add(batch.tiles.size(), static_cast<std::uint64_t>(pixels));
      }
      if (!failure && slot.decoding) slot.decoder->check(batch);
      done(std::move(failure));
    });
    return;
  } catch (...) {
    // Nothing was handed over: the caller hears of it here.
    done(std::current_exception());
  }
}

void GpuDevice::patch(Batch& batch, const GpuSet::Done& done) {
  DeviceSlot& slot = slot_of(batch);
  try {
    const DeviceScope scope(device_.ordinal);
    // They stand at the slot's end.
    pins_->pin_whole(batch.slot.index());
    const std::byte* from = batch.slot.memory().data() + batch.patches_offset;
    std::byte* own = own_rows(batch, slot);
    const Level& level = batch.slide->slide->info().levels[batch.slide->level];
    const std::size_t end = batch.skip() ? batch.patched : batch.patched + batch.patching;
    for (std::size_t i = batch.patched; i < end; ++i, from += level.tile_width * level.tile_height) {
      const BatchTile& tile = batch.tiles[batch.flagged[i]];
      const auto width = static_cast<std::size_t>(tile.out[luminance_plane].width);
      SLIDESTREAM_CUDA(cudaMemcpy2DAsync(own + tile.place,
                                         static_cast<std::size_t>(batch.panel().pitch[luminance_plane]), from, width,
                                         width, static_cast<std::size_t>(tile.out[luminance_plane].height),
                                         cudaMemcpyHostToDevice, slot.decode_stream.get()));
    }
    SLIDESTREAM_CUDA(cudaEventRecord(slot.decoded.get(), slot.decode_stream.get()));
    decode_completion_.wait_for(slot.decoded.get(), done);
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

GpuDevice::ComputeStream& GpuDevice::stream_of(Chain& chain) {
  if (chain.device_stream < 0) chain.device_stream = static_cast<int>(next_stream_++ % compute_streams_.size());
  return *compute_streams_[static_cast<std::size_t>(chain.device_stream)];
}

std::byte* GpuDevice::carry_buffer(Chain& chain, cudaStream_t stream) {
  if (chain.device_carry < 0) {
    if (free_carries_.empty()) throw std::logic_error("internal: no carry buffer is free");
    chain.device_carry = free_carries_.back();
    free_carries_.pop_back();
    CarryBuffer& buffer = *carries_[static_cast<std::size_t>(chain.device_carry)];
    if (buffer.was_used) SLIDESTREAM_CUDA(cudaStreamWaitEvent(stream, buffer.released.get()));
  }
  return carries_[static_cast<std::size_t>(chain.device_carry)]->memory.data();
}

void GpuDevice::release_carry(Chain& chain, cudaStream_t stream) {
  if (chain.device_carry < 0) return;
  CarryBuffer& buffer = *carries_[static_cast<std::size_t>(chain.device_carry)];
  SLIDESTREAM_CUDA(cudaEventRecord(buffer.released.get(), stream));
  buffer.was_used = true;
  free_carries_.push_back(chain.device_carry);
  chain.device_carry = -1;
}

const std::uint8_t* GpuDevice::upload_classes(const Batch& batch, const DeviceSlot& slot, cudaStream_t stream) {
  if (!layout_.classes) return nullptr;
  const auto& classes =
      static_cast<const operators::WindowClasses&>(*batch.slide->parameters[context_.ranks[the_operator]]);
  const OutputRange& columns = batch.columns(the_operator);
  const OutputRange& rows = batch.rows(the_operator);
  std::byte* const on_host = slot.host_results.data() + layout_.classes_begin();
  std::byte* to = on_host;
  for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    for (std::int64_t column = columns.first; column < columns.first + columns.count; ++column) {
      *to++ = std::byte{classes.is_tissue(column, row)};
    }
  }
  std::byte* const on_device = slot.results.data() + layout_.classes_begin();
  SLIDESTREAM_CUDA(
      cudaMemcpyAsync(on_device, on_host, static_cast<std::size_t>(to - on_host), cudaMemcpyHostToDevice, stream));
  return reinterpret_cast<const std::uint8_t*>(on_device);
}

void GpuDevice::enqueue(Batch& batch, DeviceSlot& slot, ComputeStream& on) {
  const cudaStream_t stream = on.stream.get();
  const StripPlan& strip = batch.strip;
  const PanelPlan& panel = batch.panel();
  const Level& level = batch.slide->slide->info().levels[batch.slide->level];
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(rows * panel.pitch[luminance_plane]); };
  std::byte* plane = slot.plane.data();
  SLIDESTREAM_CUDA(cudaEventRecord(slot.compute_begun.get(), stream));
  if (strip.y0 > strip.carry_in_y0[luminance_plane]) {
    SLIDESTREAM_CUDA(cudaMemcpyAsync(plane, carry_buffer(*batch.chain, stream),
                                     bytes(strip.y0 - strip.carry_in_y0[luminance_plane]), cudaMemcpyDeviceToDevice,
                                     stream));
  }
  if (strip.y1 > strip.carry_out_y0[luminance_plane]) {
    // Carried rows lie right before the own ones: what is passed on is contiguous. The stream's order keeps the buffer
    // from being overwritten before it was read.
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(carry_buffer(*batch.chain, stream),
                        plane + bytes(strip.carry_out_y0[luminance_plane] - strip.carry_in_y0[luminance_plane]),
                        bytes(strip.y1 - strip.carry_out_y0[luminance_plane]), cudaMemcpyDeviceToDevice, stream));
  }
  const OutputRange& columns = batch.columns(the_operator);
  const OutputRange& rows = batch.rows(the_operator);
  if (rows.count > 0) {
    const WindowBlock block = {columns.first, columns.count, rows.first, rows.count};
    const cuda::DevicePlane view = {reinterpret_cast<const std::uint8_t*>(plane),
                                    panel.pitch[luminance_plane],
                                    panel.x0,
                                    strip.carry_in_y0[luminance_plane],
                                    panel.x1 - panel.x0,
                                    strip.y1 - strip.carry_in_y0[luminance_plane],
                                    level.width,
                                    level.height};
    auto* counts = reinterpret_cast<std::uint64_t*>(slot.results.data());
    const cuda::DeviceSums sums = {
        counts, counts + layout_.bins, reinterpret_cast<double*>(slot.results.data() + layout_.counts_bytes()),
        layout_.counters > 0 ? reinterpret_cast<std::int64_t*>(counts) + layout_.bins + 1 : nullptr,
        upload_classes(batch, slot, stream)};
    on.engine->enqueue(sums, view, block, on.scratch, stream);
    const std::size_t result_bytes = layout_.counts_bytes() + static_cast<std::size_t>(block.columns * block.rows) * 16;
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(slot.host_results.data(), slot.results.data(), result_bytes, cudaMemcpyDeviceToHost, stream));
  }
  slot.worked = true;
}

void GpuDevice::compute(Batch& batch, const GpuSet::Done& done) {
  DeviceSlot& slot = slot_of(batch);
  slot.worked = false;
  try {
    const DeviceScope scope(device_.ordinal);
    // Also for a batch that has no more work: its slot goes back after this.
    ComputeStream& on = stream_of(*batch.chain);
    if (slot.copying) SLIDESTREAM_CUDA(cudaStreamWaitEvent(on.stream.get(), slot.copied.get()));
    slot.copying = false;
    guarded(context_, "compute", batch, [&] { enqueue(batch, slot, on); });
    if (batch.last) release_carry(*batch.chain, on.stream.get());
    SLIDESTREAM_CUDA(cudaEventRecord(slot.computed.get(), on.stream.get()));
    completion_.wait_for(slot.computed.get(), [this, &batch, &slot, done](std::exception_ptr failure) {
      if (!failure && slot.worked) meter_compute(batch, slot);
      done(std::move(failure));
    });
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

void GpuDevice::meter_compute(const Batch& batch, const DeviceSlot& slot) {
  float copying = 0.0F;
  float computing = 0.0F;
  if (cudaEventElapsedTime(&copying, slot.copy_begun.get(), slot.copied.get()) == cudaSuccess) {
    context_.upload.add_busy(std::chrono::duration<float, std::milli>(copying));
    context_.upload.add(1, slot.copied_bytes);
  }
  if (cudaEventElapsedTime(&computing, slot.compute_begun.get(), slot.computed.get()) == cudaSuccess) {
    context_.compute.add_busy(std::chrono::duration<float, std::milli>(computing));
    const auto windows = static_cast<std::uint64_t>(batch.rows(the_operator).count * batch.columns(the_operator).count);
    const auto side = static_cast<std::uint64_t>(context_.config.analysis.window);
    context_.compute.add(windows, windows * side * side);
  }
  static_cast<void>(cudaGetLastError());
}

void GpuDevice::collect(Batch& batch) {
  const DeviceSlot& slot = slot_of(batch);
  const OutputRange& columns = batch.columns(the_operator);
  const OutputRange& rows = batch.rows(the_operator);
  if (rows.count == 0) return;
  const auto* counts = reinterpret_cast<const std::uint64_t*>(slot.host_results.data());
  const auto* moments = reinterpret_cast<const double*>(slot.host_results.data() + layout_.counts_bytes());
  std::copy_n(counts, layout_.bins, batch.sums.histogram.begin());
  batch.sums.clipped = counts[layout_.bins];
  const auto* counters = reinterpret_cast<const std::int64_t*>(counts) + layout_.bins + 1;
  batch.sums.counters.assign(counters, counters + layout_.counters);
  const auto* tissue = layout_.classes ? slot.host_results.data() + layout_.classes_begin() : nullptr;
  SpectrumSums of_tissue;
  const auto side = static_cast<std::uint64_t>(context_.config.analysis.window);
  WindowMap& map = batch.slide->result.map;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t column = 0; column < columns.count; ++column, moments += 2) {
      batch.sums.add_window(moments[0], moments[1], side * side);
      if (tissue != nullptr && *tissue++ != std::byte{0}) of_tissue.add_window(moments[0], moments[1], side * side);
      if (map.values.empty()) continue;
      const double mean = moments[0] / static_cast<double>(side * side);
      const double variance = moments[1] / static_cast<double>(side * side) - mean * mean;
      float* cell = map.values.data() + ((rows.first + row) * map.columns + columns.first + column) * 2;
      cell[0] = static_cast<float>(mean);
      cell[1] = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
    }
  }
  if (layout_.classes) count_tissue(batch.sums, of_tissue, split_);
}

}  // namespace slidestream
