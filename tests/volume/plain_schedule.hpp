#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "volume/schedule.hpp"

namespace slidestream::volume {

/// Decides as `Schedule` does where no GPU is full, and looks at all that waits for each decision.
class PlainSchedule {
 public:
  PlainSchedule(const std::vector<NetworkNeeds>& networks, std::size_t fragments, std::uint64_t budget,
                std::size_t workers, const ScheduleGpus& gpus = {}, std::size_t layers = 0);

  std::uint64_t most_for_volume() const noexcept;
  std::optional<std::vector<std::size_t>> admit(std::size_t number, std::uint64_t bytes);
  void ready(std::size_t number);
  void drop(std::size_t number);
  void release(std::size_t number);

  std::optional<ScheduleStep> next();
  std::optional<ScheduleLoad> next_load();
  void loaded(std::size_t network, std::size_t place = 0);
  bool done(const FragmentTask& task, std::size_t place = 0);

  std::uint64_t used() const noexcept { return host_.used; }

 private:
  enum class State { absent, loading, loaded };
  struct NetworkState {
    NetworkNeeds needs;
    State state = State::absent;
    std::size_t running = 0;
    std::uint64_t last_used = 0;
  };
  struct Memory {
    std::uint64_t budget = 0;
    std::uint64_t used = 0;
  };
  struct Place {
    std::vector<NetworkState> networks;
    Memory own;
    std::size_t running = 0;
    std::optional<std::size_t> ahead;
  };
  struct VolumeState {
    std::size_t number = 0;
    std::uint64_t bytes = 0;
    bool ready = false;
    std::vector<std::size_t> left;
    std::vector<std::size_t> layers;
    std::size_t running = 0;
  };

  std::size_t networks() const noexcept { return places_.front().networks.size(); }
  std::size_t network_of(std::size_t fragment) const noexcept { return networks() == 1 ? 0 : fragment; }
  Memory& memory(Place& place) noexcept { return has_gpus_ ? place.own : host_; }
  bool is_elsewhere(std::size_t network, const Place& place) const noexcept;
  std::size_t layer_of(std::size_t fragment) const noexcept { return fragment * layers_ / fragments_; }
  bool may_begin(const VolumeState& volume, std::size_t fragment) const noexcept;
  std::vector<std::size_t> work(bool also_unread = false) const;
  VolumeState& volume(std::size_t number);
  std::optional<ScheduleStep> next_at(Place& place, const std::vector<std::size_t>& waiting);
  ScheduleStep begin(Place& place, std::size_t network);
  std::optional<std::size_t> to_load(const Place& place, const std::vector<std::size_t>& waiting) const;
  std::optional<std::vector<std::size_t>> make_way(Place& place, std::uint64_t bytes,
                                                   const std::vector<std::size_t>& waiting, std::size_t keep,
                                                   bool keeps_work = false);

  static constexpr auto none = static_cast<std::size_t>(-1);

  bool has_gpus_;
  std::size_t runs_;
  std::vector<Place> places_;
  std::size_t fragments_;
  std::size_t layers_;
  Memory host_;
  std::size_t workers_;
  std::uint64_t clock_ = 0;
  std::size_t loads_ = 0;
  std::vector<VolumeState> volumes_;
};

inline PlainSchedule::PlainSchedule(const std::vector<NetworkNeeds>& networks, std::size_t fragments,
                                    std::uint64_t budget, std::size_t workers, const ScheduleGpus& gpus,
                                    std::size_t layers)
    : has_gpus_(!gpus.budgets.empty()),
      runs_(has_gpus_ ? std::max<std::size_t>(gpus.runs, 1) : 0),
      places_(std::max<std::size_t>(gpus.budgets.size(), 1)),
      fragments_(fragments),
      layers_(layers),
      host_{budget},
      workers_(std::max<std::size_t>(workers, 1)) {
  if (networks.empty() || fragments == 0 || (networks.size() != 1 && networks.size() != fragments)) {
    throw std::invalid_argument("volumes have one network, or one per fragment");
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    for (const NetworkNeeds& needs : networks) places_[i].networks.push_back({needs});
    if (has_gpus_) places_[i].own.budget = gpus.budgets[i];
  }
}

inline std::uint64_t PlainSchedule::most_for_volume() const noexcept {
  if (has_gpus_) return host_.budget;
  std::uint64_t most = 0;
  for (const NetworkState& network : places_.front().networks) {
    most = std::max(most, network.needs.loaded + network.needs.run);
  }
  return host_.budget > most ? host_.budget - most : 0;
}

inline std::optional<std::vector<std::size_t>> PlainSchedule::admit(std::size_t number, std::uint64_t bytes) {
  std::uint64_t all = bytes;
  for (const VolumeState& other : volumes_) all += other.bytes;
  std::uint64_t most = most_for_volume();
  if (!volumes_.empty() && !has_gpus_) {
    // Another one mustn't keep workers from computing.
    std::uint64_t run = 0;
    for (const NetworkState& network : places_.front().networks) run = std::max(run, network.needs.run);
    const std::uint64_t others = run * (std::min(workers_, fragments_) - 1);
    most = most > others ? most - others : 0;
  }
  if (all > most) return std::nullopt;
  std::optional<std::vector<std::size_t>> way(std::in_place);
  if (!has_gpus_) way = make_way(places_.front(), bytes, work(), none);
  if (!way) return std::nullopt;
  host_.used += bytes;
  VolumeState& state = volumes_.emplace_back();
  state.number = number;
  state.bytes = bytes;
  state.left.resize(fragments_);
  std::iota(state.left.begin(), state.left.end(), std::size_t{0});
  state.layers.resize(layers_);
  for (std::size_t i = 0; layers_ > 0 && i < fragments_; ++i) ++state.layers[layer_of(i)];
  return way;
}

inline void PlainSchedule::ready(std::size_t number) { volume(number).ready = true; }

inline void PlainSchedule::drop(std::size_t number) { volume(number).left.clear(); }

inline void PlainSchedule::release(std::size_t number) {
  const VolumeState& state = volume(number);
  if (state.running > 0) throw std::logic_error("a volume leaves while it is computed");
  host_.used -= state.bytes;
  std::erase_if(volumes_, [number](const VolumeState& each) { return each.number == number; });
}

inline std::optional<ScheduleStep> PlainSchedule::next() {
  const std::vector<std::size_t> waiting = work();
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return places_[i].running; });
  for (const std::size_t i : order) {
    if (places_[i].running == workers_) continue;
    auto step = next_at(places_[i], waiting);
    if (!step) continue;
    step->place = i;
    return step;
  }
  return std::nullopt;
}

inline std::optional<ScheduleStep> PlainSchedule::next_at(Place& place, const std::vector<std::size_t>& waiting) {
  std::vector<std::size_t> absent;
  for (std::size_t i = 0; i < networks(); ++i) {
    const NetworkState& network = place.networks[i];
    if (waiting[i] == 0) continue;
    if (network.state == State::absent && (waiting[i] > 1 || !is_elsewhere(i, place))) absent.push_back(i);
    if (network.state != State::loaded || (runs_ > 0 && network.running == runs_)) continue;
    auto way = make_way(place, network.needs.run, waiting, i);
    if (!way) continue;
    ScheduleStep step = begin(place, i);
    step.unload = std::move(*way);
    return step;
  }
  // One worker is left for the network that is loaded ahead.
  if (place.ahead && place.running + 1 >= workers_) return std::nullopt;
  std::ranges::stable_sort(absent, std::ranges::greater{},
                           [&](std::size_t i) { return std::pair(!is_elsewhere(i, place), waiting[i]); });
  for (const std::size_t i : absent) {
    NetworkState& network = place.networks[i];
    auto way = make_way(place, network.needs.loaded + network.needs.run, waiting, i);
    if (!way) continue;
    memory(place).used += network.needs.loaded;
    network.state = State::loading;
    ++loads_;
    ScheduleStep step = begin(place, i);
    step.unload = std::move(*way);
    step.load = true;
    return step;
  }
  return std::nullopt;
}

/// The absent network with the most work that no other GPU has; nothing where enough wait for a worker.
inline std::optional<std::size_t> PlainSchedule::to_load(const Place& place,
                                                         const std::vector<std::size_t>& waiting) const {
  std::optional<std::size_t> first, other;
  std::size_t spare = 0;
  for (std::size_t i = 0; i < networks(); ++i) {
    const NetworkState& network = place.networks[i];
    if (waiting[i] == 0) continue;
    if (network.state == State::loaded && network.running == 0) ++spare;
    if (network.state != State::absent) continue;
    std::optional<std::size_t>& found = is_elsewhere(i, place) ? other : first;
    if (!found || waiting[i] > waiting[*found]) found = i;
  }
  if (first) return spare < workers_ ? first : std::nullopt;
  return other && spare == 0 && waiting[*other] > 1 ? other : std::nullopt;
}

inline std::optional<ScheduleLoad> PlainSchedule::next_load() {
  if (!has_gpus_) return std::nullopt;
  const bool are_being_read = std::ranges::none_of(volumes_, &VolumeState::ready);
  const std::vector<std::size_t> waiting = work(are_being_read);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.ahead) continue;
    // A GPU that isn't busy has work that another one may take up.
    if (place.running < workers_ && !are_being_read) continue;
    const auto network = to_load(place, waiting);
    if (!network) continue;
    NetworkState& state = place.networks[*network];
    auto way = make_way(place, state.needs.loaded + state.needs.run, waiting, *network, true);
    if (!way) continue;
    memory(place).used += state.needs.loaded;
    state.state = State::loading;
    place.ahead = network;
    ++loads_;
    return ScheduleLoad{*network, i, std::move(*way)};
  }
  return std::nullopt;
}

inline bool PlainSchedule::is_elsewhere(std::size_t network, const Place& place) const noexcept {
  return std::ranges::any_of(
      places_, [&](const Place& other) { return &other != &place && other.networks[network].state != State::absent; });
}

inline void PlainSchedule::loaded(std::size_t network, std::size_t place) {
  Place& at = places_[place];
  at.networks[network].state = State::loaded;
  if (at.ahead == network) at.ahead.reset();
}

inline bool PlainSchedule::done(const FragmentTask& task, std::size_t place) {
  Place& at = places_[place];
  NetworkState& network = at.networks[task.network];
  memory(at).used -= network.needs.run;
  --network.running;
  --at.running;
  VolumeState& state = volume(task.volume);
  --state.running;
  if (layers_ > 0) --state.layers[layer_of(task.fragment)];
  return state.running == 0 && state.left.empty();
}

inline std::vector<std::size_t> PlainSchedule::work(bool also_unread) const {
  std::vector<std::size_t> waiting(networks());
  for (const VolumeState& state : volumes_) {
    if (!state.ready && !also_unread) continue;
    for (const std::size_t fragment : state.left) {
      if (may_begin(state, fragment)) ++waiting[network_of(fragment)];
    }
  }
  return waiting;
}

inline bool PlainSchedule::may_begin(const VolumeState& volume, std::size_t fragment) const noexcept {
  if (layers_ == 0) return true;
  const auto first = std::ranges::find_if(volume.layers, [](std::size_t left) { return left > 0; });
  return layer_of(fragment) <= static_cast<std::size_t>(first - volume.layers.begin()) + 1;
}

inline PlainSchedule::VolumeState& PlainSchedule::volume(std::size_t number) {
  const auto found = std::ranges::find(volumes_, number, &VolumeState::number);
  if (found == volumes_.end()) throw std::logic_error("a volume that wasn't admitted");
  return *found;
}

/// The first fragment of the oldest volume that waits for the network.
inline ScheduleStep PlainSchedule::begin(Place& place, std::size_t network) {
  place.networks[network].last_used = ++clock_;
  ++place.networks[network].running;
  ++place.running;
  memory(place).used += place.networks[network].needs.run;
  for (VolumeState& state : volumes_) {
    if (!state.ready) continue;
    const auto found = std::ranges::find(state.left, network, [this](std::size_t i) { return network_of(i); });
    if (found == state.left.end() || !may_begin(state, *found)) continue;
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
/// \param keeps_work  those with work stay
inline std::optional<std::vector<std::size_t>> PlainSchedule::make_way(Place& place, std::uint64_t bytes,
                                                                       const std::vector<std::size_t>& waiting,
                                                                       std::size_t keep, bool keeps_work) {
  std::vector<NetworkState>& networks = place.networks;
  Memory& memory = this->memory(place);
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const bool is_idle = networks[i].state == State::loaded && networks[i].running == 0;
    if (is_idle && i != keep && !(keeps_work && waiting[i] > 0)) idle.push_back(i);
  }
  std::ranges::sort(idle, [&](std::size_t a, std::size_t b) {
    const bool a_works = waiting[a] > 0;
    const bool b_works = waiting[b] > 0;
    return a_works != b_works ? b_works : networks[a].last_used > networks[b].last_used;
  });
  std::vector<std::size_t> way;
  std::uint64_t free = memory.budget - memory.used;
  for (const std::size_t i : idle) {
    if (bytes <= free) break;
    free += networks[i].needs.loaded;
    way.push_back(i);
  }
  if (bytes > free) return std::nullopt;
  for (const std::size_t i : way) {
    networks[i].state = State::absent;
    memory.used -= networks[i].needs.loaded;
  }
  return way;
}

}  // namespace slidestream::volume
