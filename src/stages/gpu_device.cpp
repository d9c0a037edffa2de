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
#include "stages/slide_images.hpp"

namespace slidestream {

using runtime::cuda::DeviceArena;
using runtime::cuda::DeviceScope;

DeviceKernels::DeviceKernels(const Config& config, const Operators& operators) {
  for (const auto& op : operators) {
    if (image_of(*op)) {
      images.push_back(cuda::make_device_image_kernel(op->name(), config));
      if (images.back() == nullptr) throw ConfigError("the operator " + op->name() + " has no kernel for GPUs");
    } else {
      images.emplace_back();
      windows = cuda::make_window_engine(config.analysis);
    }
  }
}

std::size_t DeviceKernels::image_scratch(const Size& rows) const {
  std::size_t most = 0;
  for (const auto& image : images) {
    if (image != nullptr) most = std::max(most, image->scratch_bytes(rows));
  }
  return most;
}

GpuDevice::GpuDevice(RunContext& context, const runtime::cuda::Device& device,
                     std::vector<std::unique_ptr<DeviceKernels>> kernels, const DeviceLayout& layout)
    : context_(context),
      device_(device),
      layout_(layout),
      split_(split_of(context.config.analysis)),
      memory_(layout.total()),
      decode_completion_(device.ordinal, device.numa_node),
      completion_(device.ordinal, device.numa_node) {
  for (std::unique_ptr<DeviceKernels>& of_stream : kernels) {
    compute_streams_.push_back(std::make_unique<ComputeStream>());
    compute_streams_.back()->kernels = std::move(of_stream);
    compute_streams_.back()->scratch = memory_.take(layout.scratch);
  }
  for (std::size_t i = 0; i < layout.slots + 1; ++i) {
    carries_.push_back(std::make_unique<CarryBuffer>());
    carries_.back()->memory = memory_.take(layout.carry_bytes());
    free_carries_.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < layout.slots; ++i) {
    SlotMemory memory;
    // Luminance behind RGB, as their decoder has it.
    memory.planes[rgb_plane] = memory_.take(layout.plane[rgb_plane]);
    memory.planes[luminance_plane] = memory_.take(layout.plane[luminance_plane]);
    memory.band = memory_.take(layout.band);
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
  slot->planes = memory.planes;
  slot->band = memory.band;
  slot->results = memory.results;
  slot->host_results = memory.host.bytes().first(layout_.result_bytes());
  if (layout_.compressed > 0) {
    slot->decoder =
        std::make_unique<SlotDecoder>(layout_.tiles, memory.planes, memory.compressed, memory.scratch,
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
  SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(band_stream_.get()));
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
    const ByPlane<std::byte*> own = own_rows(batch, slot);
    slot.copied_bytes = 0;
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const auto bytes = static_cast<std::size_t>((batch.strip.y1 - batch.strip.y0) * batch.panel().pitch[plane]);
      if (bytes == 0) continue;
      copy_from_slot(own[plane], reinterpret_cast<const std::byte*>(batch.own_rows[plane]), bytes,
                     pins_->boundary(batch.slot.index()), copy_stream_.get());
      slot.copied_bytes += bytes;
    }
  }
  SLIDESTREAM_CUDA(cudaEventRecord(slot.copied.get(), copy_stream_.get()));
  slot.copying = true;
}

ByPlane<std::byte*> GpuDevice::own_rows(const Batch& batch, const DeviceSlot& slot) {
  ByPlane<std::byte*> rows{};
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    if (batch.panel().pitch[plane] > 0) rows[plane] = slot.planes[plane].data() + batch.own_offset(plane);
  }
  return rows;
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
    const ByPlane<std::byte*> own = own_rows(batch, slot);
    const std::size_t end = batch.skip() ? batch.patched : batch.patched + batch.patching;
    for (std::size_t i = batch.patched; i < end; ++i) {
      const BatchTile& tile = batch.tiles[batch.flagged[i]];
      for (std::size_t plane = 0; plane < plane_count; ++plane) {
        const HostPixels& out = tile.out[plane];
        if (own[plane] == nullptr) continue;
        SLIDESTREAM_CUDA(
            cudaMemcpy2DAsync(own[plane] + tile.place[plane], static_cast<std::size_t>(batch.panel().pitch[plane]),
                              out.data, static_cast<std::size_t>(out.pitch), out.row_bytes(),
                              static_cast<std::size_t>(out.height), cudaMemcpyHostToDevice, slot.decode_stream.get()));
      }
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

std::span<std::byte> GpuDevice::carry_buffer(Chain& chain, cudaStream_t stream) {
  if (chain.device_carry < 0) {
    if (free_carries_.empty()) throw std::logic_error("internal: no carry buffer is free");
    chain.device_carry = free_carries_.back();
    free_carries_.pop_back();
    CarryBuffer& buffer = *carries_[static_cast<std::size_t>(chain.device_carry)];
    if (buffer.was_used) SLIDESTREAM_CUDA(cudaStreamWaitEvent(stream, buffer.released.get()));
  }
  return carries_[static_cast<std::size_t>(chain.device_carry)]->memory;
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
      static_cast<const operators::WindowClasses&>(*batch.slide->parameters[context_.ranks[*context_.spectrum]]);
  const OutputRange& columns = batch.columns(*context_.spectrum);
  const OutputRange& rows = batch.rows(*context_.spectrum);
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

void GpuDevice::enqueue_carries(const Batch& batch, const DeviceSlot& slot, cudaStream_t stream) {
  const StripPlan& strip = batch.strip;
  std::size_t of_plane = 0;  // where a plane's part of a carry buffer begins
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(rows * batch.panel().pitch[plane]); };
    std::byte* const rows = slot.planes[plane].data();
    const std::size_t in = bytes(strip.y0 - strip.carry_in_y0[plane]);
    if (in > 0) {
      SLIDESTREAM_CUDA(cudaMemcpyAsync(rows, carry_buffer(*batch.chain, stream).data() + of_plane, in,
                                       cudaMemcpyDeviceToDevice, stream));
    }
    const std::size_t out = bytes(strip.y1 - strip.carry_out_y0[plane]);
    if (out > 0) {
      // Carried rows lie right before the own ones: what is passed on is contiguous. The stream's order keeps the
      // buffer from being overwritten before it was read.
      SLIDESTREAM_CUDA(cudaMemcpyAsync(carry_buffer(*batch.chain, stream).data() + of_plane,
                                       rows + bytes(strip.carry_out_y0[plane] - strip.carry_in_y0[plane]), out,
                                       cudaMemcpyDeviceToDevice, stream));
    }
    of_plane += DeviceLayout::aligned(layout_.carry[plane]);
  }
}

ConstPixelView<MemorySpace::device> GpuDevice::pixels_of(const Batch& batch, const DeviceSlot& slot,
                                                         std::size_t plane) {
  const Level& level = batch.slide->slide->info().levels[batch.slide->level];
  const PanelPlan& panel = batch.panel();
  const std::int64_t y0 = batch.strip.carry_in_y0[plane];
  return {slot.planes[plane].data(),
          panel.pitch[plane],
          {panel.x0, y0, panel.x1 - panel.x0, batch.strip.y1 - y0},
          {level.width, level.height},
          plane_formats[plane]};
}

void GpuDevice::enqueue_windows(const Batch& batch, const DeviceSlot& slot, ComputeStream& on) {
  const cudaStream_t stream = on.stream.get();
  const OutputRange& columns = batch.columns(*context_.spectrum);
  const OutputRange& rows = batch.rows(*context_.spectrum);
  const WindowBlock block = {columns.first, columns.count, rows.first, rows.count};
  const ConstPixelView<MemorySpace::device> pixels = pixels_of(batch, slot, luminance_plane);
  const cuda::DevicePlane view = {reinterpret_cast<const std::uint8_t*>(pixels.data),
                                  pixels.pitch,
                                  pixels.rect.x,
                                  pixels.rect.y,
                                  pixels.rect.width,
                                  pixels.rect.height,
                                  pixels.image.width,
                                  pixels.image.height};
  auto* counts = reinterpret_cast<std::uint64_t*>(slot.results.data());
  const cuda::DeviceSums sums = {
      counts, counts + layout_.bins, reinterpret_cast<double*>(slot.results.data() + layout_.counts_bytes()),
      layout_.counters > 0 ? reinterpret_cast<std::int64_t*>(counts) + layout_.bins + 1 : nullptr,
      upload_classes(batch, slot, stream)};
  on.kernels->windows->enqueue(sums, view, block, on.scratch, stream);
  const std::size_t result_bytes = layout_.counts_bytes() + static_cast<std::size_t>(block.columns * block.rows) * 16;
  SLIDESTREAM_CUDA(
      cudaMemcpyAsync(slot.host_results.data(), slot.results.data(), result_bytes, cudaMemcpyDeviceToHost, stream));
}

void GpuDevice::enqueue_image(const Batch& batch, const DeviceSlot& slot, std::size_t op, ComputeStream& on) {
  // As the band on the host, and copied there in one piece.
  const PixelView<MemorySpace::host>& band = batch.band->images[op];
  const PixelView<MemorySpace::device> out = {slot.band.data() + (band.data - batch.band->slot->memory().data()),
                                              band.pitch, band.rect, band.image, band.format};
  on.kernels->images[op]->enqueue(out, pixels_of(batch, slot, context_.needs[op].plane), on.scratch,
                                  batch.slide->parameters[context_.ranks[op]].get(), on.stream.get());
}

void GpuDevice::enqueue(Batch& batch, DeviceSlot& slot, ComputeStream& on) {
  SLIDESTREAM_CUDA(cudaEventRecord(slot.compute_begun.get(), on.stream.get()));
  enqueue_carries(batch, slot, on.stream.get());
  for (std::size_t op = 0; op < context_.operators.size(); ++op) {
    if (batch.rows(op).count == 0) continue;
    if (op == context_.spectrum) {
      enqueue_windows(batch, slot, on);
    } else {
      enqueue_image(batch, slot, op, on);
    }
  }
  slot.worked = true;
}

void GpuDevice::download_band(const Batch& batch, const DeviceSlot& slot, cudaStream_t computing) {
  SLIDESTREAM_CUDA(cudaEventRecord(slot.made.get(), computing));
  SLIDESTREAM_CUDA(cudaStreamWaitEvent(band_stream_.get(), slot.made.get()));
  if (slot.worked && batch.band->bytes > 0) {
    SLIDESTREAM_CUDA(cudaMemcpyAsync(batch.band->slot->memory().data(), slot.band.data(), batch.band->bytes,
                                     cudaMemcpyDeviceToHost, band_stream_.get()));
  }
  SLIDESTREAM_CUDA(cudaEventRecord(slot.computed.get(), band_stream_.get()));
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
    if (batch.band != nullptr) {
      download_band(batch, slot, on.stream.get());
    } else {
      SLIDESTREAM_CUDA(cudaEventRecord(slot.computed.get(), on.stream.get()));
    }
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
    for (std::size_t op = 0; op < context_.operators.size(); ++op) {
      const auto outputs = static_cast<std::uint64_t>(batch.rows(op).count * batch.columns(op).count);
      const auto side = static_cast<std::uint64_t>(context_.needs[op].footprint.window.width);
      context_.compute.add(outputs, outputs * side * side);
    }
  }
  static_cast<void>(cudaGetLastError());
}

void GpuDevice::collect(Batch& batch) {
  if (!context_.spectrum) return;
  const DeviceSlot& slot = slot_of(batch);
  const OutputRange& columns = batch.columns(*context_.spectrum);
  const OutputRange& rows = batch.rows(*context_.spectrum);
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
