#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/trace.hpp>

/// @file
/// Results of a run: exact sums that add in any order, and the figures that are computed from them. All of it is host
/// memory.

namespace slidestream {

struct AnalysisConfig;

/// A 128-bit signed integer.
__extension__ typedef __int128 Int128;

/// Exact sums over windows that add in any order. The sums of a window's values and squared values are rounded to fixed
/// point once; everything else is integer addition. Not thread-safe.
struct SpectrumSums {
  static constexpr int sum_fraction_bits = 32;
  static constexpr int square_fraction_bits = 24;

  std::vector<std::uint64_t>
      histogram;  ///< one count per bin; a coefficient of the half spectrum counts for its mirror, too
  std::uint64_t windows = 0;
  std::uint64_t values = 0;   ///< windows x N x N
  std::uint64_t clipped = 0;  ///< values outside the range; the end bins count them
  Int128 sum = 0;             ///< sum of the values x 2^sum_fraction_bits
  Int128 sum_of_squares = 0;  ///< sum of the squared values x 2^square_fraction_bits
  /// Counters of the other statistics, in the order of `placed_statistics`. Empty means zeros.
  std::vector<Int128> counters;

  /// Adds one window to all but the histogram, `clipped` and the counters.
  /// @param value_sum  Sum of the values, in dB or |F|.
  /// @param square_sum  Sum of the squared values.
  /// @param value_count  Number of the values: N x N.
  void add_window(double value_sum, double square_sum, std::uint64_t value_count) noexcept;
  /// Adds other sums. If it throws, the sums are undefined.
  /// @param other  Sums with the same number of bins, and with the same number of counters or none.
  /// @return This object.
  /// @throws std::invalid_argument  Bins or counters differ in number.
  /// @throws std::overflow_error  128 bits can't hold the sums. No windows of a slide reach that.
  SpectrumSums& operator+=(const SpectrumSums& other);
  /// Sets all sums and counters to zero and keeps the allocated memory.
  /// @param bins  Number of bins that the histogram has afterwards.
  void reset(std::size_t bins);
  bool operator==(const SpectrumSums& other) const = default;

  /// Mean of the values.
  /// @return In dB or |F|; 0 without values.
  double mean() const noexcept;
  /// Standard deviation of the population.
  /// @return In dB or |F|; 0 without values.
  double standard_deviation() const noexcept;
  /// The value at which the cumulative histogram reaches a share of all values, linear within a bin.
  /// @param p  The share, 0 to 1.
  /// @param low  Lower end of the histogram's range, in dB or |F|.
  /// @param high  Upper end of the range.
  /// @param can_be_below  Whether values can be below `low`.
  /// @return In the range's unit; `low` without values. NaN if values were outside the range and the percentile is in
  ///   an end bin that can count them.
  double percentile(double p, double low, double high, bool can_be_below = true) const noexcept;
  /// The same of a histogram with the range and value that the configuration has.
  /// @param p  The share, 0 to 1.
  /// @param analysis  Gives `range`, and whether values can be below it.
  /// @return As above.
  double percentile(double p, const AnalysisConfig& analysis) const noexcept;
};

/// Statistics per window, row by row. `values[(wy * columns + wx) * 2]` is the mean, the next value is the standard
/// deviation, both in dB or |F|.
struct WindowMap {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::vector<float> values;
};

/// Cause and place of a slide's failure.
struct SlideFailure {
  std::string stage;                 ///< a stage as in `StageReport`, such as "decode", or an operator; empty: unknown
  std::optional<std::int64_t> tile;  ///< number of the tile at fault in its level, row by row
  std::string cause;                 ///< one line

  /// Stage and cause in one line.
  /// @return "decode: tile 7 is bad", or the cause alone if the stage is unknown.
  std::string text() const { return stage.empty() ? cause : stage + ": " + cause; }
};

/// A figure of a slide that an operator computed, such as "tissue.share".
struct NamedValue {
  std::string name;
  double value = 0.0;  ///< NaN: there is none, such as a share of no pixels
};

/// A file that a run made from a slide.
struct Artifact {
  std::string maker;    ///< name of the operator
  std::string product;  ///< name of the operator's product
  std::string file;     ///< path within the output folder: "images/NAME.sobel.ome.tif"; or `RunControl::image_file`'s
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  ///< XXH64, or XXH64 of blocks or files (docs/images.md)
};

/// The result of one slide, as `slides.csv` lists it.
struct SlideResult {
  std::string path;
  bool done = false;     ///< false: failed, and `failure` says why
  std::string error;     ///< `failure` as text; set by `fail` and `lack`
  SlideFailure failure;  ///< empty if nothing failed; of a slide that is done, why one of its operators failed
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string codec;
  std::string colour;
  int level = 0;
  std::optional<double> mpp;  ///< micrometres per pixel at `level`
  /// Tiles without bytes, which are white. Includes those that the level lacks on which tissue is found
  /// (`count_lost_tiles`). 0 if the slide failed, like the next two.
  std::uint64_t missing_tiles = 0;
  std::uint64_t bad_tiles = 0;  ///< damaged tiles that became white with `on_bad_tile = white`; likewise
  /// Tiles that the GPU's decoder left to the CPU's decoder.
  std::uint64_t gpu_fallback_tiles = 0;
  std::string backend;   ///< "cpu" or "cuda"
  double seconds = 0.0;  ///< from opening the slide (last attempt) to its sums; writing its files isn't included
  std::uint64_t file_bytes = 0;
  SpectrumSums sums;
  WindowMap map;                    ///< empty unless `output.maps` asks for maps
  std::string map_file;             ///< name of the map's file in `maps/`; set by the caller
  std::vector<NamedValue> values;   ///< by operator, in the order of `operators.run`
  std::vector<Artifact> artifacts;  ///< finished files, in the same order

  /// Marks the slide as failed. Sums and map don't change.
  /// @param why  Replaces `failure` and `error`.
  void fail(SlideFailure why) {
    done = false;
    failure = std::move(why);
    error = failure.text();
  }
  /// Notes that an operator failed. `done` and other operators' results don't change.
  /// @param why  Becomes `failure` and `error`, unless there is an error already.
  void lack(SlideFailure why) {
    if (!error.empty()) return;
    failure = std::move(why);
    error = failure.text();
  }
  /// Tells whether the slide is complete.
  /// @return Whether the slide is done, and none of its operators failed.
  bool complete() const noexcept { return done && error.empty(); }
};

/// Work of one stage during a run.
struct StageReport {
  std::string name;
  double busy_seconds = 0.0;  ///< sum over threads
  double wait_seconds = 0.0;  ///< sum of the times that batches waited for it
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  int parallel = 1;  ///< threads or devices that can work on it at the same time
};

/// The result of a run. `slides` is in input order and has the slides that were done or failed.
struct RunResult {
  std::vector<SlideResult> slides;
  SpectrumSums corpus;
  std::vector<StageReport> stages;
  double seconds = 0.0;
  int threads = 0;
  int devices = 0;  ///< GPUs, 0 on the CPU
  std::string backend;
  std::string failure;             ///< one line if the run ended early, such as for a lost device; else empty
  bool lacks_memory = false;       ///< `failure` is that memory lacks
  std::optional<Overlap> overlap;  ///< of a recorded run with GPUs (`TraceRecording`); set by the caller
  bool interrupted = false;        ///< a stop left slides without a result
};

}  // namespace slidestream
