#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/slide.hpp>

#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "planning/pyramid_rows.hpp"
#include "planning/strip_plan.hpp"

/// \file
/// How the memory of a GPU is divided: arithmetic, for one that is there and for one that isn't.

namespace slidestream {

/// What a slot's decoder must be ready for.
struct TileLimits {
  std::size_t slot_bytes = 0;       ///< of the host's slot, and of its image on the device
  std::size_t tiles = 0;            ///< of a batch
  ByPlane<bool> planes{true};       ///< that they are decoded to
  std::size_t component_bytes = 0;  ///< where tiles become RGB: of all tiles together, before it is made of components
  bool converts = false;            ///< colours of some slides are converted, by way of RGB
  std::size_t wave = 0;             ///< tiles of JPEG 2000 that are decoded at a time; 0: none are on the device
};

cuda::JpegBatchLimits jpeg_limits(const TileLimits& limits);
cuda::Jpeg2000BatchLimits jpeg2000_limits(const TileLimits& limits);

/// A slot's decoder's parts of device memory, as offsets in bytes. A batch is of one codec, so that the codecs' scratch
/// is the same memory, but for what that of JPEG 2000 keeps.
struct DecoderScratch {
  DecoderScratch(const TileLimits& limits, std::size_t jpeg_bytes);
  std::size_t verdict_bytes;  ///< at the beginning
  std::size_t colours;        ///< a conversion, where colours are converted
  std::size_t jpeg2000;
  std::size_t jpeg;
  std::size_t size;
};

/// What a run asks of its devices.
struct DeviceWork {
  bool spectrum = true;
  ByPlane<std::int64_t> pixel_bytes{};  ///< of the planes; 0: nobody reads it
  std::int64_t image_bytes = 0;         ///< of a pixel of all images that are made
  std::int64_t batch_pixels = 0;        ///< that a batch is to have room for, where there is memory for it
  std::vector<DeviceImage> images;      ///< whose levels devices make; empty: of none

  std::int64_t plane_bytes() const noexcept { return pixel_bytes[luminance_plane] + pixel_bytes[rgb_plane]; }
};

/// Of those `operators` that pixels pass by, on so many slides and devices.
DeviceWork device_work(const Config& config, const Operators& operators, std::size_t slides, std::size_t devices);

/// Pixels that a batch is to have room for: what is usual, unless the configuration says how long batches are.
std::int64_t batch_pixels_for(const PipelineConfig& pipeline, std::int64_t usual);

/// How the host's memory is divided where devices compute, in bytes.
struct HostSlots {
  std::size_t slot_bytes = 0;    ///< of `queue_depth` slots a device
  std::size_t output_slots = 0;  ///< for bands of images, of all devices together; 0: none are made
  std::size_t output_bytes = 0;  ///< of each
};
HostSlots device_host_slots(const PipelineConfig& pipeline, const DeviceWork& work, std::size_t devices);

/// What a device has for the levels of images, in bytes.
struct PyramidMemory {
  std::size_t tiles = 0;     ///< of a batch, of each image
  std::size_t at_once = 0;   ///< tiles of JPEG that are encoded at a time
  std::size_t kept = 0;      ///< of each carry buffer: rows that fill no row of tiles yet, and sums
  std::size_t encoded = 0;   ///< of a slot: tiles of JPEG
  std::size_t words = 0;     ///< of a slot, on the device and pinned: where each of these begins
  std::size_t places = 0;    ///< of a slot, pinned: what is encoded
  std::size_t encoders = 0;  ///< of a compute stream
};

/// How a device's memory is divided, in bytes.
struct DeviceLayout {
  std::size_t slots = 0;
  ByPlane<std::size_t> plane{};    ///< of a slot: carried and own rows
  std::size_t band = 0;            ///< of a slot: rows of images that a batch completes, and of their levels
  std::size_t compressed = 0;      ///< of a slot: as the host's slot; 0: nothing is decoded on the device
  TileLimits tiles;                ///< what a slot's decoder must be ready for
  std::size_t decode_scratch = 0;  ///< of a slot
  std::size_t decode_pinned = 0;   ///< of a slot, on the host
  ByPlane<std::size_t> carry{};    ///< of each of `slots` + 1 buffers
  std::size_t windows = 0;         ///< of a slot: windows that a batch may complete
  std::size_t bins = 0;
  std::size_t counters = 0;  ///< of statistics besides the distribution
  bool classes = false;      ///< windows are told apart: a byte each goes to the device
  std::size_t streams = 1;   ///< compute streams
  std::size_t scratch = 0;   ///< of a compute stream: for its window engine, or a kernel of an image
  PyramidMemory pyramids;    ///< without tiles: levels are made on the host

  static constexpr std::size_t alignment = 512;
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  /// Counts, clipped, counters, then moments, as they are copied back in one piece; behind them the windows' classes.
  std::size_t counts_bytes() const { return (bins + 1 + counters) * sizeof(std::uint64_t); }
  std::size_t classes_begin() const { return counts_bytes() + windows * 2 * sizeof(double); }
  std::size_t result_bytes() const { return classes_begin() + (classes ? windows : 0); }
  std::size_t carry_bytes() const { return aligned(carry[luminance_plane]) + carry[rgb_plane]; }
  std::size_t total() const;
  /// Pinned host memory of a slot besides the slot itself: results, what concerns levels, and the decoder's part.
  std::size_t slot_host_bytes() const {
    return aligned(result_bytes()) + aligned(pyramids.words) + aligned(pyramids.places) + aligned(decode_pinned);
  }
  std::size_t host_bytes() const { return slots * slot_host_bytes(); }
};

/// What only a device, or what is assumed of one, can tell. Copies are good as long as the window engine lives.
struct DeviceSizing {
  /// Scratch of the window engine for a block of windows in a plane of `width` x `height` pixels.
  std::function<std::size_t(std::int64_t width, std::int64_t height, std::int64_t columns, std::int64_t rows)> windows;
  /// Scratch of the kernels that make images, for rows of so many pixels; empty: none make any.
  std::function<std::size_t(const Size& rows)> images;
  /// Device memory of a slot's decoder.
  std::function<std::size_t(const TileLimits& limits)> decoder;
};

/// Divides a device's memory for `pipeline.queue_depth` slots. Planes grow as large as a launch wants while the whole
/// stays within `allowed`. Where even the smallest planes don't fit beside the levels of images, the host makes these.
/// What comes out may be more than `allowed`, when the smallest planes alone are.
DeviceLayout lay_out(const Config& config, const DeviceWork& work, const HostSlots& host, const DeviceSizing& sizing,
                     std::size_t allowed);

/// What batches must fit on a device with that layout.
SlotLimits device_slot_limits(const DeviceWork& work, const HostSlots& host, const DeviceLayout& layout,
                              const DeviceSizing& sizing);

/// A GPU that a forecast is made for.
struct DeviceFacts {
  std::string name;
  std::string engine;
  std::size_t free = 0;
  DeviceSizing sizing;
  std::string unknown;  ///< one clause: what isn't in the figures; empty: nothing
};

/// For a GPU of an assumed model.
DeviceFacts facts_of(const Config& config, const DeviceWork& work, const GpuModel& model);

/// Whether a level's tiles are decoded on devices: JPEG and JPEG 2000 that their decoders take, by the first tile, and
/// tiles without a codec. Where colours are converted, devices must take the conversion, too.
bool device_decodes(const Config& config, const DeviceWork& work, const Slide& slide, std::size_t level);

}  // namespace slidestream
