#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "sweep/grid.hpp"
#include "sweep/statistics.hpp"
#include "sweep/sweep_file.hpp"

namespace slidestream {

enum class CachePolicy { warm, cold };

struct SweepOptions {
  Config base;
  std::vector<SweepAxis> axes;
  std::vector<std::string> slides;
  std::string folder;
  int repeat = 5;   ///< runs of each combination that count
  int warm_up = 1;  ///< runs of each before them that don't
  CachePolicy cache = CachePolicy::warm;
  double budget = 0.0;                  ///< seconds for the whole; 0: no limit
  std::optional<std::uint64_t> memory;  ///< bytes of host memory that a run may take; none: what is free
  std::optional<std::uint64_t> limit;   ///< bytes of memory that the process's control groups may have; none: no limit
  std::uint64_t seed = 1;
  bool overlap = false;  ///< record each run for its overlap
};

/// How far one combination is.
struct CombinationState {
  enum class State { waiting, measuring, done, cannot_win, refused, failed, out_of_time };

  Combination combination;
  State state = State::waiting;
  std::string reason;                   ///< of refused and failed
  std::vector<double> seconds;          ///< of the runs that count
  std::vector<double> confirm_seconds;  ///< of those taken after the choice
  std::uint64_t pixels = 0;
  std::string backend;
  std::string gpu;

  bool out() const noexcept { return state == State::refused || state == State::failed || state == State::cannot_win; }
};

/// How the winner compares with the base, by runs taken after it was chosen.
struct Verdict {
  std::size_t winner = 0;
  std::size_t base = 0;
  TimeComparison times;
  bool confirmed = false;  ///< there were such runs; else the times are those of the choice
};

/// Runs every combination over the same slides, in one process, in an order in which rounds of all follow each other,
/// each shuffled. Rows that the folder has from an earlier start of the same sweep count.
class Sweep {
 public:
  struct Watcher {
    /// Something changed; `what` says what is being done now. Called from the thread of `run`.
    std::function<void(const std::string& what)> changed;
    std::function<void(const std::string& message)> warn;
  };

  /// Reads what was measured before. \throws ConfigError when the folder has another sweep, or the settings are wrong;
  /// OutputError.
  Sweep(SweepOptions options, Watcher watcher);

  /// Measures until all is done, the budget is spent, `stop` says so, or results differ. \throws OutputError.
  void run(const std::function<bool()>& stop);

  const SweepOptions& options() const noexcept { return options_; }
  const std::vector<CombinationState>& combinations() const noexcept { return states_; }
  std::size_t runs_before() const noexcept { return runs_before_; }
  bool stopped() const noexcept { return stopped_; }
  bool out_of_time() const noexcept { return out_of_time_; }
  /// One line that names two combinations whose results differ; empty: none do.
  const std::string& difference() const noexcept { return difference_; }
  /// The fastest so far among those that compute what the base does; nothing when none was measured.
  std::optional<std::size_t> best() const;
  std::size_t base() const noexcept { return base_; }
  /// Combinations that can be the fastest: they run, and compute what the base does.
  struct Choice {
    std::size_t measured = 0;  ///< of them
    std::size_t combinations = 0;

    bool is_whole() const noexcept { return measured == combinations; }
    /// Whether there is anything to choose from.
    bool is_one() const noexcept { return measured > 1 || is_whole(); }
    /// "2 of 4 combinations"
    std::string text() const {
      return std::to_string(measured) + " of " + std::to_string(combinations) + " combinations";
    }
  };
  Choice choice() const;
  std::optional<Verdict> verdict() const;

 private:
  struct Outcome;

  void take_over_rows();
  void check_same_sweep(const SweepRow& row) const;
  void prepare();
  void warm_up(std::size_t i);
  void round(int number);
  void confirm();
  void measure(std::size_t i, const std::string& phase, bool counts);
  Outcome run_once(std::size_t i);
  SweepRow row_for(std::size_t i, const std::string& phase) const;
  void compare_results(std::size_t i, const std::string& results);
  void drop_losers();
  bool may_go_on(std::size_t i, double reserve);
  double confirm_reserve() const;
  double elapsed() const;
  void warn_once(const std::string& message);
  bool computes_the_same(std::size_t i) const;

  SweepOptions options_;
  Watcher watcher_;
  SweepFile file_;
  std::vector<CombinationState> states_;
  std::size_t base_ = 0;
  std::string inputs_;
  std::string swept_;
  std::vector<std::string> groups_;  ///< settings that decide results, by combination
  std::vector<std::uint64_t> gpu_bytes_;
  std::vector<double> wall_;  ///< seconds that the last run of each took, all in all
  std::map<std::string, std::pair<std::string, std::size_t>> results_;  ///< by group and backend: hash, and whose
  std::vector<std::string> warned_;
  std::function<bool()> stop_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::size_t runs_before_ = 0;
  bool stopped_ = false;
  bool out_of_time_ = false;
  std::string difference_;
};

}  // namespace slidestream
