#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device_file.hpp"
#include "runtime/slot_pool.hpp"
#include "runtime/staging_ring.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

/// \file
/// The GPUs of a run, as the graph sees them. Nothing here needs CUDA to be compiled: a build without it has an
/// implementation that says so.

namespace slidestream {

class File;
struct DeviceFacts;
struct DeviceWork;

/// Which GPUs a configuration gets on this machine.
struct GpuChoice {
  std::vector<int> devices;  ///< by number; empty: none
  std::string why_none;      ///< one clause, when there is none
};

/// What `gpu.devices` comes to here. \throws ConfigError when a device is named that isn't there.
GpuChoice choose_gpus(const Config& config);

/// Device memory, streams and kernels of a run: everything is taken when it is made. Device `i` serves lane `i`.
class GpuSet {
 public:
  /// Told the error that the device failed with, or nothing.
  using Done = std::function<void(std::exception_ptr)>;

  virtual ~GpuSet() = default;

  /// What batches must fit, the same for every device.
  virtual const SlotLimits& limits() const noexcept = 0;
  /// Devices and kernels, for logs: "NVIDIA H100 80GB HBM3, cufft-256".
  virtual std::string description() const = 0;

  /// Whether this level's tiles are decoded on the devices. Thread-safe.
  virtual bool decodes(const Slide& slide, std::size_t level) const = 0;

  /// Output slots, which bands and tiles of images come to from any device: pinned and made ready in the background,
  /// one after the other. Goes away before the slots do.
  class PinnedOutputs {
   public:
    virtual ~PinnedOutputs() = default;
    /// Slots that aren't ready needn't be any more. Doesn't wait.
    virtual void stop() noexcept = 0;
  };
  /// Of slots that aren't ready. `failed` is told why no more slots come; `ended` is called once, when none come any
  /// more, also where this throws. Both are called from threads of the slots' own.
  virtual std::unique_ptr<PinnedOutputs> pin_outputs(runtime::SlotPool& slots, const Done& failed,
                                                     const std::function<void()>& ended) = 0;

  /// Waits for all that is under way on a lane's device: what it reads and writes goes away next.
  virtual void finish(std::size_t lane) noexcept = 0;

  /// The pinned ring of a lane's device. Bytes pass through its chunks on their way there. Thread-safe.
  virtual runtime::StagingRing& staging(std::size_t lane) noexcept = 0;

  /// A batch has its slot: the device has its part of it from now on, which is made when it is first used. May wait for
  /// the system. Thread-safe for different batches. \throws CudaError.
  virtual void begin(const Batch& batch) = 0;

  /// Puts the copy of some bytes of a chunk of the ring, from byte `from` on, to byte `to` of the device's slot on the
  /// copy stream. Thread-safe. \throws CudaError.
  virtual void send(const Batch& batch, runtime::StagingRing::Chunk&& chunk, std::size_t from, std::size_t to,
                    std::size_t bytes) = 0;

  /// Has bytes or rows that are in the host's slot sent by the ring, in pieces. \returns how many there are.
  virtual std::size_t begin_sending(const Batch& batch) = 0;
  /// The same of flagged tiles [patched, patched + patching), which stand one behind the other in the batch's room for
  /// patches and go to their places.
  virtual std::size_t begin_patching(const Batch& batch) = 0;
  /// Sends a piece that no other thread has taken; waits for room in the ring. Thread-safe. False: there was none, or
  /// nobody wants the batch any more. \throws CudaError.
  virtual bool send_piece(const Batch& batch) = 0;

  /// Whether files can be read straight into the devices' memory (`input.io = "cufile"`), and what is to be said of it.
  /// Loads what that takes. Thread-safe.
  virtual runtime::cuda::DeviceFileSupport device_files() const = 0;
  /// A file that tiles are going to be read from so. \throws CudaError when it is refused.
  virtual std::shared_ptr<const runtime::cuda::DeviceFile> device_file(const File& file) const = 0;
  /// Reads a chunk of a batch straight into its device's slot; blocks. False: not all of it came. Thread-safe for
  /// different chunks.
  virtual bool read(const Batch& batch, const ReadChunk& chunk) = 0;
  /// When all chunks of a batch are on their way to its device: copies into the host's slot what describing the tiles
  /// takes; blocks. \throws CudaError.
  virtual void fetch_headers(Batch& batch) = 0;

  /// Describes the tiles of a batch that is decoded on its device. Thread-safe for different batches. What the device
  /// can't decode is flagged.
  virtual void prepare(Batch& batch) = 0;

  /// All of a batch was put on the copy stream: what uses it waits for that. One caller a lane at a time; doesn't wait.
  virtual void upload(Batch& batch) = 0;

  /// Puts the decoding of an uploaded batch on a stream. One caller a lane at a time; doesn't wait. `done` is called
  /// from a thread of the lane's own; by then tiles that the device doesn't vouch for are flagged.
  virtual void decode(Batch& batch, const Done& done) = 0;

  /// All flagged tiles that are being patched were sent. Thread-safe for different batches; as `decode` for the rest.
  virtual void patch(Batch& batch, const Done& done) = 0;

  /// Puts everything from carried rows to partial sums, and to pixels in the batch's band, on the compute stream,
  /// behind the batch's copy and the batch before. One caller a lane at a time, in row order within a chain; doesn't
  /// wait. `done` is called from a thread of the lane's own once the device has finished with the batch's slot and its
  /// band, also when there was nothing to compute or the device failed, with what it failed with.
  virtual void compute(Batch& batch, const Done& done) = 0;

  /// Of a computed batch of a slide whose levels are made on the devices: cuts what has become whole into parcels, each
  /// of which fits an output slot. Thread-safe for different batches.
  virtual void pack(Batch& batch) = 0;

  /// Copies one of the batch's parcels, which has its slot. One caller a lane at a time; doesn't wait. `done` as above,
  /// and once the tiles are there. The device keeps them until then.
  virtual void download(const Batch& batch, const Parcel& parcel, const Done& done) = 0;

  /// Turns what the device left in pinned memory into the batch's sums and its part of the map. Thread-safe for
  /// different batches.
  virtual void collect(Batch& batch) = 0;
};

/// Whether `make_gpu_set` would find what it wants; takes nothing. \throws as that.
void check_gpus(const Config& config, const std::vector<int>& devices);

/// Has the driver make the devices' contexts, side by side. What fails here fails again where it is told.
void wake_gpus(const std::vector<int>& devices) noexcept;

/// For the GPU with that number. \throws ConfigError, CudaError.
DeviceFacts facts_of_device(const Config& config, const DeviceWork& work, int ordinal);

/// \throws ConfigError naming the key to turn when the devices' memory doesn't do; CudaError.
std::unique_ptr<GpuSet> make_gpu_set(RunContext& context, const std::vector<int>& devices);

}  // namespace slidestream
