#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
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
  std::size_t incomplete = 0;  ///< of those that are done: an operator failed
  std::uint64_t missing_tiles = 0;
  std::uint64_t bad_tiles = 0;
  std::uint64_t gpu_fallback_tiles = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t artifacts = 0;       ///< files that were made
  std::uint64_t artifact_bytes = 0;  ///< of them
  /// Failures of one cause, which differ in numbers at most.
  struct Cause {
    std::string text;   ///< of the first, or of the first that asks for most memory
    std::string first;  ///< its path
    std::size_t slides = 0;
  };
  std::map<std::string, Cause> causes;     ///< by their text without numbers; a bounded number of them, "" for the rest
  std::set<std::string> artifact_folders;  ///< of this run's folder that have some: "images", "features"
  bool artifacts_elsewhere = false;        ///< some lie in other folders for results, which were joined
  std::size_t clamped_slides = 0;          ///< that have an image of a network of whose values some were clamped
  double most_clamped = 0.0;               ///< the largest share of a slide's
  std::size_t saturated_slides = 0;        ///< of which a sigmoid made classes equal (`saturated_share`)
  double most_saturated = 0.0;             ///< the largest share of a slide's
  SpectrumSums sums;
  std::map<std::string, std::string> deciding;            ///< `SlideSource::deciding`
  std::vector<std::string> value_names;                   ///< of all slides' values, in the order of their first
  std::unordered_set<std::string> known_values;           ///< the same names
  std::vector<std::pair<std::string, std::string>> maps;  ///< a slide's path and its map's file

  explicit Corpus(std::size_t bins) { sums.histogram.assign(bins, 0); }
  void add(const SlideResult& slide);
};

/// The share of a network's values that was clamped to `model.range` in a slide's image; 0: none.
double clamped_share(const SlideResult& slide);

/// The share of pixels of which a sigmoid made several classes equal; 0 also where it isn't worth a line, below 1 %.
double saturated_share(const SlideResult& slide);

/// Of all files together.
std::uint64_t bytes_of(const std::vector<Artifact>& artifacts);

/// Writes the files of `write_results` into `config.output.dir`, and removes an artifacts.csv of an earlier run if
/// there are no artifacts. Fills `corpus` first. Reads everything of `run` except its slides.
/// @param before_each  Called before each file is written and before it is renamed. May be empty. An exception ends
///   the writing.
/// @throws OutputError  A file can't be written. The message names the first one and the cause.
void write_views(const Config& config, const RunResult& run, SlideSource& slides, Corpus& corpus,
                 const std::function<void()>& before_each = {});

/// The table of runs over volumes, and its first line.
inline constexpr const char* labels_name = "labels.csv";
inline constexpr std::string_view labels_header = "path,label,voxels,mm3";

/// Whether a run with this configuration has such a table.
bool writes_labels(const Config& config);

/// The bytes of a slide's map, as `write_map` writes them. \throws OutputError where it is too large for its format.
std::vector<std::byte> map_bytes(const Config& config, const SlideResult& slide);

/// Whether the file is a map of that many windows, of the kind that `write_map` writes, and nothing of it is cut off.
bool is_whole_map(const Config& config, const WindowMap& map, const std::filesystem::path& file);

}  // namespace slidestream
