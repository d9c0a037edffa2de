#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

/// @file
/// Forecasts of a run: its batches, its device and its memory, without running it.

namespace slidestream {

/// The properties of a GPU model that decide how much memory a run needs.
struct GpuModel {
  std::string name;
  std::size_t memory = 0;   ///< approximate free bytes of an idle GPU
  int multiprocessors = 0;  ///< the JPEG decoder needs memory per multiprocessor
};

/// The models that the command line knows: a40, a100, h100 and h200. Thread-safe.
/// @return The models, which live until the program ends.
std::span<const GpuModel> known_gpus();

/// Finds a model by name. Thread-safe.
/// @param name  Name of the model, in upper or lower case.
/// @return A copy of the model.
/// @throws ConfigError  No model has that name. The message lists all names.
GpuModel gpu_model(const std::string& name);

/// Options of a forecast.
struct ForecastOptions {
  /// Assumes this model for each GPU of the configuration. Without it, the forecast takes the GPUs of this machine. If
  /// there are none and the configuration requires a GPU, it assumes an H100.
  std::optional<GpuModel> assumed;
};

/// Forecast of one slide.
struct SlideForecast {
  std::string path;
  std::string error;  ///< one line without the path if the slide can't be opened or planned; else empty
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string codec;
  std::uint64_t file_bytes = 0;
  std::int64_t windows_x = 0;
  std::int64_t windows_y = 0;
  std::int64_t batches = 0;
  std::int64_t most_rows = 0;          ///< most rows of a batch, without carried rows
  std::int64_t panels = 0;             ///< parts side by side into which the level is cut
  std::int64_t fragments = 0;          ///< parts that may go to different GPUs
  std::uint64_t batch_bytes = 0;       ///< most bytes of a slot that a batch takes
  std::uint64_t host_batch_bytes = 0;  ///< most bytes of host memory that a batch touches of its slot
  /// Most bytes that decoding one tile on the CPU takes, as far as its codec is known, and of JPEG by the headers of
  /// some tiles.
  std::uint64_t tile_bytes = 0;
  /// Bytes while it is open: its tables, of tiles and of its ICC profile, and OpenSlide's cache.
  std::uint64_t table_bytes = 0;
  std::uint64_t profile_bytes = 0;  ///< bytes of the memory for decoding that reading its ICC profile's table takes
  bool decoded_on_gpu = false;
  bool levels_on_gpu = false;      ///< a GPU makes the levels of its images
  std::int64_t network_tiles = 0;  ///< most tiles that networks get
  std::int64_t network_batches = 0;

  /// Number of windows of the spectrum.
  /// @return Windows across times windows down; 0 without the spectrum.
  std::int64_t windows() const noexcept { return windows_x * windows_y; }
};

/// Memory and work of a run's networks. `RunForecast::networks_bytes` includes the host memory.
struct NetworkForecast {
  std::string description;          ///< of the first network: "ONNX Runtime 1.32.0, CPU"; empty: none
  bool mixed = false;               ///< slides share batches, so that the batches of slides are upper bounds
  bool tissue_only = false;         ///< networks skip tiles without tissue, so that tiles and batches are upper bounds
  int side = 0;                     ///< side of the first network's tiles, in pixels
  int batch = 0;                    ///< tiles per batch of the first network
  std::size_t sessions = 0;         ///< of all networks
  std::uint64_t session_bytes = 0;  ///< mean host memory of a session, in bytes
  std::uint64_t weights_bytes = 0;
  std::uint64_t device_bytes = 0;   ///< most bytes of each GPU's memory; 0: networks compute on the CPU
  std::uint64_t batches_bytes = 0;  ///< input and output of batches
  std::uint64_t bands_bytes = 0;    ///< rows, tiles and image rows of slides in flight
  std::string unknown;              ///< why the memory of sessions isn't known; else empty
};

/// Forecast of a whole run. Sizes are in bytes.
struct RunForecast {
  std::string backend;  ///< "cpu" or "cuda"
  std::string why;      ///< why `auto` takes the CPU, or why GPUs are assumed; may be empty
  int threads = 0;

  int gpus = 0;                                 ///< 0 on the CPU
  bool gpus_assumed = false;                    ///< the GPUs aren't those of this machine
  std::string gpu;                              ///< name of the GPU with the least free memory
  std::string engine;                           ///< transform of the windows on the GPU
  std::uint64_t gpu_bytes = 0;                  ///< bytes of each GPU's memory
  std::uint64_t gpu_other_residency_bytes = 0;  ///< the same with the other value of `pipeline.residency`
  std::uint64_t gpu_free_bytes = 0;             ///< free memory of the GPU with the least, in bytes
  std::uint64_t gpu_allowed_bytes = 0;          ///< bytes that a run may use: `gpu.memory_fraction` of `gpu_free_bytes`
  std::string gpu_unknown;                      ///< what `gpu_bytes` leaves out; else empty

  int slots = 0;                          ///< slots of all GPUs, or of the CPU
  std::uint64_t slot_bytes = 0;           ///< bytes of a slot, in the memory of the device that decodes
  std::uint64_t host_slot_bytes = 0;      ///< most host memory of a slot; with GPUs as far as these slides touch it
  std::uint64_t staging_bytes = 0;        ///< pinned host memory through which tiles pass to all GPUs
  std::uint64_t carry_bytes = 0;          ///< all host buffers of carried rows
  std::uint64_t results_bytes = 0;        ///< pinned host memory for results and tables of tiles
  std::uint64_t maps_bytes = 0;           ///< most bytes of maps of slides in flight and of waiting results
  std::uint64_t decode_bytes = 0;         ///< most bytes for the tiles that are being decoded
  std::uint64_t small_levels_bytes = 0;   ///< most bytes of small levels and masks, as tissue and stains need
  std::uint64_t opening_bytes = 0;        ///< most bytes of compared levels, profiles and XML while slides are opened
  std::uint64_t tables_bytes = 0;         ///< most bytes of tables of slides that are open together
  int slots_used = 0;                     ///< slots that these slides can use
  std::uint64_t carry_touched_bytes = 0;  ///< part of `carry_bytes` that these slides touch
  int output_slots = 0;                   ///< slots for rows of images
  std::uint64_t output_slot_bytes = 0;
  std::uint64_t networks_bytes = 0;  ///< most host memory of networks and of their tiles
  NetworkForecast network;
  std::uint64_t tissue_network_bytes = 0;  ///< weights and sessions of the network of `tissue.model`
  std::uint64_t pyramids_bytes = 0;        ///< most bytes of tile rows of images in flight
  std::uint64_t encoders_bytes = 0;        ///< most bytes for the tiles of images that threads are encoding

  std::vector<SlideForecast> slides;

  /// Most host memory of the run.
  /// @return Bytes, without the program itself and a few MiB per thread.
  std::uint64_t host_bytes() const noexcept;
  /// Host memory with slots, carried rows and decoding only as far as these slides touch them.
  /// @return Bytes; `host_bytes` without slides.
  std::uint64_t touched_bytes() const noexcept;
  /// The part of the host memory that images need.
  /// @return Bytes of output slots, pyramids and encoders.
  std::uint64_t images_bytes() const noexcept {
    return static_cast<std::uint64_t>(output_slots) * output_slot_bytes + pyramids_bytes + encoders_bytes;
  }
  /// Tells whether each GPU has enough memory.
  /// @return True also for a run on the CPU.
  bool fits_gpu() const noexcept { return gpus == 0 || gpu_bytes <= gpu_allowed_bytes; }
};

/// Opens and plans each slide. It starts and writes nothing. A network may compute one batch to find its memory.
/// @param config  The configuration of the run.
/// @param slides  Paths of the slides. A slide that can't be opened or planned has an error in the result.
/// @param options  GPUs to assume.
/// @return The forecast.
/// @throws ConfigError  The configuration can't be run.
RunForecast forecast_run(const Config& config, const std::vector<std::string>& slides,
                         const ForecastOptions& options = {});

}  // namespace slidestream
