#pragma once

#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/pipeline.hpp>

#include "cli/run_options.hpp"
#include "cli/terminal.hpp"
#include "system/control_groups.hpp"

namespace slidestream::cli {

/// "512.0 MiB", "8.25 GiB": memory, in powers of two as the keys count it.
std::string memory_text(std::uint64_t bytes);

/// What a run would do, a line a subject and a row a slide.
std::string forecast_text(const Config& config, const RunForecast& forecast, int width, const Style& style);

/// A line for a run that plans more memory than its control groups let it have; empty: it fits, or nothing limits it.
std::string memory_warning(const RunForecast& forecast, const GroupLimits& limits);

/// The same before a run. Slides are looked at where that decides nothing but the number, and where they are few.
/// Networks don't count: what they take is found by running them. Without either the line says "more than".
std::string memory_warning(const Config& config, const std::vector<std::string>& slides, const GroupLimits& limits);

/// What a start would find where its results are to lie.
struct StartForecast {
  std::string results;  ///< the place, and what is done there; one line
  std::string refusal;  ///< why it wouldn't start; empty: it would
};

/// Looks without changing anything. \throws OutputError where an earlier run's ledger can't be read
StartForecast forecast_start(const Config& config, const ExpandedInputs& inputs, const RunOptions& options);

/// `pipeline --dry-run`: prints it. Returns 0; 1 when a slide would fail at once. \throws ConfigError when nothing
/// would be started.
int dry_run(const Config& config, const ExpandedInputs& inputs, const RunOptions& options);

}  // namespace slidestream::cli
