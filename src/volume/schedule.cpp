#include "volume/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace slidestream::volume {

Schedule::Schedule(std::vector<NetworkNeeds> networks, std::size_t fragments, std::uint64_t budget, std::size_t workers)
    : fragments_(fragments), budget_(budget), workers_(std::max<std::size_t>(workers, 1)) {
  if (networks.empty() || fragments == 0 || (networks.size() != 1 && networks.size() != fragments)) {
    throw std::invalid_argument("volumes have one network, or one per fragment");
  }
  for (const NetworkNeeds& needs : networks) networks_.push_back({needs});
}

std::uint64_t Schedule::most_for_volume() const noexcept {
  std::uint64_t most = 0;
  for (const NetworkState& network : networks_) most = std::max(most, network.needs.loaded + network.needs.run);
  return budget_ > most ? budget_ - most : 0;
}

std::optional<std::vector<std::size_t>> Schedule::admit(std::size_t number, std::uint64_t bytes) {
  std::uint64_t all = bytes;
  for (const VolumeState& other : volumes_) all += other.bytes;
  std::uint64_t most = most_for_volume();
  if (!volumes_.empty()) {
    // Another one mustn't keep workers from computing.
    std::uint64_t run = 0;
    for (const NetworkState& network : networks_) run = std::max(run, network.needs.run);
    const std::uint64_t others = run * (std::min(workers_, fragments_) - 1);
    most = most > others ? most - others : 0;
  }
  if (all > most) return std::nullopt;
  auto way = make_way(bytes, work(), none);
  if (!way) return std::nullopt;
  used_ += bytes;
  VolumeState& state = volumes_.emplace_back();
  state.number = number;
  state.bytes = bytes;
  state.left.resize(fragments_);
  std::iota(state.left.begin(), state.left.end(), std::size_t{0});
  return way;
}

void Schedule::ready(std::size_t number) { volume(number).ready = true; }

void Schedule::drop(std::size_t number) { volume(number).left.clear(); }

void Schedule::release(std::size_t number) {
  const VolumeState& state = volume(number);
  if (state.running > 0) throw std::logic_error("a volume leaves while it is computed");
  used_ -= state.bytes;
  std::erase_if(volumes_, [number](const VolumeState& each) { return each.number == number; });
}

std::optional<ScheduleStep> Schedule::next() {
  const std::vector<std::size_t> waiting = work();
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    if (waiting[i] == 0 || networks_[i].state != State::loaded) continue;
    auto way = make_way(networks_[i].needs.run, waiting, i);
    if (!way) continue;
    ScheduleStep step = begin(i);
    step.unload = std::move(*way);
    return step;
  }
  std::vector<std::size_t> absent;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    if (waiting[i] > 0 && networks_[i].state == State::absent) absent.push_back(i);
  }
  std::ranges::stable_sort(absent, std::ranges::greater{}, [&](std::size_t i) { return waiting[i]; });
  for (const std::size_t i : absent) {
    NetworkState& network = networks_[i];
    auto way = make_way(network.needs.loaded + network.needs.run, waiting, i);
    if (!way) continue;
    used_ += network.needs.loaded;
    network.state = State::loading;
    ++loads_;
    ScheduleStep step = begin(i);
    step.unload = std::move(*way);
    step.load = true;
    return step;
  }
  return std::nullopt;
}

void Schedule::loaded(std::size_t network) { networks_[network].state = State::loaded; }

bool Schedule::done(const FragmentTask& task) {
  NetworkState& network = networks_[task.network];
  used_ -= network.needs.run;
  --network.running;
  VolumeState& state = volume(task.volume);
  --state.running;
  return state.running == 0 && state.left.empty();
}

std::vector<std::size_t> Schedule::work() const {
  std::vector<std::size_t> waiting(networks_.size());
  for (const VolumeState& state : volumes_) {
    if (!state.ready) continue;
    for (const std::size_t fragment : state.left) ++waiting[network_of(fragment)];
  }
  return waiting;
}

Schedule::VolumeState& Schedule::volume(std::size_t number) {
  const auto found = std::ranges::find(volumes_, number, &VolumeState::number);
  if (found == volumes_.end()) throw std::logic_error("a volume that wasn't admitted");
  return *found;
}

/// The first fragment of the oldest volume that waits for the network.
ScheduleStep Schedule::begin(std::size_t network) {
  networks_[network].last_used = ++clock_;
  ++networks_[network].running;
  used_ += networks_[network].needs.run;
  for (VolumeState& state : volumes_) {
    if (!state.ready) continue;
    const auto found = std::ranges::find(state.left, network, [this](std::size_t i) { return network_of(i); });
    if (found == state.left.end()) continue;
    ScheduleStep step;
    step.task = {state.number, *found, network};
    state.left.erase(found);
    ++state.running;
    return step;
  }
  throw std::logic_error("no fragment waits for the network");
}

/// Unloads as many idle networks as `bytes` need: first those without work, and of these the ones that were used last.
/// Networks are used in turn, so that it is longest until these are used again. Nothing changes if that isn't enough.
std::optional<std::vector<std::size_t>> Schedule::make_way(std::uint64_t bytes, const std::vector<std::size_t>& waiting,
                                                           std::size_t keep) {
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    if (networks_[i].state == State::loaded && networks_[i].running == 0 && i != keep) idle.push_back(i);
  }
  std::ranges::sort(idle, [&](std::size_t a, std::size_t b) {
    const bool a_works = waiting[a] > 0;
    const bool b_works = waiting[b] > 0;
    return a_works != b_works ? b_works : networks_[a].last_used > networks_[b].last_used;
  });
  std::vector<std::size_t> way;
  std::uint64_t free = budget_ - used_;
  for (const std::size_t i : idle) {
    if (bytes <= free) break;
    free += networks_[i].needs.loaded;
    way.push_back(i);
  }
  if (bytes > free) return std::nullopt;
  for (const std::size_t i : way) {
    networks_[i].state = State::absent;
    used_ -= networks_[i].needs.loaded;
  }
  return way;
}

}  // namespace slidestream::volume
