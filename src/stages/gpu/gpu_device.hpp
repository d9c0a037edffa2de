#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda/operators/image_kernel.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "planning/device_sizing.hpp"
#include "planning/staging_plan.hpp"
#include "runtime/cuda/completion.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/cuda/staging.hpp"
#include "runtime/host_memory.hpp"
#include "stages/gpu/gpu_pyramids.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/gpu/gpu_tiles.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"
#include "statistics/split.hpp"

namespace slidestream {

/// Kernels of one compute stream: for the windows, and for each image.
struct DeviceKernels {
  /// On the current device. \throws CudaError, ConfigError.
  DeviceKernels(const Config& config, const Operators& operators);

  /// Scratch memory that an image wants for rows of so many pixels; at most one is made at a time.
  std::size_t image_scratch(const Size& rows) const;

  std::unique_ptr<cuda::WindowEngine> windows;                   ///< null where the spectrum doesn't run
  std::vector<std::unique_ptr<cuda::DeviceImageKernel>> images;  ///< by operator; null for what makes none
};

/// One GPU of a run, which serves one lane of the graph: its memory, streams and kernels. Device memory and the pinned
/// ring are taken at the start; what else a slot has, when it is first used.
class GpuDevice {
 public:
  /// Takes the device's memory. `kernels` are one a compute stream. \throws CudaError.
  GpuDevice(RunContext& context, const runtime::cuda::Device& device,
            std::vector<std::unique_ptr<DeviceKernels>> kernels, const DeviceWork& work, const DeviceLayout& layout,
            const StagingPlan& staging);
  ~GpuDevice();

  void finish() noexcept;
  runtime::StagingRing& staging() noexcept { return staging_.ring(); }
  void begin(const Batch& batch);
  void send(const Batch& batch, runtime::StagingRing::Chunk&& chunk, std::size_t from, std::size_t to,
            std::size_t bytes);
  std::size_t begin_sending(const Batch& batch);
  std::size_t begin_patching(const Batch& batch);
  bool send_piece(const Batch& batch);
  bool read(const Batch& batch, const ReadChunk& chunk);
  void fetch_headers(Batch& batch);
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
    runtime::HostMemory host;              ///< results and the decoder's part; pinned when the slot is first used
  };

  /// Rows of a host's slot that fit a chunk of the ring.
  struct Piece {
    const std::byte* from;
    std::size_t from_pitch;
    runtime::cuda::Staging::Rows rows;
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
    std::optional<runtime::cuda::PinnedRange> pinned;  ///< the host's memory of the slot
    std::vector<Piece> pieces;                         ///< that are sent from the host's slot
    std::atomic<std::size_t> next_piece{0};
    cudaStream_t piece_stream = nullptr;     ///< null: the ring's
    std::atomic<std::size_t> sent_bytes{0};  ///< of the present batch
    runtime::cuda::Event copied;
    // A stream for each slot: decoding is bound by latency, and that of several batches goes on side by side.
    runtime::cuda::Stream decode_stream;
    runtime::cuda::Event decode_begun;
    runtime::cuda::Event decoded;
    runtime::cuda::Event compute_begun;
    runtime::cuda::Event made;      ///< everything is computed
    runtime::cuda::Event computed;  ///< and on the host
    runtime::cuda::Event fetched;   ///< all parcels that were asked for are on the host
    bool decoding = false;          ///< decoding was put on the stream for the present batch
    bool worked = false;            ///< and everything else, too
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
  /// Streams, events and the decoder of a slot. Thread-safe for different slots. \throws CudaError.
  void make_slot(std::size_t index);
  void wait_for_streams() noexcept;
  ComputeStream& stream_of(Chain& chain);
  /// Cuts rows `from_pitch` bytes apart, for rows of the device, into pieces.
  void add_pieces(DeviceSlot& slot, const std::byte* from, std::size_t from_pitch,
                  const runtime::cuda::Staging::Rows& rows);

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
  /// \param sent  bytes
  void meter_compute(const Batch& batch, const DeviceSlot& slot, std::size_t sent);
  DeviceSlot& slot_of(const Batch& batch) { return *slots_[batch.slot.index()]; }
  runtime::cuda::CompletionThread& decode_completion(const Batch& batch) {
    return decode_completions_[batch.slot.index() % decode_completions_.size()];
  }

  RunContext& context_;
  runtime::cuda::Device device_;
  std::vector<DeviceImage> images_;
  DeviceLayout layout_;
  PlacedStatistic split_;  ///< without a statistic: not asked for
  runtime::cuda::DeviceArena memory_;
  // Used by `compute` alone, which is serial.
  std::vector<std::unique_ptr<ComputeStream>> compute_streams_;
  std::size_t next_stream_ = 0;
  std::vector<std::unique_ptr<CarryBuffer>> carries_;
  std::vector<int> free_carries_;

  std::vector<SlotMemory> slot_memory_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;  ///< null until it is first used
  std::mutex making_;                               ///< one slot at a time, so that the first batch isn't held up
  runtime::cuda::Staging staging_;
  runtime::cuda::Stream band_stream_;  ///< bands and parcels on their way to the host
  // A device does what is on different streams in any order, so each is waited for apart: what is done isn't held up by
  // what was asked for before it.
  std::deque<runtime::cuda::CompletionThread> decode_completions_;   ///< a few, which all slots share
  std::deque<runtime::cuda::CompletionThread> compute_completions_;  ///< as the streams
  runtime::cuda::CompletionThread band_completion_;
};

}  // namespace slidestream
