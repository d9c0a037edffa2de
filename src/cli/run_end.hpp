#pragma once

#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "cli/run_options.hpp"
#include "cli/run_record.hpp"
#include "cli/tracing.hpp"

namespace slidestream::cli {

/// Prints what a run says of its results.
void print_report(const std::string& text);

/// Where a run over slides ended: writes and prints its results. \return the status that says how it ended
int conclude(const Config& config, RunResult& result, const std::vector<std::string>& slides, RunRecord& record,
             const Tracing& tracing, const RunOptions& options);

}  // namespace slidestream::cli
