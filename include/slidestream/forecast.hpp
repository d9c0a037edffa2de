#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

/// \file
/// What a run would do and take, without running it.

namespace slidestream {

/// What a GPU's model decides of a run's memory.
struct GpuModel {
  std::string name;
  std::size_t memory = 0;   ///< bytes that are free when nothing else runs, about
  int multiprocessors = 0;  ///< the JPEG decoder keeps something for each
};

/// Models by the name that stands for them on the command line: a40, a100, h100, h200.
std::span<const GpuModel> known_gpus();

/// The model of that name, in any case. \throws ConfigError naming the nearest.
GpuModel gpu_model(const std::string& name);

struct ForecastOptions {
  /// Stands for each GPU of the configuration, whatever this machine has. Without it, the GPUs that are here count;
  /// where there are none and the configuration wants some, an H100 is assumed.
  std::optional<GpuModel> assumed;
};

/// One slide of a run.
struct SlideForecast {
  std::string path;
  std::string error;  ///< one line when it would fail before its first strip, without the path
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string codec;
  std::uint64_t file_bytes = 0;
  std::int64_t windows_x = 0;
  std::int64_t windows_y = 0;
  std::int64_t batches = 0;
  std::int64_t most_rows = 0;     ///< of a batch, its own
  std::int64_t panels = 0;        ///< that the level is cut into side by side
  std::int64_t fragments = 0;     ///< that go to different GPUs
  std::uint64_t batch_bytes = 0;  ///< the most that a batch touches of its slot
  bool decoded_on_gpu = false;
  bool levels_on_gpu = false;      ///< of images
  std::int64_t network_tiles = 0;  ///< that networks may get
  std::int64_t network_batches = 0;

  std::int64_t windows() const noexcept { return windows_x * windows_y; }
};

/// What the networks of a run take. All of it is in `RunForecast::networks_bytes`.
struct NetworkForecast {
  std::string description;          ///< of the first: "ONNX Runtime 1.32.0, CPU"; empty: there is none
  bool mixed = false;               ///< slides share batches: those of slides are the most
  bool tissue_only = false;         ///< tiles without tissue aren't computed: tiles and batches are the most
  int side = 0;                     ///< of the first's tiles, pixels
  int batch = 0;                    ///< tiles at a time
  std::size_t sessions = 0;         ///< of all networks
  std::uint64_t session_bytes = 0;  ///< of each, in the mean: what a batch becomes, and what computing one took
  std::uint64_t weights_bytes = 0;
  std::uint64_t device_bytes = 0;   ///< of each GPU's memory, at most; 0: they compute on the CPU
  std::uint64_t batches_bytes = 0;  ///< tiles that wait for sessions, or come from them
  std::uint64_t bands_bytes = 0;    ///< rows and tiles of slides in flight, and rows of tiles of their images
  std::string unknown;              ///< why sessions aren't counted; mostly empty
};

/// A whole run.
struct RunForecast {
  std::string backend;  ///< "cpu" or "cuda"
  std::string why;      ///< one clause: why `auto` takes the CPU, or which GPUs are only assumed; may be empty
  int threads = 0;

  int gpus = 0;                                 ///< 0 on the CPU
  bool gpus_assumed = false;                    ///< they aren't here
  std::string gpu;                              ///< name of the first
  std::string engine;                           ///< of the windows, on the GPU
  std::uint64_t gpu_bytes = 0;                  ///< of each GPU's memory
  std::uint64_t gpu_other_residency_bytes = 0;  ///< the same with the other `pipeline.residency`
  std::uint64_t gpu_free_bytes = 0;             ///< of the fullest
  std::uint64_t gpu_allowed_bytes = 0;          ///< of these, by gpu.memory_fraction
  std::string gpu_unknown;                      ///< one clause: what `gpu_bytes` leaves out; mostly empty

  int slots = 0;  ///< of all GPUs, or of the CPU
  std::uint64_t slot_bytes = 0;
  std::uint64_t carry_bytes = 0;          ///< all buffers of carried rows on the host
  std::uint64_t results_bytes = 0;        ///< pinned on the host besides the slots
  std::uint64_t maps_bytes = 0;           ///< of slides in flight and of results that wait, at most
  int slots_used = 0;                     ///< as many as these slides have batches for
  std::uint64_t carry_touched_bytes = 0;  ///< of `carry_bytes`, by these slides
  int output_slots = 0;                   ///< bands of images under way
  std::uint64_t output_slot_bytes = 0;
  std::uint64_t networks_bytes = 0;  ///< of networks, and tiles that they get and give, of slides in flight, at most
  NetworkForecast network;
  std::uint64_t pyramids_bytes = 0;  ///< rows of tiles of images in flight, at most
  bool pinned = false;               ///< slots are taken at the start, not as they are touched

  std::vector<SlideForecast> slides;

  /// Host memory at most: what a thread needs for itself, a few MiB, and the program aren't in it.
  std::uint64_t host_bytes() const noexcept;
  /// The same as far as these slides reach into their slots.
  std::uint64_t touched_bytes() const noexcept;
  /// Of these, for images.
  std::uint64_t images_bytes() const noexcept {
    return static_cast<std::uint64_t>(output_slots) * output_slot_bytes + pyramids_bytes;
  }
  bool fits_gpu() const noexcept { return gpus == 0 || gpu_bytes <= gpu_allowed_bytes; }
};

/// Opens each slide and plans it; starts nothing and writes nothing. Slides that can't be opened have an error.
/// \throws ConfigError when the configuration can't be run.
RunForecast forecast_run(const Config& config, const std::vector<std::string>& slides,
                         const ForecastOptions& options = {});

}  // namespace slidestream
