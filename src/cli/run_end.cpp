#include "cli/run_end.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iostream>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/report.hpp"
#include "cli/run_warnings.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"
#include "cli/under_way.hpp"

namespace slidestream::cli {

namespace {

/// Slides of this run that have no result.
std::size_t slides_left(const RunRecord& record) {
  const Corpus& corpus = record.corpus();
  return record.start().mine - std::min(record.start().mine, corpus.done + corpus.failed);
}

void report_results(const Config& config, RunResult& result, const RunRecord& record, bool complete, bool stats) {
  const Style style = Style::of(1);
  const int width = style.terminal ? terminal_width(1) : 120;
  result.slides = record.first_slides();
  std::string text;
  if (stats && complete) text += statistics_of_run_text(config, result, record.corpus(), width, style) + "\n";
  if (complete) {
    text += summary_text(config, result, record.corpus(), record.start().done, style, Unfinished{slides_left(record)});
  }
  if (stats && !complete) text += stages_text(result, style) + overlap_text(result);
  print_report(text);
}

/// The first signal that a run of its own was stopped by; 0: none.
int signal_of(const EmbeddedRun* embedded) { return embedded == nullptr ? SignalScope::received() : 0; }

}  // namespace

void print_report(const std::string& text) {
  errno = 0;
  std::cout << text << std::flush;
  // A reader that went away doesn't want it: the results are written.
  if (!std::cout && errno == EPIPE) std::cout.clear();
}

int conclude(const Config& config, RunResult& result, const std::vector<std::string>& slides, RunRecord& record,
             const Tracing& tracing, const RunOptions& options) {
  std::string failure = record.failure();
  bool complete = failure.empty();
  const std::string_view of_shortage = record.has_shortage() ? slides_under_way().noted() : std::string_view();
  if (!complete) spdlog::error("{}{}", failure, of_shortage);
  if (!result.failure.empty()) {
    spdlog::error("the run ended early: {}{}", result.failure, complete ? of_shortage : std::string_view());
    complete = false;
  }
  const auto attempt = [&complete, &failure](const auto& write) {
    try {
      write();
    } catch (const OutputError& error) {
      spdlog::error("{}", error.what());
      complete = false;
      if (failure.empty()) failure = error.what();
    }
  };
  attempt([&] {
    try {
      record.write_files(result);
    } catch (const OutputError& error) {
      // What ended the run is most often what fails again here, and was told.
      if (record.failure().empty()) throw;
      spdlog::debug("{}", error.what());
    }
  });
  if (options.work != nullptr) attempt([&] { options.work->write(config); });
  attempt([&] { tracing.write(slides); });
  if (!options.quiet) report_results(config, result, record, complete, options.stats);
  if (options.embedded != nullptr) {
    options.embedded->failure = failure;
    options.embedded->result = result;
  }
  const Corpus& corpus = record.corpus();
  warn_of_clipped(corpus.sums);
  const std::string thing = options.work != nullptr ? options.work->name : "slide";
  warn_of_clamped(config, corpus.clamped_slides, corpus.most_clamped, thing);
  warn_of_saturated(config, corpus.saturated_slides, corpus.most_saturated);
  // A limit that is reached by the last slides has stopped nothing.
  const std::size_t left = slides_left(record);
  const bool stopped = !record.stopped().empty() && left > 0;
  if (stopped) {
    spdlog::error("{}: {} failed, and {} {} left", record.stopped(), count_of(corpus.failed, thing), left,
                  left == 1 ? "is" : "are");
  }
  if (options.embedded != nullptr && stopped) options.embedded->stopped = record.stopped();
  if (const int signal = signal_of(options.embedded); signal != 0) {
    if (left > 0) {
      spdlog::warn("interrupted: {} of {} {}s done, {} failed; the same command does the rest", corpus.done,
                   record.start().mine, thing, corpus.failed);
      return 128 + signal;
    }
    spdlog::warn("nothing is left: {} of {} {}s done, {} failed", corpus.done, record.start().mine, thing,
                 corpus.failed);
  }
  const std::size_t lacking = record.start().lacking.size();
  if (lacking > 0) {
    spdlog::error(
        "{} can't be found any more and {} files of earlier results; the same command makes them again once "
        "{} there",
        count_of(lacking, thing), lacking == 1 ? "lacks" : "lack", lacking == 1 ? "it is" : "they are");
  }
  if (!complete || stopped) return exit_ended_early;
  return corpus.failed + corpus.incomplete + lacking == 0 ? exit_done : exit_some_failed;
}

}  // namespace slidestream::cli
