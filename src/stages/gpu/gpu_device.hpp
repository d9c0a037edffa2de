#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/operators/image_kernel.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "planning/device_sizing.hpp"
#include "runtime/cuda/completion.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/gpu/gpu_pyramids.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/gpu/gpu_tiles.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"
#include "statistics/split.hpp"

namespace slidestream {

/// Threads that take a lane's slots from the system, in a run with so many threads and lanes. Half of the processors
/// are left to those who work meanwhile.
inline std::size_t preparing_threads(int threads, std::size_t lanes) {
  constexpr int most = 8;
  return static_cast<std::size_t>(std::clamp(threads / static_cast<int>(2 * lanes), 1, most));
}

/// Kernels of one compute stream: for the windows, and for each image.
struct DeviceKernels {
  /// On the current device. \throws CudaError, ConfigError.
  DeviceKernels(const Config& config, const Operators& operators);

  /// Scratch memory that an image wants for rows of so many pixels; at most one is made at a time.
  std::size_t image_scratch(const Size& rows) const;

  std::unique_ptr<cuda::WindowEngine> windows;                   ///< null where the spectrum doesn't run
  std::vector<std::unique_ptr<cuda::DeviceImageKernel>> images;  ///< by operator; null for what makes none
};

/// One GPU of a run, which serves one lane of the graph: its memory, streams and kernels. Device memory is taken at the
/// start; what is pinned, streams and events come slot by slot.
class GpuDevice {
 public:
  /// Takes the device's memory. `kernels` are one a compute stream. \throws CudaError.
  GpuDevice(RunContext& context, const runtime::cuda::Device& device,
            std::vector<std::unique_ptr<DeviceKernels>> kernels, const DeviceWork& work, const DeviceLayout& layout);
  ~GpuDevice();

  std::unique_ptr<GpuSet::PinnedSlots> pin(runtime::SlotPool& slots, const GpuSet::Done& failed,
                                           const std::function<void()>& settled);
  void pin(const Batch& batch);
  bool read(const Batch& batch, const ReadChunk& chunk);
  void put(const Batch& batch, const ReadChunk& chunk);
  void fetch_headers(const Batch& batch);
  void prepare(Batch& batch) { slot_of(batch).decoder->describe(batch); }
  void upload(Batch& batch);
  void decode(Batch& batch, const GpuSet::Done& done);
  void patch(Batch& batch, const GpuSet::Done& done);
  void compute(Batch& batch, const GpuSet::Done& done);
  void pack(Batch& batch) { batch.parcels = slot_of(batch).pyramids->parcels(context_.limits.output_bytes); }
  void download(const Batch& batch, const Parcel& parcel, const GpuSet::Done& done);
  void collect(Batch& batch);

 private:
  /// What a slot has besides the host's slot.
  struct SlotMemory {
    ByPlane<std::span<std::byte>> planes;  ///< device
    std::span<std::byte> band;             ///< device
    std::span<std::byte> results;          ///< device
    std::span<std::byte> compressed;       ///< device
    std::span<std::byte> scratch;          ///< of the decoder, device
    std::span<std::byte> encoded;          ///< tiles of images, device
    std::span<std::byte> words;            ///< where they begin, device
    runtime::HostMemory host;              ///< results and the decoder's part; pinned with the host's slot
  };

  /// A slot's work on the device, and where its results come back to.
  struct DeviceSlot {
    ByPlane<std::span<std::byte>> planes;
    std::span<std::byte> band;  ///< rows of images
    std::unique_ptr<SlotPyramids> pyramids;
    std::unique_ptr<SlotDecoder> decoder;  ///< null where nothing is decoded on the device
    std::unique_ptr<HeaderRoom> headers;   ///< null unless files may be read straight into the device's memory
    std::span<std::byte> results;          ///< device
    std::span<std::byte> host_results;     ///< pinned
    runtime::cuda::Event copy_begun;
    runtime::cuda::Event copied;
    // A stream for each slot: decoding is bound by latency, and that of several batches goes on side by side.
    runtime::cuda::Stream decode_stream;
    runtime::cuda::Event decode_begun;
    runtime::cuda::Event decoded;
    runtime::cuda::Event compute_begun;
    runtime::cuda::Event made;      ///< everything is computed
    runtime::cuda::Event computed;  ///< and on the host
    runtime::cuda::Event fetched;   ///< all parcels that were asked for are on the host
    std::size_t copied_bytes = 0;
    bool copying = false;   ///< a copy was put on the stream for the present batch
    bool decoding = false;  ///< decoding was put on the stream for the present batch
    bool worked = false;    ///< and everything else, too
  };

  /// Chains go through one each, by turns: small slides don't fill a device, so several are computed side by side.
  struct ComputeStream {
    std::unique_ptr<DeviceKernels> kernels;
    std::span<std::byte> scratch;
    std::unique_ptr<StreamEncoders> encoders;
    runtime::cuda::Stream stream;
  };

  /// Rows between two strips of a chain.
  struct CarryBuffer {
    std::span<std::byte> memory;
    std::span<std::byte> kept;                ///< of images
    std::unique_ptr<ChainPyramids> pyramids;  ///< of the chain that has it now; null until it makes one
    runtime::cuda::Event released;            ///< on the stream of the chain that had it before
    bool was_used = false;
  };

  /// With this device as the thread's, if that can be.
  void on_device(const std::function<void()>& work) const noexcept;
  /// Streams, events and the decoder of a slot whose host memory has its pages. Thread-safe for different slots.
  /// \throws CudaError.
  void make_slot(std::size_t index);
  void finish() noexcept;
  void wait_for_streams() noexcept;
  ComputeStream& stream_of(Chain& chain);
  class Pins;

  /// Which of a batch's windows are tissue, on the device; null where they aren't told apart.
  const std::uint8_t* upload_classes(const Batch& batch, const DeviceSlot& slot, cudaStream_t stream);
  void enqueue(Batch& batch, DeviceSlot& slot, ComputeStream& on);
  void enqueue_carries(const Batch& batch, const DeviceSlot& slot, cudaStream_t stream);
  void enqueue_windows(const Batch& batch, const DeviceSlot& slot, ComputeStream& on);
  void enqueue_image(const Batch& batch, const DeviceSlot& slot, std::size_t op, ComputeStream& on);
  void run_kernel(const Batch& batch, const DeviceSlot& slot, std::size_t op, const PixelView<MemorySpace::device>& out,
                  ComputeStream& on);
  /// Records `computed` once the band is on the host.
  void download_band(const Batch& batch, const DeviceSlot& slot, cudaStream_t computing);
  /// Pixels of a plane, carried rows first.
  static ConstPixelView<MemorySpace::device> pixels_of(const Batch& batch, const DeviceSlot& slot, std::size_t plane);
  /// Levels and tiles of images, which stay on the device until there is an output slot.
  void enqueue_pyramids(const Batch& batch, const DeviceSlot& slot, ComputeStream& on);
  CarryBuffer& carry_buffer(Chain& chain, cudaStream_t stream);
  void release_carry(Chain& chain, cudaStream_t stream);
  static ByPlane<std::byte*> own_rows(const Batch& batch, const DeviceSlot& slot);
  void meter_compute(const Batch& batch, const DeviceSlot& slot);
  DeviceSlot& slot_of(const Batch& batch) { return *slots_[batch.slot.index()]; }
  runtime::cuda::CompletionThread& decode_completion(const Batch& batch) {
    return decode_completions_[batch.slot.index() % decode_completions_.size()];
  }

  RunContext& context_;
  runtime::cuda::Device device_;
  std::vector<DeviceImage> images_;
  DeviceLayout layout_;
  PlacedStatistic split_;  ///< without a statistic: not asked for
  Pins* pins_ = nullptr;   ///< of the lane's slots, while they live
  runtime::cuda::DeviceArena memory_;
  // Used by `compute` alone, which is serial.
  std::vector<std::unique_ptr<ComputeStream>> compute_streams_;
  std::size_t next_stream_ = 0;
  std::vector<std::unique_ptr<CarryBuffer>> carries_;
  std::vector<int> free_carries_;

  std::vector<SlotMemory> slot_memory_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;  ///< null until the slot is made ready
  runtime::cuda::Stream copy_stream_;
  runtime::cuda::Stream band_stream_;  ///< bands and parcels on their way to the host
  // A device does what is on different streams in any order, so each is waited for apart: what is done isn't held up by
  // what was asked for before it.
  std::deque<runtime::cuda::CompletionThread> decode_completions_;   ///< as many slots as there are share them
  std::deque<runtime::cuda::CompletionThread> compute_completions_;  ///< as the streams
  runtime::cuda::CompletionThread band_completion_;
};

}  // namespace slidestream
