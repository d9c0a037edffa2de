#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "output/views.hpp"

namespace slidestream {

/// All keys, by section and name.
nlohmann::ordered_json settings_json(const Config& config);

/// The text of corpus.json: settings, versions, totals, stages, and last the merged histogram. What a run did (times,
/// threads, stages) comes from `result`; what was found, which is the same for every run of the same slides, from
/// `found`. `earlier`: such a text whose backend, threads, times and stages stay; empty, or anything else: none.
std::string corpus_json(const Config& config, const RunResult& result, const Corpus& found,
                        const std::string& earlier = {});

}  // namespace slidestream
