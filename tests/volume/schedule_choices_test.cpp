#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "volume/plain_schedule.hpp"
#include "volume/schedule.hpp"

namespace slidestream::volume {
namespace {

/// Two that decide alike.
class Both {
 public:
  template <class... Arguments>
  explicit Both(const Arguments&... arguments) : quick_(arguments...), plain_(arguments...) {}

  std::optional<ScheduleStep> next() {
    auto step = quick_.next();
    const auto expected = plain_.next();
    REQUIRE(step.has_value() == expected.has_value());
    if (!step) return step;
    CHECK(step->task.volume == expected->task.volume);
    CHECK(step->task.fragment == expected->task.fragment);
    CHECK(step->task.network == expected->task.network);
    CHECK(step->place == expected->place);
    CHECK(step->unload == expected->unload);
    CHECK(step->load == expected->load);
    return step;
  }
  std::optional<ScheduleLoad> next_load() {
    auto load = quick_.next_load();
    const auto expected = plain_.next_load();
    REQUIRE(load.has_value() == expected.has_value());
    if (!load) return load;
    CHECK(load->network == expected->network);
    CHECK(load->place == expected->place);
    CHECK(load->unload == expected->unload);
    return load;
  }
  bool admit(std::size_t number, std::uint64_t bytes) {
    const auto way = quick_.admit(number, bytes);
    CHECK(way == plain_.admit(number, bytes));
    CHECK(quick_.used() == plain_.used());
    return way.has_value();
  }
  bool done(const ScheduleStep& step) {
    const bool is_last = quick_.done(step.task, step.place);
    CHECK(is_last == plain_.done(step.task, step.place));
    return is_last;
  }
  /// What both are told.
  template <class Tell>
  void tell(const Tell& tell) {
    tell(quick_);
    tell(plain_);
  }

 private:
  Schedule quick_;
  PlainSchedule plain_;
};

TEST_CASE("each choice is that of a search through all that waits") {
  std::mt19937 random(21);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const std::size_t layers = random() % 3 == 0 ? 1 + random() % 4 : 0;
    const std::size_t fragments = std::max<std::size_t>(layers, 1) * (1 + random() % 4);
    std::vector<NetworkNeeds> networks(random() % 3 == 0 ? 1 : fragments);
    const bool on_gpus = random() % 2 == 0;
    std::uint64_t most = 0;
    for (NetworkNeeds& needs : networks) {
      needs = {1 + random() % 100, on_gpus ? 0 : random() % 50};
      most = std::max(most, needs.loaded + needs.run);
    }
    ScheduleGpus gpus{{}, 1 + random() % 2};
    for (std::size_t i = 0; on_gpus && i <= random() % 3; ++i) gpus.budgets.push_back(most + random() % 300);
    Both both(networks, fragments, most + 60 + random() % 300, 1 + random() % 4, gpus, layers);
    const std::size_t volumes = 1 + random() % 6;
    std::size_t admitted = 0, ended = 0, computed = 0;
    std::vector<std::size_t> reading;
    std::vector<ScheduleStep> running;
    std::vector<ScheduleLoad> ahead;
    std::set<std::size_t> dropped;
    while (ended < volumes) {
      while (admitted < volumes && random() % 4 != 0 && both.admit(admitted, 1 + random() % 60)) {
        reading.push_back(admitted++);
      }
      while (const auto step = both.next()) running.push_back(*step);
      while (const auto load = both.next_load()) ahead.push_back(*load);
      const std::size_t at = random() % (reading.size() + running.size() + ahead.size() + 1);
      if (at < reading.size()) {
        both.tell([number = reading[at]](auto& schedule) { schedule.ready(number); });
        reading.erase(reading.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (at < reading.size() + running.size()) {
        const auto place = running.begin() + static_cast<std::ptrdiff_t>(at - reading.size());
        const ScheduleStep step = *place;
        running.erase(place);
        ++computed;
        if (step.load) both.tell([&step](auto& schedule) { schedule.loaded(step.task.network, step.place); });
        const std::size_t number = step.task.volume;
        if (random() % 40 == 0) {
          dropped.insert(number);
          both.tell([number](auto& schedule) { schedule.drop(number); });
        }
        if (!both.done(step)) continue;
        both.tell([number](auto& schedule) { schedule.release(number); });
        ++ended;
      } else if (at < reading.size() + running.size() + ahead.size()) {
        const auto place = ahead.begin() + static_cast<std::ptrdiff_t>(at - reading.size() - running.size());
        both.tell([load = *place](auto& schedule) { schedule.loaded(load.network, load.place); });
        ahead.erase(place);
      }
    }
    CHECK(computed <= volumes * fragments);
    CHECK((computed == volumes * fragments || !dropped.empty()));
  }
}

TEST_CASE("eight volumes of many fragments are computed, with one network and with one for each fragment") {
  constexpr std::size_t fragments = std::size_t{20} * 20 * 20;
  constexpr std::size_t volumes = 8;
  for (const std::size_t networks : {std::size_t{1}, fragments}) {
    for (const std::size_t layers : {0, 20}) {
      for (const bool on_gpus : {false, true}) {
        CAPTURE(networks);
        CAPTURE(layers);
        CAPTURE(on_gpus);
        // Room for half of the networks.
        const std::uint64_t room = 10 * (networks / 2 + 1);
        const ScheduleGpus gpus = on_gpus ? ScheduleGpus{{room, room}, 1} : ScheduleGpus{};
        Schedule schedule(std::vector<NetworkNeeds>(networks, {10, 0}), fragments, room + volumes, 2, gpus, layers);
        for (std::size_t volume = 0; volume < volumes; ++volume) {
          REQUIRE(schedule.admit(volume, 1));
          schedule.ready(volume);
        }
        std::size_t computed = 0, ended = 0;
        bool goes_on = true;
        while (goes_on) {
          goes_on = false;
          std::vector<ScheduleStep> steps;
          while (auto step = schedule.next()) steps.push_back(std::move(*step));
          while (const auto load = schedule.next_load()) {
            schedule.loaded(load->network, load->place);
            goes_on = true;
          }
          for (const ScheduleStep& step : steps) {
            if (step.load) schedule.loaded(step.task.network, step.place);
            ++computed;
            ended += schedule.done(step.task, step.place) ? 1 : 0;
            goes_on = true;
          }
        }
        CHECK(computed == volumes * fragments);
        CHECK(ended == volumes);
      }
    }
  }
}

/// Time until GPUs have computed all, one unit per fragment of a GPU: those at a time share it. A network takes `load`.
double time_on_gpus(Schedule& schedule, std::size_t gpus, std::size_t volumes, double load) {
  struct Work {
    ScheduleStep step;
    bool is_ahead = false;
    double to_load = 0;
    double to_compute = 1;
  };
  std::vector<Work> running;
  double time = 0;
  for (;;) {
    while (const auto step = schedule.next()) running.push_back({*step, false, step->load ? load : 0, 1});
    while (const auto ahead = schedule.next_load()) {
      running.push_back({{{0, 0, ahead->network}, ahead->place, {}, true}, true, load, 0});
    }
    if (running.empty()) return time;
    std::vector<double> share(gpus);
    for (const Work& work : running) share[work.step.place] += work.to_load > 0 || work.is_ahead ? 0 : 1;
    double next = 1e9;
    for (const Work& work : running) {
      next = std::min(next, work.to_load > 0 ? work.to_load : work.to_compute * share[work.step.place]);
    }
    time += next;
    for (Work& work : running) {
      if (work.to_load > 0) {
        work.to_load = work.to_load > next + 1e-9 ? work.to_load - next : 0;
        if (work.to_load == 0) schedule.loaded(work.step.task.network, work.step.place);
      } else {
        work.to_compute -= next / share[work.step.place];
      }
    }
    std::vector<Work> left;
    for (const Work& work : running) {
      if (work.to_load > 0 || work.to_compute > 1e-9) {
        left.push_back(work);
      } else if (!work.is_ahead && schedule.done(work.step.task, work.step.place)) {
        schedule.release(work.step.task.volume);
        --volumes;
      }
    }
    running = std::move(left);
    CHECK(volumes < 100);
  }
}

}  // namespace
TEST_CASE("GPUs end at about the same time, though networks don't divide by them") {
  const std::vector<NetworkNeeds> networks(27, {100, 0});
  for (const std::size_t gpus : {2U, 4U}) {
    CAPTURE(gpus);
    Schedule schedule(networks, 27, 100, 5, ScheduleGpus{std::vector<std::uint64_t>(gpus, 2700), 5});
    for (std::size_t volume = 0; volume < 6; ++volume) {
      REQUIRE(schedule.admit(volume, 10));
      schedule.ready(volume);
    }
    const double time = time_on_gpus(schedule, gpus, 6, 2);
    // The first networks are loaded before anything is computed.
    CHECK(time < 162.0 / static_cast<double>(gpus) + 2 + 0.75);
  }
}

}  // namespace slidestream::volume
