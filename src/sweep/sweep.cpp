#include "sweep/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <new>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/trace.hpp>
#include <unordered_map>
#include <utility>

#include "config/suggest.hpp"
#include "ledger/fingerprint.hpp"
#include "output/text.hpp"
#include "runtime/machine.hpp"
#include "runtime/page_cache.hpp"
#include "sink/content_hash.hpp"
#include "sweep/machine_facts.hpp"
#include "sweep/swept_slides.hpp"

namespace slidestream {

namespace {

using Clock = std::chrono::steady_clock;
using State = CombinationState::State;

/// A file that was dropped keeps at most this share of its pages: what other processes map.
constexpr double still_cold = 0.02;
/// Runs after the choice, at least: with fewer no difference is ever significant.
constexpr int least_confirmations = 4;
/// Of a budget, kept at most for the runs after the choice.
constexpr double most_reserved = 0.4;

std::string mib(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

template <class Value>
void add_to(ContentHash& hash, const Value& value) {
  hash.add(std::as_bytes(std::span(&value, 1)));
}

/// Everything that a run finds in a slide, but for where and how long.
std::uint64_t hash_of(const SlideResult& slide) {
  ContentHash hash;
  const SpectrumSums& sums = slide.sums;
  hash.add(std::as_bytes(std::span(sums.histogram)));
  hash.add(std::as_bytes(std::span(slide.map.values)));
  for (const std::uint64_t count : {sums.windows, sums.values, sums.clipped, slide.missing_tiles, slide.bad_tiles}) {
    add_to(hash, count);
  }
  add_to(hash, sums.sum);
  add_to(hash, sums.sum_of_squares);
  hash.add(std::as_bytes(std::span(sums.counters)));
  return hash.value();
}

std::uint64_t file_bytes_of(const RunResult& run) {
  std::uint64_t bytes = 0;
  for (const SlideResult& slide : run.slides) bytes += slide.file_bytes;
  return bytes;
}

std::uint64_t bytes_read_of(const RunResult& run) {
  const auto read = std::ranges::find(run.stages, "read", &StageReport::name);
  return read == run.stages.end() ? 0 : read->bytes;
}

std::string deciding_text(const Config& config) {
  std::string text;
  for (const auto& [key, value] : deciding_settings(config)) text += key + "=" + value + "\n";
  return text;
}

}  // namespace

/// What one run came to.
struct Sweep::Outcome {
  enum class Kind { done, refused, failed, stopped };
  Kind kind = Kind::done;
  std::string reason;
  RunResult run;
  std::uint64_t pixels = 0;
  std::string results;
  std::optional<std::uint64_t> peak;
  std::optional<double> cached;
};

Sweep::Sweep(SweepOptions options, Watcher watcher)
    : options_(std::move(options)), watcher_(std::move(watcher)), file_(options_.folder) {
  for (Combination& combination : make_grid(options_.base, options_.axes)) {
    CombinationState state;
    state.combination = std::move(combination);
    states_.push_back(std::move(state));
  }
  base_ = static_cast<std::size_t>(
      std::ranges::find_if(states_, [](const auto& state) { return state.combination.is_base; }) - states_.begin());
  inputs_ = inputs_hash(options_.slides);
  for (const SweepAxis& axis : options_.axes) swept_ += (swept_.empty() ? "" : " ") + axis.key;
  for (const CombinationState& state : states_) groups_.push_back(deciding_text(state.combination.config));
  gpu_bytes_.assign(states_.size(), 0);
  wall_.assign(states_.size(), 0.0);
  take_over_rows();
}

void Sweep::check_same_sweep(const SweepRow& row) const {
  const auto check = [this](const std::string& what, const std::string& now, const std::string& before) {
    if (now == before) return;
    throw ConfigError(file_.path().string() + ": was measured with another sweep: " + what + " is " + one_line(now) +
                      " here and was " + one_line(before) + "; name another --out, or --fresh to start anew");
  };
  check("the swept keys", swept_, row.swept);
  check("the program's version", version(), row.version);
  check("the host", one_line(host_name()), row.host);
  check("the processor", one_line(processor_name()), row.processor);
  check("the page cache", options_.cache == CachePolicy::warm ? "warm" : "cold", row.cache);
  if (row.inputs != inputs_) {
    throw ConfigError(file_.path().string() +
                      ": was measured with another sweep: the slides are others here, or have changed; name another "
                      "--out, or --fresh to start anew");
  }
  const std::vector<const ConfigKey*> keys = sweep_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name = keys[i]->full_name();
    const bool is_swept = std::ranges::any_of(options_.axes, [&](const SweepAxis& axis) { return axis.key == name; });
    if (!is_swept) check(name, plain_value(*keys[i], options_.base), row.settings[i]);
  }
}

void Sweep::take_over_rows() {
  const std::vector<const ConfigKey*> keys = sweep_keys();
  std::map<std::vector<std::string>, std::size_t> by_settings;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    std::vector<std::string> settings;
    settings.reserve(keys.size());
    for (const ConfigKey* key : keys) settings.push_back(plain_value(*key, states_[i].combination.config));
    by_settings.emplace(std::move(settings), i);
  }
  for (const SweepRow& row : file_.rows()) {
    check_same_sweep(row);
    const auto found = by_settings.find(row.settings);
    // A value that this start doesn't name stays in the table and counts for nothing.
    if (found == by_settings.end()) continue;
    CombinationState& state = states_[found->second];
    ++runs_before_;
    if (row.status != "done") {
      state.state = row.status == "refused" ? State::refused : State::failed;
      state.reason = row.reason;
      continue;
    }
    (row.phase == "confirm" ? state.confirm_seconds : state.seconds).push_back(row.seconds);
    state.pixels = row.pixels;
    state.backend = row.backend;
    state.gpu = row.gpu;
    compare_results(found->second, row.results);
  }
}

bool Sweep::computes_the_same(std::size_t i) const { return groups_[i] == groups_[base_]; }

std::optional<std::size_t> Sweep::best() const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const CombinationState& state = states_[i];
    if (state.seconds.empty() || state.state == State::failed || !computes_the_same(i)) continue;
    if (!found || summarise(state.seconds).median < summarise(states_[*found].seconds).median) found = i;
  }
  return found;
}

Sweep::Choice Sweep::choice() const {
  Choice choice;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const CombinationState& state = states_[i];
    const bool fails = state.state == State::refused || state.state == State::failed;
    if (fails || !computes_the_same(i)) continue;
    ++choice.combinations;
    if (!state.seconds.empty()) ++choice.measured;
  }
  return choice;
}

std::optional<Verdict> Sweep::verdict() const {
  const auto winner = best();
  if (!winner) return std::nullopt;
  Verdict verdict;
  verdict.winner = *winner;
  verdict.base = base_;
  const std::vector<double>& again = states_[*winner].confirm_seconds;
  const std::vector<double>& base_again = states_[base_].confirm_seconds;
  verdict.confirmed = *winner != base_ && !again.empty() && !base_again.empty();
  if (verdict.confirmed) {
    verdict.times = compare_times(again, base_again);
  } else {
    verdict.times.winner = summarise(states_[*winner].seconds);
    verdict.times.base = summarise(states_[base_].seconds);
  }
  return verdict;
}

double Sweep::elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

void Sweep::warn_once(const std::string& message) {
  if (std::ranges::find(warned_, message) != warned_.end()) return;
  warned_.push_back(message);
  if (watcher_.warn) watcher_.warn(message);
}

/// What the runs after the choice will take, of a budget.
double Sweep::confirm_reserve() const {
  const auto winner = best();
  if (options_.budget <= 0 || !winner || *winner == base_) return 0;
  const double runs = std::clamp(options_.repeat, least_confirmations, most_confirmations);
  return std::min(most_reserved * options_.budget, runs * (wall_[*winner] + wall_[base_]));
}

bool Sweep::may_go_on(std::size_t i, double reserve) {
  if (stop_()) stopped_ = true;
  if (stopped_ || !difference_.empty()) return false;
  if (options_.budget > 0 && elapsed() + wall_[i] + reserve > options_.budget) {
    out_of_time_ = true;
    return false;
  }
  return true;
}

/// Finds combinations that can't be run, before anything is measured.
void Sweep::prepare() {
  std::size_t beyond_limit = 0;
  std::uint64_t most_planned = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    CombinationState& state = states_[i];
    if (state.out()) continue;
    std::string reason;
    try {
      const RunForecast forecast = forecast_run(state.combination.config, options_.slides);
      gpu_bytes_[i] = forecast.gpu_bytes * static_cast<std::uint64_t>(forecast.gpus);
      if (forecast.gpus > 0 && !forecast.gpus_assumed) state.gpu = forecast.gpu;
      auto available = options_.memory ? options_.memory : runtime::available_memory();
      if (options_.limit) available = std::min(available.value_or(*options_.limit), *options_.limit);
      if (available && forecast.touched_bytes() > *available) {
        reason = "needs " + mib(forecast.touched_bytes()) + " of host memory, of which " + mib(*available) +
                 " are available";
      }
      for (const SlideForecast& slide : forecast.slides) {
        if (reason.empty() && !slide.error.empty()) reason = slide.path + ": " + slide.error;
      }
      // What these slides touch fits, as far as is known.
      if (reason.empty() && options_.limit && forecast.host_bytes() > *options_.limit) {
        ++beyond_limit;
        most_planned = std::max(most_planned, forecast.host_bytes());
      }
    } catch (const ConfigError& error) {
      reason = error.what();
    }
    if (reason.empty()) continue;
    state.state = State::refused;
    state.reason = one_line(reason);
    SweepRow row = row_for(i, "grid");
    row.status = "refused";
    row.reason = state.reason;
    file_.add(row);
  }
  if (beyond_limit == 0) return;
  warn_once(std::to_string(beyond_limit) + (beyond_limit == 1 ? " combination" : " combinations") + " may take up to " +
            mib(most_planned) + " of memory, and the control group may have " + mib(*options_.limit) +
            ": the system may end the sweep; try less pipeline.memory_mib or pipeline.threads");
}

SweepRow Sweep::row_for(std::size_t i, const std::string& phase) const {
  const CombinationState& state = states_[i];
  SweepRow row;
  row.date = time_text();
  row.version = version();
  row.host = one_line(host_name());
  row.processor = one_line(processor_name());
  row.gpu = one_line(state.gpu);
  row.inputs = inputs_;
  row.swept = swept_;
  row.cache = options_.cache == CachePolicy::warm ? "warm" : "cold";
  row.phase = phase;
  row.base = state.combination.is_base ? "yes" : "no";
  row.slides = options_.slides.size();
  for (const ConfigKey* key : sweep_keys()) row.settings.push_back(plain_value(*key, state.combination.config));
  return row;
}

Sweep::Outcome Sweep::run_once(std::size_t i) {
  Outcome outcome;
  const Config& config = states_[i].combination.config;
  if (options_.cache == CachePolicy::cold) {
    for (const std::string& slide : options_.slides) runtime::drop_from_cache(slide);
  }
  outcome.cached = runtime::cached_share(options_.slides);
  if (options_.cache == CachePolicy::cold && outcome.cached.value_or(0) > still_cold) {
    warn_once(
        "the slides can't be taken out of the page cache here (the column cached_before says how much stays): "
        "these times aren't those of a cold cache");
  }
  if (!outcome.cached)
    warn_once("the system doesn't tell what is in the page cache: nobody checks that it is as asked");

  const bool peak_is_this_run = runtime::reset_peak_memory();
  RunControl control;
  std::mutex mutex;
  std::unordered_map<std::string, std::uint64_t> hashes;
  control.on_slide = [&](SlideResult& slide) {
    const std::uint64_t hash = hash_of(slide);
    slide.map = {};
    const std::lock_guard lock(mutex);
    hashes[slide.path] = hash;
  };
  bool over_budget = false;
  control.on_progress = [&](const Progress&) {
    if (options_.budget > 0 && elapsed() > options_.budget) over_budget = true;
    if (over_budget || stop_()) control.request_stop();
  };
  const auto failed = [&outcome](Outcome::Kind kind, const std::string& reason) {
    outcome.kind = kind;
    outcome.reason = one_line(reason);
  };
  std::optional<TraceRecording> recording;
  if (options_.overlap) recording.emplace();
  try {
    outcome.run = run_pipeline(config, options_.slides, control);
  } catch (const ConfigError& error) {
    failed(Outcome::Kind::refused, error.what());
  } catch (const std::bad_alloc&) {
    failed(Outcome::Kind::refused, "out of memory");
  } catch (const Error& error) {
    failed(Outcome::Kind::failed, error.what());
  }
  if (recording) outcome.run.overlap = find_overlap(recording->finish());
  if (peak_is_this_run) outcome.peak = runtime::peak_memory();
  if (over_budget) out_of_time_ = true;
  if (outcome.kind != Outcome::Kind::done) return outcome;
  if (control.stop_requested() && outcome.run.failure.empty()) {
    outcome.kind = Outcome::Kind::stopped;
    return outcome;
  }
  if (!outcome.run.failure.empty()) failed(Outcome::Kind::failed, outcome.run.failure);
  ContentHash all;
  for (const SlideResult& slide : outcome.run.slides) {
    if (!slide.done) failed(Outcome::Kind::failed, slide.path + ": " + slide.error);
    add_to(all, hashes[slide.path]);
    outcome.pixels += static_cast<std::uint64_t>(slide.width * slide.height);
  }
  outcome.results = to_hexadecimal(all.value());
  return outcome;
}

void Sweep::compare_results(std::size_t i, const std::string& results) {
  const std::string group = groups_[i] + states_[i].backend;
  const auto [found, first] = results_.emplace(group, std::pair{results, i});
  if (first || found->second.first == results || !difference_.empty()) return;
  difference_ = "results differ between '" + states_[found->second.second].combination.name + "' and '" +
                states_[i].combination.name + "' on the same backend (" + states_[i].backend + ")";
}

void Sweep::measure(std::size_t i, const std::string& phase, bool counts) {
  CombinationState& state = states_[i];
  const State before = state.state;
  state.state = State::measuring;
  if (watcher_.changed) {
    watcher_.changed(std::string(counts ? phase == "grid" ? "" : "once more: " : "warm-up: ") + state.combination.name);
  }
  const Clock::time_point start = Clock::now();
  const Outcome outcome = run_once(i);
  wall_[i] = std::chrono::duration<double>(Clock::now() - start).count();
  state.state = before;
  if (outcome.kind == Outcome::Kind::stopped) {
    if (stop_()) stopped_ = true;
    return;
  }
  SweepRow row = row_for(i, phase);
  if (outcome.kind != Outcome::Kind::done) {
    const bool refused = outcome.kind == Outcome::Kind::refused;
    state.state = refused ? State::refused : State::failed;
    state.reason = row.reason = outcome.reason;
    row.status = refused ? "refused" : "failed";
    file_.add(row);
    return;
  }
  const RunResult& run = outcome.run;
  state.backend = run.backend;
  state.pixels = outcome.pixels;
  if (run.devices == 0) state.gpu.clear();
  compare_results(i, outcome.results);
  if (!counts) return;
  row.bytes_read = bytes_read_of(run);
  if (options_.cache == CachePolicy::warm &&
      !was_warm(outcome.cached.value_or(1), file_bytes_of(run), row.bytes_read)) {
    warn_once(
        "the slides don't stay in the page cache (the column cached_before says how much does): these times aren't "
        "those of a warm cache");
  }
  row.status = "done";
  row.gpu = one_line(state.gpu);
  row.backend = run.backend;
  row.results = outcome.results;
  row.seconds = run.seconds;
  row.pixels = outcome.pixels;
  for (const StageReport& stage : run.stages) {
    const double room = run.seconds * std::max(stage.parallel, 1);
    const double there = stage.busy_seconds + stage.wait_seconds;
    row.stages.push_back(
        {stage.name, room > 0 ? stage.busy_seconds / room : 0, there > 0 ? stage.wait_seconds / there : 0});
  }
  if (run.overlap) {
    row.gpu_busy = run.overlap->busy_share();
    row.copies_hidden = run.overlap->copy_hidden_share();
    row.copies_covered = run.overlap->copy_covered_share();
  }
  row.peak_host_bytes = outcome.peak;
  row.gpu_bytes = run.devices > 0 ? gpu_bytes_[i] : 0;
  row.cached_before = outcome.cached;
  file_.add(row);
  (phase == "confirm" ? state.confirm_seconds : state.seconds).push_back(run.seconds);
}

void Sweep::drop_losers() {
  const auto winner = best();
  if (!winner) return;
  const TimeSummary best_times = summarise(states_[*winner].seconds);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    CombinationState& state = states_[i];
    // The base is what the winner is compared with, whatever it takes.
    if (i == *winner || i == base_ || state.out() || !computes_the_same(i)) continue;
    if (state.seconds.size() >= static_cast<std::size_t>(options_.repeat)) continue;
    if (cannot_win(summarise(state.seconds), best_times)) state.state = State::cannot_win;
  }
}

void Sweep::round(int number) {
  drop_losers();
  for (const std::size_t i : shuffled(states_.size(), options_.seed + static_cast<std::uint64_t>(number))) {
    const CombinationState& state = states_[i];
    if (state.out() || state.seconds.size() >= static_cast<std::size_t>(number)) continue;
    if (!may_go_on(i, confirm_reserve())) {
      if (stopped_ || !difference_.empty()) return;
      continue;
    }
    measure(i, "grid", true);
  }
}

void Sweep::warm_up(std::size_t i) {
  for (int k = 0; k < options_.warm_up; ++k) {
    if (states_[i].out() || !may_go_on(i, confirm_reserve())) return;
    measure(i, "grid", false);
  }
}

void Sweep::confirm() {
  const auto winner = best();
  if (!winner || *winner == base_ || states_[base_].out()) return;
  const auto wanted = static_cast<std::size_t>(std::clamp(options_.repeat, least_confirmations, most_confirmations));
  for (std::size_t k = 0; k < wanted; ++k) {
    for (const std::size_t which : shuffled(2, options_.seed + 1'000'000 + k)) {
      const std::size_t i = which == 0 ? *winner : base_;
      if (states_[i].confirm_seconds.size() > k) continue;
      if (!may_go_on(i, 0) || states_[i].out()) return;
      measure(i, "confirm", true);
    }
  }
}

void Sweep::run(const std::function<bool()>& stop) {
  stop_ = stop;
  began_ = Clock::now();
  if (!difference_.empty()) return;
  prepare();
  drop_losers();
  for (const std::size_t i : shuffled(states_.size(), options_.seed)) {
    const CombinationState& state = states_[i];
    if (!state.out() && state.seconds.size() < static_cast<std::size_t>(options_.repeat)) warm_up(i);
  }
  for (int number = 1; number <= options_.repeat; ++number) round(number);
  for (CombinationState& state : states_) {
    if (state.out()) continue;
    const bool whole = state.seconds.size() >= static_cast<std::size_t>(options_.repeat);
    state.state = whole ? State::done : out_of_time_ ? State::out_of_time : State::waiting;
  }
  confirm();
  if (watcher_.changed) watcher_.changed("");
}

}  // namespace slidestream
