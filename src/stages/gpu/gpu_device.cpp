#include "stages/gpu/gpu_device.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <slidestream/error.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/machine.hpp"
#include "runtime/slot_preparation.hpp"
#include "slide/file.hpp"

namespace slidestream {

using runtime::cuda::DeviceArena;
using runtime::cuda::DeviceScope;

namespace {

/// More batches aren't decoded at a time by a device, however many slots there are.
constexpr std::size_t most_decode_completions = 8;

}  // namespace

GpuDevice::GpuDevice(RunContext& context, const runtime::cuda::Device& device,
                     std::vector<std::unique_ptr<DeviceKernels>> kernels, const DeviceWork& work,
                     const DeviceLayout& layout)
    : context_(context),
      device_(device),
      images_(layout.pyramids.tiles > 0 ? work.images : std::vector<DeviceImage>{}),
      layout_(layout),
      split_(split_of(context.config.analysis)),
      memory_(layout.total()),
      band_completion_(device.ordinal, device.numa_node) {
  for (std::unique_ptr<DeviceKernels>& of_stream : kernels) {
    compute_streams_.push_back(std::make_unique<ComputeStream>());
    compute_streams_.back()->kernels = std::move(of_stream);
    compute_streams_.back()->scratch = memory_.take(layout.scratch);
    compute_streams_.back()->encoders =
        std::make_unique<StreamEncoders>(images_, layout_, memory_.take(layout.pyramids.encoders));
  }
  for (std::size_t i = 0; i < layout.slots + 1; ++i) {
    carries_.push_back(std::make_unique<CarryBuffer>());
    carries_.back()->memory = memory_.take(layout.carry_bytes());
    carries_.back()->kept = memory_.take(layout.pyramids.kept);
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
    memory.encoded = memory_.take(layout.pyramids.encoded);
    memory.words = memory_.take(layout.pyramids.words);
    memory.host = runtime::HostMemory(layout.slot_host_bytes());
    runtime::place_on_node(memory.host.bytes(), device.numa_node);
    slot_memory_.push_back(std::move(memory));
  }
  slots_.resize(layout.slots);
  for (std::size_t i = 0; i < compute_streams_.size(); ++i) {
    compute_completions_.emplace_back(device.ordinal, device.numa_node);
  }
  for (std::size_t i = 0; i < std::min(slots_.size(), most_decode_completions); ++i) {
    decode_completions_.emplace_back(device.ordinal, device.numa_node);
  }
}

void GpuDevice::make_slot(std::size_t index) {
  const SlotMemory& memory = slot_memory_[index];
  auto slot = std::make_unique<DeviceSlot>();
  slot->planes = memory.planes;
  slot->band = memory.band;
  slot->results = memory.results;
  const std::span<std::byte> host = memory.host.bytes();
  slot->host_results = host.first(layout_.result_bytes());
  const std::span<std::byte> of_levels = host.subspan(DeviceLayout::aligned(layout_.result_bytes()));
  slot->pyramids = std::make_unique<SlotPyramids>(
      images_, layout_,
      SlotPyramids::Memory{memory.band, memory.encoded, memory.words, of_levels.first(layout_.pyramids.words),
                           of_levels.subspan(DeviceLayout::aligned(layout_.pyramids.words), layout_.pyramids.places)});
  if (layout_.compressed > 0) {
    slot->decoder = std::make_unique<SlotDecoder>(layout_.tiles, memory.planes, memory.compressed, memory.scratch,
                                                  host.last(DeviceArena::aligned(layout_.decode_pinned)));
    if (context_.config.input.io == InputIo::cufile) slot->headers = std::make_unique<HeaderRoom>();
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

  PinnedParts parts(std::size_t index) const { return {slots_.memory(index).data(), front_}; }

  void pin(const Batch& batch) {
    const bool compressed =
        batch.decode_on_device && batch.slide->slide->info().levels[batch.slide->level].codec != Codec::none;
    if (compressed) {
      pin_until(batch.slot.index(), batch.compressed_end + static_cast<std::size_t>(slot_slack));
    } else {
      pin_whole(batch.slot.index());
    }
  }

  void pin_whole(std::size_t index) { pin_until(index, slots_.bytes_per_slot()); }

  /// Parts as long as the front, so that a large slot costs what its batches take of it.
  void pin_until(std::size_t index, std::size_t end) {
    std::vector<runtime::cuda::PinnedRange>& rest = ranges_[index].rest;
    for (std::size_t pinned = front_ * (rest.size() + 1); pinned < end; pinned += front_) {
      const std::span<std::byte> slot = slots_.memory(index);
      if (pinned >= slot.size()) return;
      const std::span<std::byte> part = slot.subspan(pinned, std::min(front_, slot.size() - pinned));
      runtime::populate(part);
      const DeviceScope scope(device_.device_.ordinal);
      rest.emplace_back(part);
    }
  }

 private:
  struct Ranges {
    std::optional<runtime::cuda::PinnedRange> host;
    std::optional<runtime::cuda::PinnedRange> front;
    std::vector<runtime::cuda::PinnedRange> rest;  ///< its batch's alone: taken when one needs it
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

bool GpuDevice::read(const Batch& batch, const ReadChunk& chunk) {
  const DeviceScope scope(device_.ordinal);
  const std::span<std::byte> to = slot_of(batch).decoder->compressed();
  const std::uint64_t block = chunk.whole_blocks ? File::direct_block : 1;
  const std::uint64_t begin = chunk.file_offset / block * block;
  const std::uint64_t end = (chunk.file_offset + chunk.length + block - 1) / block * block;
  const auto before = static_cast<std::size_t>(chunk.file_offset - begin);
  const std::size_t at = chunk.slot_offset - before;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, to.size() - at));
  return batch.slide->device_file->read(to, at, bytes, begin) >= static_cast<std::int64_t>(before + chunk.length);
}

void GpuDevice::put(const Batch& batch, const ReadChunk& chunk) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  copy_from_slot(slot.decoder->compressed().data() + chunk.slot_offset, batch.slot.memory().data() + chunk.slot_offset,
                 chunk.length, pins_->parts(batch.slot.index()), slot.decode_stream.get());
  SLIDESTREAM_CUDA(cudaStreamSynchronize(slot.decode_stream.get()));
}

void GpuDevice::fetch_headers(const Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  slot.decoder->fetch_headers(batch, *slot.headers, slot.decode_stream.get());
}

void GpuDevice::upload(Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  SLIDESTREAM_CUDA(cudaEventRecord(slot.copy_begun.get(), copy_stream_.get()));
  if (batch.decode_on_device) {
    slot.copied_bytes = slot.decoder->upload(batch, pins_->parts(batch.slot.index()), copy_stream_.get());
  } else {
    const ByPlane<std::byte*> own = own_rows(batch, slot);
    slot.copied_bytes = 0;
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const auto bytes = static_cast<std::size_t>((batch.strip.y1 - batch.strip.y0) * batch.panel().pitch[plane]);
      if (bytes == 0) continue;
      copy_from_slot(own[plane], reinterpret_cast<const std::byte*>(batch.own_rows[plane]), bytes,
                     pins_->parts(batch.slot.index()), copy_stream_.get());
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
    decode_completion(batch).wait_for(slot.decoded.get(), [this, &batch, &slot, done](std::exception_ptr failure) {
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
        copy_rows_from_slot(own[plane] + tile.place[plane], static_cast<std::size_t>(batch.panel().pitch[plane]),
                            reinterpret_cast<const std::byte*>(out.data), out.row_bytes(),
                            static_cast<std::size_t>(out.height), pins_->parts(batch.slot.index()),
                            slot.decode_stream.get());
      }
    }
    SLIDESTREAM_CUDA(cudaEventRecord(slot.decoded.get(), slot.decode_stream.get()));
    decode_completion(batch).wait_for(slot.decoded.get(), done);
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

}  // namespace slidestream
