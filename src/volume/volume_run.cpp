#include "volume/volume_run.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <slidestream/error.hpp>
#include <system_error>
#include <thread>

#include "networks/network_gpus.hpp"
#include "networks/network_shapes.hpp"
#include "runtime/forked.hpp"
#include "runtime/machine.hpp"
#include "runtime/trace.hpp"
#include "stages/run_threads.hpp"
#include "volume/volume_graph.hpp"
#include "volume/volume_networks.hpp"

namespace slidestream::volume {
namespace {

using networks::mib_left_text;
using networks::mib_text;

/// Watches a run, and tells how far it is, ten times a second and once at the end.
class Watcher {
 public:
  Watcher(VolumeGraph& graph, RunControl& control) : graph_(graph), control_(control) {
    thread_ = std::jthread([this](const std::stop_token& ends) { loop(ends); });
  }

  /// \throws what a call threw
  void end() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void loop(const std::stop_token& ends) noexcept {
    try {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      for (bool is_last = false; !is_last;) {
        ended.wait_for(lock, ends, std::chrono::milliseconds(100), [] { return false; });
        is_last = ends.stop_requested();
        graph_.watch();
        if (!control_.on_progress) continue;
        Progress progress = graph_.progress();
        progress.seconds = std::chrono::duration<double>(runtime::Clock::now() - begun_).count();
        control_.on_progress(progress);
      }
    } catch (...) {
      error_ = std::current_exception();
      control_.request_stop();
    }
  }

  VolumeGraph& graph_;
  RunControl& control_;
  runtime::Clock::time_point begun_ = runtime::Clock::now();
  std::exception_ptr error_;
  std::jthread thread_;
};

int wanted_threads(const Config& config) noexcept {
  return config.pipeline.threads > 0 ? config.pipeline.threads : runtime::available_processors();
}

}  // namespace

std::unique_ptr<Resampling> resampling_of(const Config& config, const NiftiHeader& header) {
  const std::vector<double>& spacing = config.volume.spacing;
  if (spacing.empty()) return nullptr;
  return std::make_unique<Resampling>(Extent{header.size[2], header.size[1], header.size[0]},
                                      header.geometry.spacing_mm(), Spacing{spacing[0], spacing[1], spacing[2]});
}

FragmentGrid grid_of(const Config& config, const NiftiHeader& header) {
  const std::vector<std::int64_t>& fragment = config.volume.fragment;
  const std::vector<std::int64_t>& grid = config.volume.grid;
  const auto resampling = resampling_of(config, header);
  const Extent own = {header.size[2], header.size[1], header.size[0]};
  return {resampling != nullptr ? resampling->grid() : own,
          {fragment[0], fragment[1], fragment[2]},
          {grid[0], grid[1], grid[2]}};
}

std::size_t fragments_of(const Config& config) noexcept {
  const std::vector<std::int64_t>& grid = config.volume.grid;
  return static_cast<std::size_t>(grid[0] * grid[1] * grid[2]);
}

std::uint64_t memory_budget(const Config& config) {
  if (config.volume.memory_mib > 0) return static_cast<std::uint64_t>(config.volume.memory_mib) << 20;
  constexpr std::uint64_t unknown = std::uint64_t{4} << 30;
  return runtime::available_memory().value_or(unknown) / 5 * 4;
}

std::uint64_t volumes_budget(const Config& config, const VolumeNetworks& networks) {
  const std::uint64_t budget = memory_budget(config);
  const std::uint64_t beside = networks.bytes_beside_gpu() * fragments_at_a_time(config, networks) * networks.gpus();
  return budget > beside ? budget - beside : 0;
}

void check_budget(const Config& config, const VolumeNetworks& networks) {
  std::uint64_t most = 0;
  for (const NetworkNeeds& needs : networks.needs()) most = std::max(most, needs.loaded + needs.run);
  const std::uint64_t budget = memory_budget(config);
  if (networks.gpus() > 0) {
    const std::uint64_t on_gpu = std::ranges::min(networks.gpu_memory().budgets);
    if (most > on_gpu) {
      throw ConfigError("one network takes " + mib_text(most) + " of a GPU's memory with its fragment, and " +
                        mib_left_text(on_gpu) + " may be taken; raise gpu.memory_fraction, or lower volume.fragment");
    }
    most = networks.bytes_beside_gpu() * networks.gpus();
  }
  if (most < budget) return;
  throw ConfigError("one fragment takes " + mib_text(most) + " of memory with its network, and " +
                    mib_left_text(budget) + " may be taken; raise volume.memory_mib, or lower volume.fragment");
}

std::size_t fragments_at_a_time(const Config& config, const VolumeNetworks& networks) {
  if (networks.gpus() > 0) {
    const std::uint64_t each = std::max<std::uint64_t>(networks.bytes_beside_gpu() * networks.gpus(), 1);
    const auto most = static_cast<std::size_t>(memory_budget(config) / 2 / each);
    const int usual = slidestream::networks::usual_sessions_of_volumes;
    const int wanted = config.model.sessions > 0 ? config.model.sessions : usual;
    return std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(wanted));
  }
  const int threads = wanted_threads(config);
  return static_cast<std::size_t>(config.model.sessions > 0 ? std::min(config.model.sessions, threads) : threads);
}

Schedule make_schedule(const Config& config, const VolumeNetworks& networks, std::size_t workers) {
  const bool has_layers = config.volume.fusion == VolumeFusion::mean;
  return {networks.needs(), fragments_of(config),  volumes_budget(config, networks),
          workers,          networks.gpu_memory(), has_layers ? static_cast<std::size_t>(config.volume.grid[0]) : 0};
}

std::uint64_t bytes_of_volume(const Config& config, const VolumeNetworks& networks, const NiftiHeader& header,
                              std::uint64_t most) {
  const auto check_voxels = [allowed = config.input.max_pixels](std::int64_t voxels, const std::string& where) {
    if (voxels <= allowed) return;
    throw Error("it has " + std::to_string(voxels) + " voxels" + where + ", and input.max_pixels allows " +
                std::to_string(allowed));
  };
  check_voxels(header.voxels(), "");
  const FragmentGrid grid = grid_of(config, header);
  const std::string at_spacing = config.volume.spacing.empty() ? "" : " at volume.spacing";
  if (!grid.covers()) {
    std::string size;
    for (const std::int64_t side : grid.volume()) size += (size.empty() ? "" : " x ") + std::to_string(side);
    throw Error("fragments leave samples out of its " + size + " (z, y, x)" + at_spacing +
                "; raise volume.grid or volume.fragment");
  }
  check_voxels(count_of(grid.volume()), at_spacing);
  check_fusion(config.volume.fusion, grid);
  const auto voxels = static_cast<std::uint64_t>(header.voxels());
  const std::uint64_t bytes = voxels * (sizeof(float) + bytes_of(networks.sample())) +
                              fusion_bytes(config.volume.fusion, grid, networks.output());
  if (bytes > most) {
    throw Error("it takes " + mib_text(bytes) + " of memory, and " + mib_left_text(most) +
                " are left beside a network; raise volume.memory_mib");
  }
  return bytes;
}

RunResult run_volumes(const Config& config, const VolumeNetworks& networks, const std::vector<std::string>& volumes,
                      RunControl& control, std::chrono::milliseconds longest_wait) {
  runtime::require_whole_process();
  const std::size_t gpus = networks.gpus();
  const int threads = static_cast<int>(threads_to_be_had(wanted_threads(config), {gpus}, control.on_message).graph);
  std::size_t workers = fragments_at_a_time(config, networks);
  if (gpus == 0) workers = std::min(workers, static_cast<std::size_t>(threads));
  if (control.on_message) {
    control.on_message(std::to_string(networks.count()) + (networks.count() == 1 ? " network, " : " networks, ") +
                       networks.description() + "; " + std::to_string(workers) +
                       (workers == 1 ? " fragment" : " fragments") + " at a time" + (gpus > 1 ? " on each" : ""));
  }
  RunResult result;
  result.threads = threads;
  result.devices = static_cast<int>(gpus);
  result.backend = gpus > 0 ? "cuda" : "cpu";
  // Who waits for a GPU has a thread of its own, and so has who loads a network there.
  const int all_threads = threads + static_cast<int>((workers + 1) * gpus);
  const runtime::Work work;
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(all_threads));
  tbb::task_arena arena(all_threads);
  try {
    start_workers(all_threads);
    arena.execute([&] {
      const auto graph = make_volume_graph(config, volumes, control, networks, workers, longest_wait);
      const auto begun = runtime::Clock::now();
      Watcher watcher(*graph, control);
      try {
        graph->run();
      } catch (const OutputError&) {
        throw;
      } catch (const Error& error) {
        // A network that can't be loaded, say. What was finished is kept.
        result.failure = error.what();
      }
      watcher.end();
      result.seconds = std::chrono::duration<double>(runtime::Clock::now() - begun).count();
      graph->finish(result);
    });
  } catch (const std::system_error& error) {
    throw ConfigError(std::string("a thread can't be started: ") + error.code().message() +
                      "; lower pipeline.threads or raise the system's limits");
  }
  result.interrupted = control.stop_requested() && result.slides.size() < volumes.size();
  return result;
}

}  // namespace slidestream::volume
