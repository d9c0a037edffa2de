#include "volume/fragment_runs.hpp"

#include <chrono>
#include <iterator>
#include <slidestream/error.hpp>
#include <utility>

#include "volume/volume_run.hpp"

namespace slidestream::volume {

FragmentRuns::Place FragmentRuns::begin(std::shared_ptr<const LoadedNetwork> network) {
  One one;
  one.terminator = network->terminator();
  one.network = std::move(network);
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(one));
  return std::prev(all_.end());
}

bool FragmentRuns::end(Place place) {
  const std::lock_guard lock(mutex_);
  const bool over = place->over;
  all_.erase(place);
  return over;
}

void FragmentRuns::watch() {
  const bool is_stopped = control_.stop_requested();
  const int limit = config_.input.max_seconds;
  const std::lock_guard lock(mutex_);
  for (One& one : all_) {
    if (limit > 0 && runtime::Clock::now() - one.begun > std::chrono::seconds(limit)) one.over = true;
    if (is_stopped || one.over) one.network->terminate(one.terminator);
  }
}

bool FragmentRuns::compute(VolumeWork& work, const ScheduleStep& step, std::shared_ptr<const LoadedNetwork> network) {
  const FragmentTask& task = step.task;
  FragmentMemory memory = networks_.take_memory(step.place);
  work.cut(memory.fragment, task.fragment, static_cast<float>(config_.volume.fill));
  const auto in_fragment = [&](const std::string& cause) {
    return networks_.file(task.network) + ": fragment " + std::to_string(task.fragment + 1) + " of " +
           std::to_string(fragments_of(config_)) + ": " + cause;
  };
  const LoadedNetwork& runs = *network;
  const Place running = begin(std::move(network));
  try {
    runs.run(memory, running->terminator);
  } catch (const CudaError&) {
    end(running);
    throw;
  } catch (const Error& error) {
    const std::string cause = error.what();
    const bool over = end(running);
    if (!over && control_.stop_requested()) return false;
    throw Error(in_fragment(
        over ? "it takes longer than input.max_seconds = " + std::to_string(config_.input.max_seconds) : cause));
  } catch (...) {
    end(running);
    throw;
  }
  end(running);
  try {
    memory.put_into(*work.fusion, task.fragment);
  } catch (const CudaError&) {
    throw;
  } catch (const Error& error) {
    throw Error(in_fragment(error.what()));
  }
  networks_.give_back(std::move(memory), step.place);
  return true;
}

}  // namespace slidestream::volume
