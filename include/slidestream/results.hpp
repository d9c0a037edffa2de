#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/trace.hpp>

/// \file
/// What a run finds: exact sums that add in any order, and the figures derived from them.

namespace slidestream {

__extension__ typedef __int128 Int128;

/// Exact, order-free sums over windows. Each window contributes its sum of values and of squared values, rounded to
/// fixed point once; all else is integer addition.
struct SpectrumSums {
  static constexpr int sum_fraction_bits = 32;
  static constexpr int square_fraction_bits = 24;

  std::vector<std::uint64_t>
      histogram;  ///< counts, one per bin; a half-spectrum coefficient counts for itself and its mirror
  std::uint64_t windows = 0;
  std::uint64_t values = 0;   ///< windows x N x N
  std::uint64_t clipped = 0;  ///< values outside the range, counted in the end bins
  Int128 sum = 0;             ///< of the values, x 2^sum_fraction_bits
  Int128 sum_of_squares = 0;  ///< of the squared values, x 2^square_fraction_bits
  /// Of the other statistics that were asked for, one behind the other (`placed_statistics`). None stand for zeros.
  std::vector<Int128> counters;

  /// Adds one window's sums (dB or |F|, not divided by N x N).
  void add_window(double value_sum, double square_sum, std::uint64_t value_count) noexcept;
  /// Adds another set with the same number of bins and counters. \throws std::invalid_argument otherwise;
  /// std::overflow_error where 128 bits don't hold the sums, which no windows of a slide can reach.
  SpectrumSums& operator+=(const SpectrumSums& other);
  /// Nothing of `bins` bins, in the memory that it has.
  void reset(std::size_t bins);
  bool operator==(const SpectrumSums& other) const = default;

  double mean() const noexcept;                ///< 0 when there are no values
  double standard_deviation() const noexcept;  ///< population
  /// Where the cumulative histogram reaches `p` (0 to 1) of all values, linear within the bin, in the range's unit.
  double percentile(double p, double low, double high) const noexcept;
};

/// Per-window statistics, row by row: `values[(wy * columns + wx) * 2]` is the mean, the next the standard deviation.
struct WindowMap {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::vector<float> values;
};

/// Why a slide failed, and where.
struct SlideFailure {
  std::string stage;                 ///< named as in `StageReport`, such as "decode"; empty where that isn't known
  std::optional<std::int64_t> tile;  ///< number of the tile at fault in its level, row by row; empty where none is
  std::string cause;                 ///< one line

  /// Both in one line: "decode: tile 7 is bad".
  std::string text() const { return stage.empty() ? cause : stage + ": " + cause; }
};

/// A figure that an operator found of a slide: "tissue.share".
struct NamedValue {
  std::string name;
  double value = 0.0;
};

/// A file that was made of a slide.
struct Artifact {
  std::string maker;    ///< name of the operator
  std::string product;  ///< of it
  std::string file;     ///< its path inside the output folder: "images/NAME.sobel.ome.tif"; after a merge see there
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  ///< XXH64; of more than 1 MiB, of its blocks' (docs/images.md)
};

/// One slide's line of `slides.csv`.
struct SlideResult {
  std::string path;
  bool done = false;     ///< false: failed, and `failure` says why
  std::string error;     ///< `failure` as text; set by `fail`
  SlideFailure failure;  ///< empty when done
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string codec;
  std::string colour;
  int level = 0;
  std::optional<double> mpp;        ///< micrometres a pixel at `level`
  std::uint64_t missing_tiles = 0;  ///< as the counts below, 0 where the slide failed
  std::uint64_t bad_tiles = 0;      ///< filled white under `on_bad_tile = white`
  /// Tiles that the GPU's decoder gave back to the CPU's, whose verdict and pixels stand.
  std::uint64_t gpu_fallback_tiles = 0;
  std::string backend;   ///< "cpu" or "cuda"
  double seconds = 0.0;  ///< from the first read to the result
  std::uint64_t file_bytes = 0;
  SpectrumSums sums;
  WindowMap map;                    ///< empty unless maps are asked for
  std::string map_file;             ///< its file's name in `maps/`, once it was written
  std::vector<NamedValue> values;   ///< by operator, in the run's order
  std::vector<Artifact> artifacts;  ///< whole files with their final names, by operator in the run's order

  /// Makes it a failed one. Sums and map stay as they are.
  void fail(SlideFailure why) {
    done = false;
    failure = std::move(why);
    error = failure.text();
  }
};

/// What one stage did during a run.
struct StageReport {
  std::string name;
  double busy_seconds = 0.0;  ///< summed over threads
  double wait_seconds = 0.0;  ///< time batches stood before it
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  int parallel = 1;  ///< threads, or devices, that it may keep busy at a time
};

/// All of a run. `slides` is in input order.
struct RunResult {
  std::vector<SlideResult> slides;
  SpectrumSums corpus;
  std::vector<StageReport> stages;
  double seconds = 0.0;
  int threads = 0;
  int devices = 0;  ///< GPUs, 0 on the CPU
  std::string backend;
  std::string failure;  ///< one line when the run itself failed, such as a lost device; what was finished is here
  std::optional<Overlap> overlap;  ///< of a run that was recorded (`TraceRecording`) and used GPUs: the caller's to set
  bool interrupted = false;        ///< a stop was asked for: slides that were not reached are absent from `slides`
};

}  // namespace slidestream
