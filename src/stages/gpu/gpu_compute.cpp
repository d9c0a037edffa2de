// The part of `GpuDevice` from planes to sums and bands.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <slidestream/error.hpp>

#include "cuda/tiles/area.hpp"
#include "operators/spectrum/window_classes.hpp"
#include "runtime/cuda/check.hpp"
#include "stages/gpu/gpu_device.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

using runtime::cuda::DeviceScope;

DeviceKernels::DeviceKernels(const Config& config, const Operators& operators) {
  for (const auto& op : operators) {
    if (op->network() != nullptr) {
      Config rgb = config;
      rgb.identity.colour = PixelColour::rgb;
      images.push_back(cuda::make_device_image_kernel("identity", rgb));
    } else if (image_of(*op)) {
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

GpuDevice::ComputeStream& GpuDevice::stream_of(Chain& chain) {
  if (chain.device_stream < 0) chain.device_stream = static_cast<int>(next_stream_++ % compute_streams_.size());
  return *compute_streams_[static_cast<std::size_t>(chain.device_stream)];
}

GpuDevice::CarryBuffer& GpuDevice::carry_buffer(Chain& chain, cudaStream_t stream) {
  if (chain.device_carry < 0) {
    if (free_carries_.empty()) throw std::logic_error("internal: no carry buffer is free");
    chain.device_carry = free_carries_.back();
    free_carries_.pop_back();
    CarryBuffer& buffer = *carries_[static_cast<std::size_t>(chain.device_carry)];
    if (buffer.was_used) SLIDESTREAM_CUDA(cudaStreamWaitEvent(stream, buffer.released.get()));
  }
  return *carries_[static_cast<std::size_t>(chain.device_carry)];
}

void GpuDevice::release_carry(Chain& chain, cudaStream_t stream) {
  if (chain.device_carry < 0) return;
  CarryBuffer& buffer = *carries_[static_cast<std::size_t>(chain.device_carry)];
  SLIDESTREAM_CUDA(cudaEventRecord(buffer.released.get(), stream));
  buffer.was_used = true;
  buffer.pyramids.reset();
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
    const PanelPlan& panel = batch.panel();
    const auto pitch = static_cast<std::size_t>(panel.pitch[plane]);
    const std::size_t pixels =
        static_cast<std::size_t>(panel.x1 - panel.x0) * static_cast<std::size_t>(plane_formats[plane].pixel_bytes());
    // Pixels alone: nobody has written what is behind a row's last one.
    const auto copy = [&](std::byte* to, const std::byte* from, std::int64_t rows) {
      SLIDESTREAM_CUDA(cudaMemcpy2DAsync(to, pitch, from, pitch, pixels, static_cast<std::size_t>(rows),
                                         cudaMemcpyDeviceToDevice, stream));
    };
    std::byte* const rows = slot.planes[plane].data();
    const std::int64_t in = pitch > 0 ? strip.y0 - strip.carry_in_y0[plane] : 0;
    if (in > 0) copy(rows, carry_buffer(*batch.chain, stream).memory.data() + of_plane, in);
    const std::int64_t out = pitch > 0 ? strip.y1 - strip.carry_out_y0[plane] : 0;
    if (out > 0) {
      // Carried rows lie right before the own ones: what is passed on is contiguous. The stream's order keeps the
      // buffer from being overwritten before it was read.
      copy(carry_buffer(*batch.chain, stream).memory.data() + of_plane,
           rows + static_cast<std::size_t>(strip.carry_out_y0[plane] - strip.carry_in_y0[plane]) * pitch, out);
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
  if (band.rect.height == 0) return;  // larger pixels, none of which is complete
  const PixelView<MemorySpace::device> out = {slot.band.data() + (band.data - batch.band->slot->memory().data()),
                                              band.pitch, band.rect, band.image, band.format};
  if (const NetworkPlan* const plan = batch.slide->images->resampled_on_devices(op)) {
    cuda::make_areas(out, pixels_of(batch, slot, rgb_plane), plan->factor, on.stream.get());
  } else {
    run_kernel(batch, slot, op, out, on);
  }
}

void GpuDevice::run_kernel(const Batch& batch, const DeviceSlot& slot, std::size_t op,
                           const PixelView<MemorySpace::device>& out, ComputeStream& on) {
  on.kernels->images[op]->enqueue(out, pixels_of(batch, slot, context_.needs[op].plane), on.scratch,
                                  batch.slide->parameters[context_.ranks[op]].get(), on.stream.get());
}

void GpuDevice::enqueue_pyramids(const Batch& batch, const DeviceSlot& slot, ComputeStream& on) {
  const cudaStream_t stream = on.stream.get();
  CarryBuffer& buffer = carry_buffer(*batch.chain, stream);
  if (buffer.pyramids == nullptr) {
    const Level& level = batch.slide->slide->info().levels[batch.slide->level];
    buffer.pyramids = std::make_unique<ChainPyramids>(images_, level, buffer.kept);
  }
  slot.pyramids->begin();
  for (std::size_t image = 0; image < images_.size(); ++image) {
    const std::size_t op = images_[image].op;
    if (batch.rows(op).count == 0) continue;
    const PixelView<MemorySpace::device> out = slot.pyramids->lay_out(image, *buffer.pyramids, batch.rows(op), stream);
    run_kernel(batch, slot, op, out, on);
    slot.pyramids->finish(image, *buffer.pyramids, *on.encoders, stream);
  }
  slot.pyramids->fetch_words(stream);
}

void GpuDevice::enqueue(Batch& batch, DeviceSlot& slot, ComputeStream& on) {
  SLIDESTREAM_CUDA(cudaEventRecord(slot.compute_begun.get(), on.stream.get()));
  enqueue_carries(batch, slot, on.stream.get());
  for (std::size_t op = 0; op < context_.operators.size(); ++op) {
    if (batch.rows(op).count == 0 || batch.slide->lacks(context_.ranks[op])) continue;
    if (op == context_.spectrum) {
      enqueue_windows(batch, slot, on);
    } else if (!batch.slide->levels_on_device) {
      enqueue_image(batch, slot, op, on);
    }
  }
  if (batch.slide->levels_on_device) enqueue_pyramids(batch, slot, on);
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
  try {
    const DeviceScope scope(device_.ordinal);
    // Also for a batch that has no more work: its slot goes back after this.
    ComputeStream& on = stream_of(*batch.chain);
    if (slots_[batch.slot.index()] == nullptr) {
      // It was left before it used its slot, which nobody has used.
      if (batch.last) release_carry(*batch.chain, on.stream.get());
      return done({});
    }
    DeviceSlot& slot = slot_of(batch);
    slot.worked = false;
    const std::size_t sent = slot.sent_bytes.exchange(0);
    if (sent > 0) {
      // Of one that was left in between, too: what was sent of it comes before what the slot is used for next.
      if (batch.skip()) staging_.record(slot.copied.get());
      SLIDESTREAM_CUDA(cudaStreamWaitEvent(on.stream.get(), slot.copied.get()));
    }
    guarded(context_, "compute", batch, [&] { enqueue(batch, slot, on); });
    if (batch.last) release_carry(*batch.chain, on.stream.get());
    if (batch.band != nullptr) {
      download_band(batch, slot, on.stream.get());
    } else {
      SLIDESTREAM_CUDA(cudaEventRecord(slot.computed.get(), on.stream.get()));
    }
    auto& completion = compute_completions_[static_cast<std::size_t>(batch.chain->device_stream)];
    completion.wait_for(slot.computed.get(), [this, &batch, &slot, sent, done](std::exception_ptr failure) {
      if (!failure && slot.worked) meter_compute(batch, slot, sent);
      done(std::move(failure));
    });
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

void GpuDevice::download(const Batch& batch, const Parcel& parcel, const GpuSet::Done& done) {
  const DeviceSlot& slot = slot_of(batch);
  try {
    const DeviceScope scope(device_.ordinal);
    if (!batch.skip()) copy_parcel(parcel, band_stream_.get());
    SLIDESTREAM_CUDA(cudaEventRecord(slot.fetched.get(), band_stream_.get()));
    band_completion_.wait_for(slot.fetched.get(), done);
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

void GpuDevice::meter_compute(const Batch& batch, const DeviceSlot& slot, std::size_t sent) {
  context_.upload.add(1, sent);
  try {
    // The ring tells what its copies took when it takes chunks back.
    staging_.ring().reclaim();
  } catch (const CudaError&) {
    // Told to whoever uses the ring next.
  }
  float computing = 0.0F;
  if (cudaEventElapsedTime(&computing, slot.compute_begun.get(), slot.computed.get()) == cudaSuccess) {
    context_.compute.add_busy(std::chrono::duration<float, std::milli>(computing));
    for (std::size_t op = 0; op < context_.operators.size(); ++op) {
      if (batch.slide->lacks(context_.ranks[op])) continue;
      const auto outputs = static_cast<std::uint64_t>(batch.rows(op).count * batch.columns(op).count);
      const auto side = static_cast<std::uint64_t>(context_.needs[op].footprint.window.width);
      context_.compute.add(outputs, outputs * side * side);
    }
  }
  static_cast<void>(cudaGetLastError());
}

void GpuDevice::collect(Batch& batch) {
  if (!context_.spectrum || batch.slide->lacks(context_.ranks[*context_.spectrum])) return;
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
