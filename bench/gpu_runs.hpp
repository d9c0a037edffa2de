#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "synth/synth.hpp"

namespace slidestream::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  double target = 0;
  std::string direction;  ///< "at_most", "at_least" or "report"
};

/// Slides to be run over, and what was found.
class GpuBench {
 public:
  /// Slides are made in `folder` and kept there; the headline slide has that size.
  GpuBench(std::filesystem::path folder, std::int64_t width, std::int64_t height);

  std::vector<Figure> figures;
  std::string trace_file;             ///< where the trace of one slide goes; empty: nowhere
  std::vector<std::string> settings;  ///< of all runs, as "key=value"

  /// Takes a figure down, and prints it.
  void add(const std::string& name, double value, const std::string& unit, const std::string& direction = "report",
           double target = 0);

  /// A slide of the headline size, or of another, under `count` names; all of it is in the page cache.
  std::vector<std::string> slides(SynthCodec codec, int count, std::int64_t width, std::int64_t height);
  std::vector<std::string> headline(SynthCodec codec, int count) { return slides(codec, count, width_, height_); }
  /// `count` files of the same content, none of which is in the page cache.
  std::vector<std::string> cold_copies(const std::string& slide, int count);

  /// Of a run on the first `gpus` GPUs. `memory_mib` and `queue_depth` are each one's; memory shrinks with the slides.
  Config config(DecodeDevice decode, int memory_mib, int queue_depth, int gpus = 1) const;

  const std::filesystem::path& folder() const noexcept { return folder_; }
  std::int64_t width() const noexcept { return width_; }
  std::int64_t height() const noexcept { return height_; }
  /// A side that is as long as that in a bench of the usual size, and shorter in one of small slides.
  std::int64_t scaled(std::int64_t side) const;

 private:
  std::filesystem::path folder_;
  std::int64_t width_;
  std::int64_t height_;
};

/// Takes a file out of the page cache.
void forget(const std::filesystem::path& file);

struct Run {
  RunResult result;
  double seconds_a_slide = 0;         ///< between the first slide that ended and the last
  double steady_seconds_a_slide = 0;  ///< the same from the one in the middle on
  double seconds = 0;                 ///< of all
  double cores = 0;                   ///< of the CPU that were busy on average
  std::uint64_t pixels = 0;           ///< of all slides
};

/// \param on_slide  hears of each slide, one after the other. \param on_start  is called before each is opened.
/// \throws Error when a slide fails, or the run.
Run run(const Config& config, const std::vector<std::string>& slides,
        const std::function<void(const SlideResult&)>& on_slide = {},
        const std::function<void(const std::string&)>& on_start = {});

/// Prints how long each stage was busy, of all its threads together, and how long batches stood before it.
void report_stages(const std::string& name, const Run& done);

/// Threads of the graph with which some are left where each GPU's source waits: one a processor, or more.
int threads_for_all(int gpus);

/// What the last of the slides takes, from before it is opened to its result, when all others have ended before:
/// nothing is made or prepared for the first time then. A trace of that slide alone goes to `trace_file`, if it is
/// named; recording takes time. \throws Error as `run` does.
double seconds_of_last(Config config, const std::vector<std::string>& slides, const std::string& trace_file = {});

double median(std::vector<double> values);

/// The most memory that this process ever had, in bytes.
std::uint64_t peak_memory();

}  // namespace slidestream::bench
