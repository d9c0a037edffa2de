#include "stages/gpu/gpu_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <slidestream/error.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/machine.hpp"
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
                     const DeviceLayout& layout, const StagingPlan& staging)
    : context_(context),
      device_(device),
      images_(layout.pyramids.tiles > 0 ? work.images : std::vector<DeviceImage>{}),
      layout_(layout),
      split_(split_of(context.config.analysis)),
      memory_(layout.total()),
      staging_(staging.chunks, staging.chunk_bytes, device.ordinal, device.numa_node,
               [&context](std::chrono::nanoseconds time) { context.upload.add_busy(time); }),
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
  slot->pinned.emplace(host);
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

void GpuDevice::begin(const Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  if (slots_[batch.slot.index()] == nullptr) {
    runtime::place_on_node(batch.slot.memory(), device_.numa_node);
    // The driver pins memory for one thread at a time: for the first batch, which comes first, without the others'.
    const std::lock_guard lock(making_);
    make_slot(batch.slot.index());
  }
  slot_of(batch).sent_bytes.store(0, std::memory_order_relaxed);
}

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
  staging_.finish();
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

void GpuDevice::fetch_headers(Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  // Some may have come by the ring.
  staging_.record(slot.copied.get());
  SLIDESTREAM_CUDA(cudaStreamWaitEvent(slot.decode_stream.get(), slot.copied.get()));
  slot.decoder->fetch_headers(batch, *slot.headers, slot.decode_stream.get());
}

void GpuDevice::send(const Batch& batch, runtime::StagingRing::Chunk&& chunk, std::size_t from, std::size_t to,
                     std::size_t bytes) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  slot.sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
  std::byte* const there = slot.decoder->compressed().subspan(to, bytes).data();
  staging_.copy(std::move(chunk), there, from, bytes);
}

void GpuDevice::add_pieces(DeviceSlot& slot, const std::byte* from, std::size_t from_pitch,
                           const runtime::cuda::Staging::Rows& rows) {
  const std::size_t most = staging_.ring().chunk_bytes();
  const auto add = [&](std::size_t row, std::size_t at, std::size_t bytes, std::size_t count) {
    slot.pieces.push_back(
        {from + row * from_pitch + at, from_pitch, {rows.to + row * rows.pitch + at, rows.pitch, bytes, count}});
  };
  if (from_pitch == rows.bytes && rows.pitch == rows.bytes) {
    // One behind the other on both sides: as one row.
    for (std::size_t at = 0, all = rows.bytes * rows.count; at < all; at += most) {
      add(0, at, std::min(most, all - at), 1);
    }
    return;
  }
  const std::size_t at_once = most / rows.bytes;
  for (std::size_t row = 0; row < rows.count; row += std::max<std::size_t>(at_once, 1)) {
    if (at_once > 0) {
      add(row, 0, rows.bytes, std::min(at_once, rows.count - row));
      continue;
    }
    for (std::size_t at = 0; at < rows.bytes; at += most) add(row, at, std::min(most, rows.bytes - at), 1);
  }
}

std::size_t GpuDevice::begin_sending(const Batch& batch) {
  DeviceSlot& slot = slot_of(batch);
  slot.pieces.clear();
  slot.next_piece.store(0, std::memory_order_relaxed);
  slot.piece_stream = nullptr;
  if (batch.decode_on_device) {
    std::byte* const to = slot.decoder->compressed().data();
    add_pieces(slot, batch.slot.memory().data(), batch.compressed_end,
               {to, batch.compressed_end, batch.compressed_end, batch.compressed_end > 0 ? 1U : 0U});
    return slot.pieces.size();
  }
  const ByPlane<std::byte*> own = own_rows(batch, slot);
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    const auto pitch = static_cast<std::size_t>(batch.panel().pitch[plane]);
    if (pitch == 0) continue;
    add_pieces(slot, reinterpret_cast<const std::byte*>(batch.own_rows[plane]), pitch,
               {own[plane], pitch, pitch, static_cast<std::size_t>(batch.strip.y1 - batch.strip.y0)});
  }
  return slot.pieces.size();
}

std::size_t GpuDevice::begin_patching(const Batch& batch) {
  DeviceSlot& slot = slot_of(batch);
  slot.pieces.clear();
  slot.next_piece.store(0, std::memory_order_relaxed);
  slot.piece_stream = slot.decode_stream.get();
  const ByPlane<std::byte*> own = own_rows(batch, slot);
  const std::size_t end = batch.skip() ? batch.patched : batch.patched + batch.patching;
  for (std::size_t i = batch.patched; i < end; ++i) {
    const BatchTile& tile = batch.tiles[batch.flagged[i]];
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const HostPixels& out = tile.out[plane];
      if (own[plane] == nullptr) continue;
      add_pieces(slot, reinterpret_cast<const std::byte*>(out.data), out.row_bytes(),
                 {own[plane] + tile.place[plane], static_cast<std::size_t>(batch.panel().pitch[plane]), out.row_bytes(),
                  static_cast<std::size_t>(out.height)});
    }
  }
  return slot.pieces.size();
}

bool GpuDevice::send_piece(const Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  DeviceSlot& slot = slot_of(batch);
  if (slot.next_piece.load(std::memory_order_relaxed) >= slot.pieces.size()) return false;
  auto chunk = staging_.ring().acquire([&batch] { return batch.skip(); });
  if (!chunk) return false;
  const std::size_t next = slot.next_piece.fetch_add(1, std::memory_order_relaxed);
  if (next >= slot.pieces.size()) return false;
  const Piece& piece = slot.pieces[next];
  std::byte* to = chunk->memory().data();
  for (std::size_t row = 0; row < piece.rows.count; ++row, to += piece.rows.bytes) {
    std::memcpy(to, piece.from + row * piece.from_pitch, piece.rows.bytes);
  }
  slot.sent_bytes.fetch_add(piece.rows.count * piece.rows.bytes, std::memory_order_relaxed);
  staging_.copy_rows(std::move(*chunk), piece.rows, slot.piece_stream);
  return true;
}

void GpuDevice::upload(Batch& batch) {
  const DeviceScope scope(device_.ordinal);
  staging_.record(slot_of(batch).copied.get());
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
    SLIDESTREAM_CUDA(cudaEventRecord(slot.decoded.get(), slot.decode_stream.get()));
    decode_completion(batch).wait_for(slot.decoded.get(), done);
    return;
  } catch (...) {
    done(std::current_exception());
  }
}

}  // namespace slidestream
