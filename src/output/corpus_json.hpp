#pragma once

#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// The text of corpus.json: settings, versions, totals, stages, and last the merged histogram.
std::string corpus_json(const Config& config, const RunResult& result);

}  // namespace slidestream
