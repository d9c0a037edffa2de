#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "cli/terminal.hpp"
#include "output/views.hpp"

namespace slidestream::cli {

/// What a run of that configuration is over: "slide" or "volume".
std::string thing_of(const Config& config);

/// Slides without a result, and files that aren't found of those with one.
struct Unfinished {
  std::size_t slides = 0;
  std::string name = "left";  ///< of their line
  std::string where = {};     ///< behind their number
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< that the files had
};

/// Four lines: what was made, where it lies, how fast, and what failed, with a line for each cause. One more where
/// slides are unfinished. `skipped` of the slides were done by an earlier run.
std::string summary_text(const Config& config, const RunResult& result, const Corpus& corpus, std::size_t skipped,
                         const Style& style, const Unfinished& unfinished = {});

/// What `--stats` shows besides: the slides (the first twenty of `result.slides`), the stages, the GPUs.
std::string statistics_of_run_text(const Config& config, const RunResult& result, const Corpus& corpus, int width,
                                   const Style& style);

/// Of a run that wrote one file: the file, its size in pixels and bytes, and how long it took.
std::string file_text(const SlideResult& slide);

/// What every stage did: busy share of the run's threads, wait share, items, bytes, rate.
std::string stages_text(const RunResult& result, const Style& style);

/// How busy the GPUs were kept, a line each; nothing when that isn't known.
std::string overlap_text(const RunResult& result);

}  // namespace slidestream::cli
