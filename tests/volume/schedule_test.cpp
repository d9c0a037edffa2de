#include "volume/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace slidestream::volume {
namespace {

/// Runs volumes through a schedule as workers in a random order would, and checks each step.
class Play {
 public:
  Play(std::vector<NetworkNeeds> networks, std::size_t fragments, std::uint64_t budget, std::size_t workers)
      : schedule_(networks, fragments, budget, workers),
        needs_(std::move(networks)),
        fragments_(fragments),
        budget_(budget),
        workers_(workers) {}

  /// \return the largest number of fragments that were computed at a time
  std::size_t run(const std::vector<std::uint64_t>& volumes, unsigned seed) {
    std::mt19937 random(seed);
    std::size_t next = 0;
    std::vector<std::size_t> reading;
    std::size_t ended = 0;
    std::size_t most = 0;
    while (ended < volumes.size()) {
      while (next < volumes.size()) {
        const auto way = schedule_.admit(next, volumes[next]);
        if (!way) break;
        unload(*way);
        held_[next] = volumes[next];
        reading.push_back(next++);
      }
      while (running_.size() < workers_) {
        const auto step = schedule_.next();
        if (!step) break;
        begin(*step);
      }
      check_memory();
      most = std::max(most, running_.size());
      REQUIRE((!running_.empty() || !reading.empty()));
      if (!reading.empty() && (running_.empty() || random() % 2 == 0)) {
        schedule_.ready(reading.back());
        reading.pop_back();
        continue;
      }
      const std::size_t at = random() % running_.size();
      const ScheduleStep step = running_[at];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
      if (step.load) schedule_.loaded(step.task.network);
      if (step.load) loading_.erase(step.task.network);
      if (schedule_.done(step.task)) {
        schedule_.release(step.task.volume);
        held_.erase(step.task.volume);
        ++ended;
      }
    }
    CHECK(done_.size() == volumes.size() * fragments_);
    return most;
  }

  const Schedule& schedule() const { return schedule_; }
  /// Networks in the order in which fragments were begun.
  const std::vector<std::size_t>& order() const { return order_; }

 private:
  void unload(const std::vector<std::size_t>& networks) {
    for (const std::size_t network : networks) {
      REQUIRE(loaded_.erase(network) == 1);
      REQUIRE(std::ranges::none_of(running_, [&](const ScheduleStep& step) { return step.task.network == network; }));
    }
  }

  void begin(const ScheduleStep& step) {
    unload(step.unload);
    if (step.load) REQUIRE(loaded_.insert(step.task.network).second);
    if (step.load) loading_.insert(step.task.network);
    REQUIRE(loaded_.contains(step.task.network));
    if (!step.load) REQUIRE_FALSE(loading_.contains(step.task.network));
    REQUIRE(step.task.network == (needs_.size() == 1 ? 0 : step.task.fragment));
    REQUIRE(done_.insert({step.task.volume, step.task.fragment}).second);
    running_.push_back(step);
    order_.push_back(step.task.network);
  }

  void check_memory() const {
    std::uint64_t used = 0;
    for (const auto& [volume, bytes] : held_) used += bytes;
    for (const std::size_t network : loaded_) used += needs_[network].loaded;
    for (const ScheduleStep& step : running_) used += needs_[step.task.network].run;
    REQUIRE(used == schedule_.used());
    REQUIRE(used <= budget_);
  }

  Schedule schedule_;
  std::vector<NetworkNeeds> needs_;
  std::size_t fragments_;
  std::uint64_t budget_;
  std::size_t workers_;
  std::map<std::size_t, std::uint64_t> held_;
  std::set<std::size_t> loaded_;
  std::set<std::size_t> loading_;
  std::vector<ScheduleStep> running_;
  std::set<std::pair<std::size_t, std::size_t>> done_;
  std::vector<std::size_t> order_;
};

TEST_CASE("any budget that one fragment fits into computes all volumes, and is kept") {
  std::mt19937 random(5);
  for (unsigned seed = 0; seed < 400; ++seed) {
    const std::size_t fragments = 1 + random() % 9;
    std::vector<NetworkNeeds> networks(random() % 3 == 0 ? 1 : fragments);
    std::uint64_t most = 0;
    for (NetworkNeeds& needs : networks) {
      needs = {1 + random() % 100, 1 + random() % 50};
      most = std::max(most, needs.loaded + needs.run);
    }
    std::vector<std::uint64_t> volumes(1 + random() % 7);
    for (std::uint64_t& bytes : volumes) bytes = 1 + random() % 60;
    const std::uint64_t budget = most + *std::ranges::max_element(volumes) + random() % 3 * (random() % 400);
    Play play(networks, fragments, budget, 1 + random() % 4);
    CHECK(play.schedule().most_for_volume() == budget - most);
    play.run(volumes, seed);
  }
}

TEST_CASE("a network computes its fragment of all volumes before another one takes its place") {
  // Room for two networks of four, and all volumes.
  Schedule schedule(std::vector<NetworkNeeds>(4, {100, 10}), 4, 260, 1);
  for (std::size_t volume = 0; volume < 5; ++volume) {
    REQUIRE(schedule.admit(volume, 10));
    schedule.ready(volume);
  }
  std::vector<std::size_t> order;
  while (const auto step = schedule.next()) {
    order.push_back(step->task.network);
    if (step->load) schedule.loaded(step->task.network);
    schedule.done(step->task);
  }
  CHECK(order == std::vector<std::size_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3});
  CHECK(schedule.loads() == 4);
}

TEST_CASE("networks that all fit are loaded once") {
  Play play(std::vector<NetworkNeeds>(27, {100, 50}), 27, 27 * 100 + 4 * 50 + 8 * 30, 4);
  CHECK(play.run(std::vector<std::uint64_t>(20, 30), 1) == 4);
  CHECK(play.schedule().loads() == 27);
}

TEST_CASE("volumes leave room for all workers") {
  Play play({{100, 50}}, 27, 1000, 4);
  CHECK(play.run(std::vector<std::uint64_t>(20, 100), 1) == 4);
}

TEST_CASE("fragments of a third layer wait for the first one's") {
  // Three layers of two fragments.
  Schedule schedule({{10, 1}}, 6, 1000, 8, {}, 3);
  REQUIRE(schedule.admit(0, 10));
  REQUIRE(schedule.admit(1, 10));
  schedule.ready(0);
  std::vector<ScheduleStep> steps;
  const auto take = [&] {
    while (const auto step = schedule.next()) {
      if (step->load) schedule.loaded(0);
      steps.push_back(*step);
    }
  };
  take();
  REQUIRE(steps.size() == 4);
  // Another volume's go on.
  schedule.ready(1);
  take();
  REQUIRE(steps.size() == 8);
  CHECK_FALSE(schedule.done(steps[0].task));
  take();
  CHECK(steps.size() == 8);
  CHECK_FALSE(schedule.done(steps[1].task));
  take();
  REQUIRE(steps.size() == 10);
  CHECK(steps[8].task.fragment == 4);
  CHECK(steps[8].task.volume == 0);
}

/// Steps that workers of GPUs do, in a random order.
struct GpuSteps {
  std::vector<std::vector<std::size_t>> loads;  ///< networks by GPU
  std::vector<std::size_t> most;                ///< fragments at a time by GPU
};

GpuSteps play_on_gpus(Schedule& schedule, const std::vector<NetworkNeeds>& needs, const ScheduleGpus& gpus,
                      std::size_t volumes, unsigned seed) {
  std::mt19937 random(seed);
  GpuSteps steps;
  steps.loads.resize(gpus.budgets.size());
  steps.most.resize(gpus.budgets.size());
  std::vector<std::set<std::size_t>> loaded(gpus.budgets.size());
  std::vector<ScheduleStep> running;
  std::vector<ScheduleLoad> ahead;
  std::set<std::pair<std::size_t, std::size_t>> done;
  for (std::size_t volume = 0; volume < volumes; ++volume) {
    REQUIRE(schedule.admit(volume, 10));
    schedule.ready(volume);
  }
  const auto has_work = [&](std::size_t network) {
    return std::ranges::count(done, network, &std::pair<std::size_t, std::size_t>::second) <
           static_cast<std::ptrdiff_t>(volumes);
  };
  std::size_t ended = 0;
  while (ended < volumes) {
    while (const auto step = schedule.next()) {
      auto& here = loaded[step->place];
      for (const std::size_t network : step->unload) REQUIRE(here.erase(network) == 1);
      if (step->load) REQUIRE(here.insert(step->task.network).second);
      if (step->load) steps.loads[step->place].push_back(step->task.network);
      REQUIRE(here.contains(step->task.network));
      REQUIRE(done.insert({step->task.volume, step->task.fragment}).second);
      running.push_back(*step);
    }
    while (const auto load = schedule.next_load()) {
      auto& here = loaded[load->place];
      for (const std::size_t network : load->unload) REQUIRE((here.erase(network) == 1 && !has_work(network)));
      REQUIRE((here.insert(load->network).second && has_work(load->network)));
      REQUIRE(std::ranges::find(ahead, load->place, &ScheduleLoad::place) == ahead.end());
      steps.loads[load->place].push_back(load->network);
      ahead.push_back(*load);
    }
    REQUIRE_FALSE((running.empty() && ahead.empty()));
    for (std::size_t place = 0; place < gpus.budgets.size(); ++place) {
      std::uint64_t used = 0;
      for (const std::size_t network : loaded[place]) used += needs[network].loaded;
      std::map<std::size_t, std::size_t> runs;
      for (const ScheduleStep& step : running) {
        if (step.place == place) ++runs[step.task.network];
      }
      std::size_t all = 0;
      for (const auto& [network, count] : runs) {
        REQUIRE(count <= gpus.runs);
        all += count;
      }
      steps.most[place] = std::max(steps.most[place], all);
      REQUIRE(used == schedule.used_of_gpu(place));
      REQUIRE(used <= gpus.budgets[place]);
    }
    const std::size_t at = random() % (running.size() + ahead.size());
    if (at >= running.size()) {
      const auto load = ahead.begin() + static_cast<std::ptrdiff_t>(at - running.size());
      schedule.loaded(load->network, load->place);
      ahead.erase(load);
      continue;
    }
    const ScheduleStep step = running[at];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    if (step.load) schedule.loaded(step.task.network, step.place);
    if (!schedule.done(step.task, step.place)) continue;
    schedule.release(step.task.volume);
    ++ended;
  }
  return steps;
}

TEST_CASE("any budgets of GPUs that one network fits into compute all volumes, and are kept") {
  std::mt19937 random(9);
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::size_t fragments = 1 + random() % 9;
    std::vector<NetworkNeeds> networks(random() % 3 == 0 ? 1 : fragments);
    std::uint64_t most = 0;
    for (NetworkNeeds& needs : networks) {
      needs = {1 + random() % 100, 0};
      most = std::max(most, needs.loaded);
    }
    ScheduleGpus gpus{{}, 1 + random() % 2};
    for (std::size_t i = 0; i <= random() % 3; ++i) gpus.budgets.push_back(most + random() % 3 * (random() % 200));
    Schedule schedule(networks, fragments, 100, 1 + random() % 4, gpus);
    CHECK(schedule.most_for_volume() == 100);
    play_on_gpus(schedule, networks, gpus, 1 + random() % 8, seed);
    CHECK(schedule.used() == 0);
  }
}

TEST_CASE("two GPUs share the networks, and both compute where there is one") {
  const std::vector<NetworkNeeds> many(27, {100, 0});
  for (unsigned seed = 0; seed < 20; ++seed) {
    const ScheduleGpus gpus{{2700, 2700}, 1};
    Schedule schedule(many, 27, 100, 3, gpus);
    const GpuSteps steps = play_on_gpus(schedule, many, gpus, 6, seed);
    CHECK(steps.most == std::vector<std::size_t>{3, 3});
    for (const auto& loads : steps.loads) CHECK(loads.size() >= 10);
    CHECK(schedule.loads() <= 27 + 10);
    const std::vector<NetworkNeeds> single = {{100, 0}};
    const ScheduleGpus two{{100, 100}, 2};
    Schedule one(single, 27, 100, 3, two);
    CHECK(play_on_gpus(one, single, two, 1, seed).most == std::vector<std::size_t>{2, 2});
    CHECK(one.loads() == 2);
  }
}

TEST_CASE("a GPU loads networks ahead while it computes, and no worker loads one but the first") {
  const std::vector<NetworkNeeds> networks(27, {100, 0});
  constexpr std::size_t workers = 3;
  for (const std::uint64_t budget : {2700, 700}) {
    CAPTURE(budget);
    Schedule schedule(networks, 27, 100, workers, ScheduleGpus{{budget}, 1});
    for (std::size_t volume = 0; volume < 6; ++volume) {
      REQUIRE(schedule.admit(volume, 10));
      schedule.ready(volume);
    }
    CHECK_FALSE(schedule.next_load());
    std::vector<ScheduleStep> running;
    std::size_t steps = 0, loads = 0, ahead = 0;
    for (;;) {
      while (const auto step = schedule.next()) {
        running.push_back(*step);
        if (step->load) schedule.loaded(step->task.network);
        loads += step->load ? 1 : 0;
        ++steps;
      }
      if (running.empty()) break;
      std::size_t at_once = 0;
      while (const auto load = schedule.next_load()) {
        CHECK_FALSE(schedule.next_load());
        schedule.loaded(load->network);
        ++at_once;
      }
      CHECK(at_once <= workers);
      ahead += at_once;
      schedule.done(running.front().task);
      running.erase(running.begin());
    }
    CHECK(steps == 6 * 27);
    CHECK(loads == workers);
    CHECK(ahead == 27 - workers);
    CHECK(schedule.used_of_gpu(0) <= budget);
  }
}

TEST_CASE("GPUs load networks while the first volumes are read, and a worker is left for them") {
  const std::vector<NetworkNeeds> networks(8, {100, 0});
  Schedule schedule(networks, 8, 100, 2, ScheduleGpus{{800, 800}, 1});
  CHECK_FALSE(schedule.next_load());
  REQUIRE(schedule.admit(0, 10));
  CHECK_FALSE(schedule.next());
  for (std::size_t place = 0; place < 2; ++place) {
    const auto load = schedule.next_load();
    REQUIRE(load);
    CHECK(load->place == place);
    CHECK(load->network == place);
  }
  CHECK_FALSE(schedule.next_load());
  schedule.loaded(0, 0);
  schedule.ready(0);
  // The first GPU computes and loads; the second one waits for its network, and one of its workers loads another.
  std::vector<ScheduleStep> begun;
  while (const auto step = schedule.next()) begun.push_back(*step);
  REQUIRE(begun.size() == 3);
  CHECK((begun[0].place == 0 && begun[0].task.network == 0 && !begun[0].load));
  CHECK(std::ranges::count_if(begun, [](const ScheduleStep& step) { return step.place == 1 && step.load; }) == 1);
  CHECK(std::ranges::none_of(begun, [](const ScheduleStep& step) { return step.task.network == 1; }));
  schedule.loaded(1, 1);
  const auto waited = schedule.next();
  REQUIRE(waited);
  CHECK((waited->place == 1 && waited->task.network == 1 && !waited->load));
}

TEST_CASE("a volume that was dropped ends with its last running fragment") {
  Schedule schedule({{10, 5}}, 3, 100, 2);
  REQUIRE(schedule.admit(7, 20));
  CHECK_FALSE(schedule.next());
  schedule.ready(7);
  const auto first = schedule.next();
  REQUIRE(first);
  CHECK(first->load);
  CHECK_FALSE(schedule.next());
  schedule.loaded(0);
  const auto second = schedule.next();
  REQUIRE(second);
  schedule.drop(7);
  CHECK_FALSE(schedule.next());
  CHECK_FALSE(schedule.done(first->task));
  CHECK_THROWS_AS(schedule.release(7), std::logic_error);
  CHECK(schedule.done(second->task));
  schedule.release(7);
  CHECK(schedule.used() == 10);
  CHECK_FALSE(schedule.admit(8, 86));
  CHECK(schedule.admit(8, 85));
  CHECK_THROWS_AS(schedule.ready(9), std::logic_error);
  CHECK_THROWS_AS(Schedule({{1, 1}, {1, 1}}, 3, 100, 1), std::invalid_argument);
}

TEST_CASE("a GPU that is full gets what it has, its fragment waits, and with time it gets more") {
  const std::vector<NetworkNeeds> networks(8, {100, 0});
  Schedule schedule(networks, 8, 100, 3, ScheduleGpus{{800}, 1});
  for (std::size_t volume = 0; volume < 8; ++volume) {
    REQUIRE(schedule.admit(volume, 10));
    schedule.ready(volume);
  }
  std::vector<ScheduleStep> running;
  const auto take = [&] {
    while (auto step = schedule.next()) {
      if (step->load) schedule.loaded(step->task.network);
      running.push_back(std::move(*step));
    }
  };
  take();
  REQUIRE(running.size() == 3);
  const auto ahead = schedule.next_load();
  REQUIRE(ahead);
  // The load ahead finds no memory, and neither does a fragment.
  CHECK(schedule.full_ahead(ahead->network, 0).empty());
  CHECK(schedule.used_of_gpu(0) == 300);
  CHECK_FALSE(schedule.next_load());
  const FragmentTask back = running.back().task;
  running.pop_back();
  const ScheduleFull full = schedule.full(back, 0, true);
  CHECK_FALSE(full.alone);
  CHECK(full.unload == std::vector<std::size_t>{back.network});
  CHECK(schedule.used_of_gpu(0) == 200);
  // It waits until one of the others has ended.
  CHECK_FALSE(schedule.next());
  CHECK_FALSE(schedule.next_load());
  schedule.done(running.back().task);
  running.pop_back();
  take();
  CHECK(running.size() == 2);
  CHECK(schedule.used_of_gpu(0) <= 200);
  std::set<std::pair<std::size_t, std::size_t>> done;
  std::size_t most = 0;
  while (!running.empty()) {
    most = std::max(most, running.size());
    done.insert({running.front().task.volume, running.front().task.fragment});
    schedule.done(running.front().task);
    running.erase(running.begin());
    take();
  }
  CHECK(most == 3);
  CHECK(done.size() == 63);
}

TEST_CASE("a fragment that is alone on a full GPU keeps its place, and its GPU is closed where there is another") {
  const std::vector<NetworkNeeds> networks(2, {100, 0});
  Schedule schedule(networks, 2, 100, 1, ScheduleGpus{{200, 200}, 1});
  REQUIRE(schedule.admit(0, 10));
  schedule.ready(0);
  const auto first = schedule.next();
  const auto second = schedule.next();
  REQUIRE((first && second && first->place == 0 && second->place == 1));
  for (const auto& step : {*first, *second}) {
    const ScheduleFull full = schedule.full(step.task, step.place, false);
    CHECK(full.alone);
    CHECK(full.unload.empty());
  }
  CHECK(schedule.close(first->task, 0, false) == std::vector<std::size_t>{});
  CHECK(schedule.used_of_gpu(0) == 0);
  // The last one stays open.
  CHECK_FALSE(schedule.close(second->task, 1, false));
  CHECK_FALSE(schedule.next());
  schedule.loaded(second->task.network, 1);
  CHECK_FALSE(schedule.done(second->task, 1));
  const auto again = schedule.next();
  REQUIRE(again);
  CHECK(again->place == 1);
  CHECK(again->task.fragment == first->task.fragment);
  schedule.loaded(again->task.network, 1);
  CHECK(schedule.done(again->task, 1));
  schedule.release(0);
  // One that is opened again computes one fragment at a time.
  REQUIRE(schedule.admit(1, 10));
  schedule.ready(1);
  REQUIRE(schedule.next());
  CHECK_FALSE(schedule.next());
  schedule.open(0);
  const auto opened = schedule.next();
  REQUIRE(opened);
  CHECK(opened->place == 0);
  CHECK(opened->load);
  CHECK(schedule.used_of_gpu(0) == 100);
}

}  // namespace
}  // namespace slidestream::volume
