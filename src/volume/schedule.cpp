#include "volume/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace slidestream::volume {

Schedule::Schedule(const std::vector<NetworkNeeds>& networks, std::size_t fragments, std::uint64_t budget,
                   std::size_t workers, const ScheduleGpus& gpus, std::size_t layers)
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

std::uint64_t Schedule::most_for_volume() const noexcept {
  if (has_gpus_) return host_.budget;
  std::uint64_t most = 0;
  for (const NetworkState& network : places_.front().networks) {
    most = std::max(most, network.needs.loaded + network.needs.run);
  }
  return host_.budget > most ? host_.budget - most : 0;
}

std::optional<std::vector<std::size_t>> Schedule::admit(std::size_t number, std::uint64_t bytes) {
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

void Schedule::ready(std::size_t number) { volume(number).ready = true; }

void Schedule::drop(std::size_t number) { volume(number).left.clear(); }

void Schedule::release(std::size_t number) {
  const VolumeState& state = volume(number);
  if (state.running > 0) throw std::logic_error("a volume leaves while it is computed");
  host_.used -= state.bytes;
  std::erase_if(volumes_, [number](const VolumeState& each) { return each.number == number; });
}

std::optional<ScheduleStep> Schedule::next() {
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

std::optional<ScheduleStep> Schedule::next_at(Place& place, const std::vector<std::size_t>& waiting) {
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
std::optional<std::size_t> Schedule::to_load(const Place& place, const std::vector<std::size_t>& waiting) const {
  std::optional<std::size_t> found;
  std::size_t spare = 0;
  for (std::size_t i = 0; i < networks(); ++i) {
    const NetworkState& network = place.networks[i];
    if (waiting[i] == 0) continue;
    if (network.state == State::loaded && network.running == 0) ++spare;
    const bool is_absent = network.state == State::absent && !is_elsewhere(i, place);
    if (is_absent && (!found || waiting[i] > waiting[*found])) found = i;
  }
  return spare < workers_ ? found : std::nullopt;
}

std::optional<ScheduleLoad> Schedule::next_load() {
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

bool Schedule::is_elsewhere(std::size_t network, const Place& place) const noexcept {
  return std::ranges::any_of(
      places_, [&](const Place& other) { return &other != &place && other.networks[network].state != State::absent; });
}

void Schedule::loaded(std::size_t network, std::size_t place) {
  Place& at = places_[place];
  at.networks[network].state = State::loaded;
  if (at.ahead == network) at.ahead.reset();
}

bool Schedule::done(const FragmentTask& task, std::size_t place) {
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

std::vector<std::size_t> Schedule::work(bool also_unread) const {
  std::vector<std::size_t> waiting(networks());
  for (const VolumeState& state : volumes_) {
    if (!state.ready && !also_unread) continue;
    for (const std::size_t fragment : state.left) {
      if (may_begin(state, fragment)) ++waiting[network_of(fragment)];
    }
  }
  return waiting;
}

bool Schedule::may_begin(const VolumeState& volume, std::size_t fragment) const noexcept {
  if (layers_ == 0) return true;
  const auto first = std::ranges::find_if(volume.layers, [](std::size_t left) { return left > 0; });
  return layer_of(fragment) <= static_cast<std::size_t>(first - volume.layers.begin()) + 1;
}

Schedule::VolumeState& Schedule::volume(std::size_t number) {
  const auto found = std::ranges::find(volumes_, number, &VolumeState::number);
  if (found == volumes_.end()) throw std::logic_error("a volume that wasn't admitted");
  return *found;
}

/// The first fragment of the oldest volume that waits for the network.
ScheduleStep Schedule::begin(Place& place, std::size_t network) {
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
std::optional<std::vector<std::size_t>> Schedule::make_way(Place& place, std::uint64_t bytes,
                                                           const std::vector<std::size_t>& waiting, std::size_t keep,
                                                           bool keeps_work) {
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
