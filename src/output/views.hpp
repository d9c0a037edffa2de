#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// Where the slides come from that files of results are written of. They needn't be in memory all together.
class SlideSource {
 public:
  virtual ~SlideSource() = default;
  /// Visits those that are done or failed, in the order of slides.csv; the same ones every time.
  virtual void for_each(const std::function<void(const SlideResult&)>& visit) = 0;
  /// What decided their results, by name, where that was kept.
  virtual std::map<std::string, std::string> deciding() { return {}; }
};

/// What all slides come to.
struct Corpus {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::uint64_t missing_tiles = 0;
  std::uint64_t bad_tiles = 0;
  std::uint64_t gpu_fallback_tiles = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t artifacts = 0;       ///< files that were made
  std::uint64_t artifact_bytes = 0;  ///< of them
  bool artifacts_elsewhere = false;  ///< some lie in other folders for results, which were joined
  SpectrumSums sums;
  std::map<std::string, std::string> deciding;            ///< `SlideSource::deciding`
  std::vector<std::string> value_names;                   ///< of all slides' values, in the order of their first
  std::vector<std::pair<std::string, std::string>> maps;  ///< a slide's path and its map's file

  explicit Corpus(std::size_t bins) { sums.histogram.assign(bins, 0); }
  void add(const SlideResult& slide);
};

/// Of all files together.
std::uint64_t bytes_of(const std::vector<Artifact>& artifacts);

/// Writes slides.csv, failures.csv, corpus.json and, of a run with the spectrum, histograms.npy into
/// `config.output.dir` as `write_results` does, and artifacts.csv where there are artifacts. `run` is asked for
/// everything but its slides; `corpus` is filled in before anything is written. \throws OutputError naming the file and
/// the system's reason. `before_each` is called before a file is put in its place; what it throws ends the writing. It
/// may be empty.
void write_views(const Config& config, const RunResult& run, SlideSource& slides, Corpus& corpus,
                 const std::function<void()>& before_each = {});

/// Whether the file is a map of that many windows, of the kind that `write_map` writes, and nothing of it is cut off.
bool is_whole_map(const Config& config, const WindowMap& map, const std::filesystem::path& file);

}  // namespace slidestream
