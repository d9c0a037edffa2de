#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// A slide to be opened, or to be opened again after a pause.
struct SlideAttempt {
  std::size_t index = 0;             ///< of the slide in the input
  int number = 0;                    ///< attempts before
  runtime::Clock::time_point begin;  ///< of the first attempt
  runtime::Clock::time_point due;    ///< not before
};

/// Opens a run's slides: plans a slide's strips, prepares its operators, and begins its files. The source stage owns it
/// and calls it from threads that may wait, for several slides at a time.
class SlideOpener {
 public:
  /// All three outlive this object.
  SlideOpener(RunContext& context, const std::vector<std::string>& slides, const RunControl& control);

  /// \return the slide, ready to be sent, failed or abandoned. Null where its storage failed in a way that may pass, or
  /// memory was short: `attempt` is then the next attempt, with the time that it is due. Thread-safe.
  std::shared_ptr<SlideRun> open(SlideAttempt& attempt);

 private:
  bool try_to_open(SlideRun& run, SlideAttempt& attempt);
  bool may_retry_storage(SlideRun& run, const SlideAttempt& attempt, bool no_descriptor);
  void tell_of_shortage(const SlideRun& run);
  void begin(SlideRun& run, SlideAttempt& attempt);
  void keep_plan(SlideRun& run, std::optional<LevelPlan> planned) const;
  std::optional<LevelPlan> plan_of(SlideRun& run) const;
  bool reads_pixels(const SlideRun& run) const;
  void begin_result(SlideRun& run) const;
  /// Whether the slide has taken longer than one may, the time to open it counted.
  bool is_late(runtime::Clock::time_point begin) const;
  void prepare_operators(SlideRun& run, const std::function<bool()>& given_up) const;
  void prepare_network(SlideRun& run, const Operator& op, const SlideContext& about) const;
  void count_tiles_as_glass(SlideRun& run, const operators::Preparation& common) const;
  void tell_of_share(const SlideRun& run, const std::optional<double>& share) const;
  void tell_of_tissue(const SlideRun& run, const SlideContext& about) const;
  void begin_files(SlideRun& run) const;
  void tell_of_opening(const SlideRun& run);
  void say_library(const SlideRun& run);
  void describe(SlideRun& run) const;

  RunContext& context_;
  const std::vector<std::string>& slides_;
  const RunControl& control_;
  std::once_flag library_said_;
  std::once_flag shortage_said_;
};

}  // namespace slidestream
