#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <string>

#include "runtime/trace.hpp"
#include "volume/loaded_network.hpp"
#include "volume/schedule.hpp"
#include "volume/volume_networks.hpp"
#include "volume/volume_work.hpp"

namespace slidestream::volume {

/// Has networks compute fragments. Those that are under way can be ended. Thread-safe.
class FragmentRuns {
 public:
  /// The arguments outlive it.
  FragmentRuns(const Config& config, const VolumeNetworks& networks, const RunControl& control)
      : config_(config), networks_(networks), control_(control) {}

  /// Puts what the network gives into the volume's fusion. \return false where the run was stopped before that
  /// \throws Error in one line; DeviceFullError, and CudaError where the GPU is lost
  bool compute(VolumeWork& work, const ScheduleStep& step, std::shared_ptr<const LoadedNetwork> network);
  /// Ends all where the run is stopped, and those that took longer than `input.max_seconds`.
  void watch();

 private:
  struct One {
    std::shared_ptr<const LoadedNetwork> network;
    LoadedNetwork::Terminator terminator;
    runtime::Clock::time_point begun = runtime::Clock::now();
    bool over = false;  ///< its time is
  };
  using Place = std::list<One>::iterator;

  Place begin(std::shared_ptr<const LoadedNetwork> network);
  /// \return whether its time was over
  bool end(Place place);

  const Config& config_;
  const VolumeNetworks& networks_;
  const RunControl& control_;
  std::mutex mutex_;
  std::list<One> all_;  ///< guarded by mutex_
};

}  // namespace slidestream::volume
