#pragma once

#include <cstddef>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/results.hpp>
#include <string>
#include <vector>

#include "runtime/trace.hpp"
#include "volume/volume_networks.hpp"

namespace slidestream::volume {

/// The stages of one run over volumes: open, read, compute, fuse, write. One lock decides what is begun next, behind
/// each piece of work. So no queue between the stages holds more than what was admitted to memory.
class VolumeGraph {
 public:
  virtual ~VolumeGraph() = default;

  /// Computes all volumes; in an arena of the run's threads. \throws what ended the run
  virtual void run() = 0;
  /// To be called several times a second: ends networks' runs that a stop or `input.max_seconds` wants to end.
  virtual void watch() = 0;
  /// How far it is, without the time; any thread.
  virtual Progress progress() const = 0;
  /// Adds results and stages; after `run`, also if that threw.
  virtual void finish(RunResult& result) = 0;
};

/// The arguments outlive the graph. \param workers  fragments that are computed at a time
/// \param longest_wait  for the memory of a GPU that is full and has nothing else of the run. Behind it the GPU is
///   closed, where there is another, and asked for room after each such time
std::unique_ptr<VolumeGraph> make_volume_graph(const Config& config, const std::vector<std::string>& paths,
                                               RunControl& control, const VolumeNetworks& networks, std::size_t workers,
                                               runtime::Clock::duration longest_wait);

}  // namespace slidestream::volume
