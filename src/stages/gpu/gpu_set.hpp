#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device_file.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/slot_pool.hpp"
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

  /// A lane's slots, pinned near its device, and made ready by that in the background, as they are wanted. Goes away
  /// before the slots do, and waits for what the device does with them.
  class PinnedSlots {
   public:
    virtual ~PinnedSlots() = default;
    /// Asks for one more slot. False: all were asked for, or no more come. Doesn't wait. Thread-safe.
    virtual bool want() = 0;
    /// Slots that aren't ready needn't be any more. Doesn't wait.
    virtual void stop() noexcept = 0;
  };
  /// Of slots that aren't ready. `failed` is told why no more slots come; `settled` is called once for each slot that
  /// was asked for, when it is ready or never will be. Both are called from threads of the slots' own.
  virtual std::unique_ptr<PinnedSlots> pin(std::size_t lane, runtime::SlotPool& slots, const Done& failed,
                                           const std::function<void()>& settled) = 0;
  /// The same of slots that bands of images come to, from any device.
  virtual std::unique_ptr<PinnedSlots> pin_outputs(runtime::SlotPool& slots, const Done& failed,
                                                   const std::function<void()>& settled) = 0;

  /// Has as much of the batch's slot pinned as its tiles, which are laid out, and its rows take: the whole slot when
  /// its front won't do. May wait for the system. Thread-safe for different batches. \throws CudaError.
  virtual void pin(const Batch& batch) = 0;

  /// Whether files can be read straight into the devices' memory (`input.io = "cufile"`), and what is to be said of it.
  /// Loads what that takes. Thread-safe.
  virtual runtime::cuda::DeviceFileSupport device_files() const = 0;
  /// A file that tiles are going to be read from so. \throws CudaError when it is refused.
  virtual std::shared_ptr<const runtime::cuda::DeviceFile> device_file(const File& file) const = 0;
  /// Reads a chunk of a batch straight into its device's image of the slot; blocks. False: not all of it came.
  /// Thread-safe for different chunks.
  virtual bool read(const Batch& batch, const ReadChunk& chunk) = 0;
  /// The detour: copies a chunk that is in the slot into the device's image of it; blocks. Thread-safe for different
  /// chunks. \throws CudaError.
  virtual void put(const Batch& batch, const ReadChunk& chunk) = 0;
  /// When all chunks of a batch are on its device: copies into the slot what describing the tiles takes; blocks.
  /// \throws CudaError.
  virtual void fetch_headers(const Batch& batch) = 0;

  /// Describes the tiles of a batch that is decoded on its device. Thread-safe for different batches. What the device
  /// can't decode is flagged.
  virtual void prepare(Batch& batch) = 0;

  /// Puts the copy of a batch to its device on the copy stream: its rows, or its compressed tiles with their
  /// descriptors. One caller a lane at a time; doesn't wait.
  virtual void upload(Batch& batch) = 0;

  /// Puts the decoding of an uploaded batch on a stream. One caller a lane at a time; doesn't wait. `done` is called
  /// from a thread of the lane's own; by then tiles that the device doesn't vouch for are flagged.
  virtual void decode(Batch& batch, const Done& done) = 0;

  /// Copies flagged tiles [patched, patched + patching), which stand one behind the other in the batch's room for
  /// patches, to their places. As `decode` for the rest.
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

/// Has the driver make the devices' contexts, side by side, and takes the pages of the first slots meanwhile. What
/// fails here fails again where it is told. \returns each device's slots, or nothing.
std::vector<std::vector<runtime::HostMemory>> wake_gpus(const Config& config, const std::vector<int>& devices) noexcept;

/// For the GPU with that number. \throws ConfigError, CudaError.
DeviceFacts facts_of_device(const Config& config, const DeviceWork& work, int ordinal);

/// \throws ConfigError naming the key to turn when the devices' memory doesn't do; CudaError.
std::unique_ptr<GpuSet> make_gpu_set(RunContext& context, const std::vector<int>& devices);

}  // namespace slidestream
