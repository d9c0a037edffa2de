#include "volume/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace slidestream::volume {
namespace {

/// Fragments that a GPU computes, once it was full, until it gets a little more.
constexpr std::size_t computed_until_wider = 16;

}  // namespace

Schedule::Schedule(const std::vector<NetworkNeeds>& networks, std::size_t fragments, std::uint64_t budget,
                   std::size_t workers, const ScheduleGpus& gpus, std::size_t layers)
    : has_gpus_(!gpus.budgets.empty()),
      runs_(has_gpus_ ? std::max<std::size_t>(gpus.runs, 1) : 0),
      places_(std::max<std::size_t>(gpus.budgets.size(), 1)),
      fragments_(fragments),
      layers_(layers),
      host_{budget},
      workers_(std::max<std::size_t>(workers, 1)),
      waiting_(networks.size()) {
  if (networks.empty() || fragments == 0 || (networks.size() != 1 && networks.size() != fragments)) {
    throw std::invalid_argument("volumes have one network, or one per fragment");
  }
  least_of_one_ = networks.front().loaded + networks.front().run;
  for (const NetworkNeeds& needs : networks) {
    most_of_one_ = std::max(most_of_one_, needs.loaded + needs.run);
    least_of_one_ = std::min(least_of_one_, needs.loaded + needs.run);
    most_run_ = std::max(most_run_, needs.run);
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    place.networks.resize(networks.size());
    for (std::size_t network = 0; network < networks.size(); ++network) {
      place.networks[network].needs = networks[network];
    }
    place.most = workers_;
    if (has_gpus_) place.own.budget = place.whole = gpus.budgets[i];
  }
}

std::uint64_t Schedule::most_for_volume() const noexcept {
  if (has_gpus_) return host_.budget;
  return host_.budget > most_of_one_ ? host_.budget - most_of_one_ : 0;
}

std::optional<std::vector<std::size_t>> Schedule::admit(std::size_t number, std::uint64_t bytes) {
  std::uint64_t all = bytes;
  for (const VolumeState& other : volumes_) all += other.bytes;
  std::uint64_t most = most_for_volume();
  if (!volumes_.empty() && !has_gpus_) {
    // Another one mustn't keep workers from computing.
    const std::uint64_t others = most_run_ * (std::min(workers_, fragments_) - 1);
    most = most > others ? most - others : 0;
  }
  if (all > most) return std::nullopt;
  std::optional<std::vector<std::size_t>> way(std::in_place);
  if (!has_gpus_) way = make_way(places_.front(), bytes, none);
  if (!way) return std::nullopt;
  host_.used += bytes;
  VolumeState& state = volumes_.emplace_back();
  state.number = number;
  state.bytes = bytes;
  for (std::size_t i = 0; i < fragments_; ++i) state.left.insert(state.left.end(), i);
  state.layers.resize(layers_);
  for (std::size_t i = 0; layers_ > 0 && i < fragments_; ++i) ++state.layers[layer_of(i)];
  open_layers(state);
  count_all();
  return way;
}

void Schedule::ready(std::size_t number) {
  volume(number).ready = true;
  count_all();
}

void Schedule::drop(std::size_t number) {
  VolumeState& state = volume(number);
  if (state.left.empty()) return;
  state.left.clear();
  count_all();
}

void Schedule::release(std::size_t number) {
  const VolumeState& state = volume(number);
  if (state.running > 0) throw std::logic_error("a volume leaves while it is computed");
  host_.used -= state.bytes;
  std::erase_if(volumes_, [number](const VolumeState& each) { return each.number == number; });
  count_all();
}

std::optional<ScheduleStep> Schedule::next() {
  if (are_being_read_) return std::nullopt;
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return places_[i].running; });
  for (const std::size_t i : order) {
    Place& place = places_[i];
    if (place.running + (is_narrow(place) && place.ahead ? 1 : 0) >= place.most) continue;
    auto step = next_at(place);
    if (!step) continue;
    step->place = i;
    return step;
  }
  return std::nullopt;
}

std::optional<ScheduleStep> Schedule::next_at(Place& place) {
  for (const std::size_t i : place.usable) {
    auto way = make_way(place, place.networks[i].needs.run, i);
    if (!way) continue;
    ScheduleStep step = begin(place, i);
    step.unload = std::move(*way);
    return step;
  }
  // One worker is left for the network that is loaded ahead.
  if (place.ahead && place.running + 1 >= workers_) return std::nullopt;
  const Memory& there = memory(place);
  if (least_of_one_ > there.budget - there.used + place.idle_bytes) return std::nullopt;
  for (const auto& [is_first, waiting, from_end] : place.wanted) {
    if (!is_first && waiting == 1) break;
    const std::size_t i = none - from_end;
    NetworkState& network = place.networks[i];
    auto way = make_way(place, network.needs.loaded + network.needs.run, i);
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

std::optional<ScheduleLoad> Schedule::next_load() {
  if (!has_gpus_) return std::nullopt;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.ahead || is_narrow(place)) continue;
    // A GPU that isn't busy has work that another one may take up.
    if (place.running < workers_ && !are_being_read_) continue;
    if (place.wanted.empty()) continue;
    const auto& [is_first, waiting, from_end] = *place.wanted.begin();
    // Enough wait for a worker. What another GPU has is loaded where nothing else waits.
    if (is_first ? place.spare >= workers_ : place.spare > 0 || waiting == 1) continue;
    const std::size_t network = none - from_end;
    NetworkState& state = place.networks[network];
    auto way = make_way(place, state.needs.loaded + state.needs.run, network, true);
    if (!way) continue;
    memory(place).used += state.needs.loaded;
    state.state = State::loading;
    place.ahead = network;
    ++loads_;
    file(network);
    return ScheduleLoad{network, i, std::move(*way)};
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
  file(network);
}

void Schedule::not_loaded(std::size_t network, std::size_t place) {
  Place& at = places_[place];
  at.networks[network].state = State::absent;
  memory(at).used -= at.networks[network].needs.loaded;
  if (at.ahead == network) at.ahead.reset();
  file(network);
}

bool Schedule::done(const FragmentTask& task, std::size_t place) {
  Place& at = places_[place];
  end(task, at);
  VolumeState& state = volume(task.volume);
  if (layers_ > 0) {
    --state.layers[layer_of(task.fragment)];
    open_layers(state);
  }
  file(task.network);
  widen(at);
  return state.running == 0 && state.left.empty();
}

ScheduleFull Schedule::full(const FragmentTask& task, std::size_t place, bool is_loaded) {
  Place& at = places_[place];
  ScheduleFull found;
  found.alone = at.running == 1 && !at.ahead;
  if (!found.alone) take_back(task, place, is_loaded);
  found.unload = narrow(at, found.alone ? task.network : none);
  return found;
}

std::vector<std::size_t> Schedule::full_ahead(std::size_t network, std::size_t place) {
  not_loaded(network, place);
  return narrow(places_[place], none);
}

std::optional<std::vector<std::size_t>> Schedule::close(const FragmentTask& task, std::size_t place, bool is_loaded) {
  Place& at = places_[place];
  const bool is_last =
      std::ranges::none_of(places_, [&](const Place& other) { return &other != &at && other.most > 0; });
  if (is_last) return std::nullopt;
  take_back(task, place, is_loaded);
  auto way = narrow(at, none);
  at.most = 0;
  return way;
}

void Schedule::open(std::size_t place) {
  places_[place].most = 1;
  places_[place].computed = 0;
}

/// The step ended, and its fragment waits again.
void Schedule::take_back(const FragmentTask& task, std::size_t place, bool is_loaded) {
  end(task, places_[place]);
  if (!is_loaded) not_loaded(task.network, place);
  volume(task.volume).left.insert(task.fragment);
  ++waiting_[task.network];
  file(task.network);
}

/// What the GPU has is all that it gets. Whatever nobody uses makes way, but `keep`.
std::vector<std::size_t> Schedule::narrow(Place& place, std::size_t keep) {
  std::vector<std::size_t> way;
  for (const Idle& each : place.idle) {
    if (none - std::get<2>(each) != keep) way.push_back(none - std::get<2>(each));
  }
  Memory& there = memory(place);
  for (const std::size_t i : way) {
    place.networks[i].state = State::absent;
    there.used -= place.networks[i].needs.loaded;
    file(i);
  }
  there.budget = std::min(there.budget, std::max(there.used, most_of_one_));
  place.most = std::max<std::size_t>(place.running, 1);
  place.computed = 0;
  return way;
}

void Schedule::widen(Place& place) {
  if (!is_narrow(place) || place.most == 0 || ++place.computed < computed_until_wider) return;
  place.computed = 0;
  place.most = std::min(place.most + 1, workers_);
  place.own.budget = std::min(place.own.budget + most_of_one_, place.whole);
}

/// Counts what waits, where that changed by a volume.
void Schedule::count_all() {
  are_being_read_ = std::ranges::none_of(volumes_, &VolumeState::ready);
  std::ranges::fill(waiting_, std::size_t{0});
  for (const VolumeState& state : volumes_) {
    if (!state.ready && !(has_gpus_ && are_being_read_)) continue;
    for (auto each = state.left.begin(); each != state.left.end() && *each < state.end; ++each) {
      ++waiting_[network_of(*each)];
    }
  }
  for (std::size_t i = 0; i < networks(); ++i) file(i);
}

/// Puts a network where decisions look for it: behind each change of its state, or of what waits for it.
void Schedule::file(std::size_t network) {
  for (Place& place : places_) file(place, network);
}

void Schedule::file(Place& place, std::size_t network) {
  NetworkState& state = place.networks[network];
  const std::size_t waiting = waiting_[network];
  const bool is_usable = state.state == State::loaded && waiting > 0 && (runs_ == 0 || state.running < runs_);
  if (is_usable && !state.usable) place.usable.insert(network);
  if (!is_usable && state.usable) place.usable.erase(network);
  state.usable = is_usable;
  std::optional<Wanted> wanted;
  if (state.state == State::absent && waiting > 0) {
    wanted = Wanted(!is_elsewhere(network, place), waiting, none - network);
  }
  if (wanted != state.wanted) {
    if (state.wanted) place.wanted.erase(*state.wanted);
    if (wanted) place.wanted.insert(*wanted);
    state.wanted = wanted;
  }
  std::optional<Idle> idle;
  if (state.state == State::loaded && state.running == 0) idle = Idle(waiting == 0, state.last_used, none - network);
  if (idle == state.idle) return;
  if (state.idle) {
    place.idle.erase(*state.idle);
    place.idle_bytes -= state.needs.loaded;
    place.spare -= std::get<0>(*state.idle) ? 0 : 1;
  }
  if (idle) {
    place.idle.insert(*idle);
    place.idle_bytes += state.needs.loaded;
    place.spare += std::get<0>(*idle) ? 0 : 1;
  }
  state.idle = idle;
}

/// Of its fragments those of the first layer that isn't done, and of the next one, may be begun.
void Schedule::open_layers(VolumeState& volume) {
  while (volume.first_layer < layers_ && volume.layers[volume.first_layer] == 0) ++volume.first_layer;
  const std::size_t closed = volume.first_layer + 2;
  const std::size_t end = closed < layers_ ? (closed * fragments_ + layers_ - 1) / layers_ : fragments_;
  for (auto each = volume.left.lower_bound(volume.end); each != volume.left.end() && *each < end; ++each) {
    ++waiting_[network_of(*each)];
    file(network_of(*each));
  }
  volume.end = end;
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
    const auto found = networks() == 1 ? state.left.begin() : state.left.find(network);
    if (found == state.left.end() || *found >= state.end) continue;
    ScheduleStep step;
    step.task = {state.number, *found, network};
    state.left.erase(found);
    ++state.running;
    --waiting_[network];
    file(network);
    return step;
  }
  throw std::logic_error("no fragment waits for the network");
}

void Schedule::end(const FragmentTask& task, Place& place) {
  NetworkState& network = place.networks[task.network];
  memory(place).used -= network.needs.run;
  --network.running;
  --place.running;
  --volume(task.volume).running;
}

/// Unloads as many idle networks as `bytes` need: first those without work, and of these the ones that were used last.
/// Networks are used in turn, so that it is longest until these are used again. Nothing changes if that isn't enough.
/// \param keeps_work  those with work stay
std::optional<std::vector<std::size_t>> Schedule::make_way(Place& place, std::uint64_t bytes, std::size_t keep,
                                                           bool keeps_work) {
  Memory& there = memory(place);
  std::uint64_t free = there.budget - there.used;
  if (bytes > free + place.idle_bytes) return std::nullopt;
  std::vector<std::size_t> way;
  for (const auto& [has_none, last_used, from_end] : place.idle) {
    if (bytes <= free || (keeps_work && !has_none)) break;
    const std::size_t i = none - from_end;
    if (i == keep) continue;
    free += place.networks[i].needs.loaded;
    way.push_back(i);
  }
  if (bytes > free) return std::nullopt;
  for (const std::size_t i : way) {
    place.networks[i].state = State::absent;
    there.used -= place.networks[i].needs.loaded;
    file(i);
  }
  return way;
}

}  // namespace slidestream::volume
