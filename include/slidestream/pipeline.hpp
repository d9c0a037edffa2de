#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

/// @file
/// Runs the pipeline over slides and writes its results.

namespace slidestream {

class Operator;

/// An image that is being written.
struct ImageProgress {
  std::string slide;        ///< path of the slide, unchanged
  std::string file;         ///< like `Artifact::file`, but with the partial name
  std::uint64_t tiles = 0;  ///< tiles of all levels that are written
  std::uint64_t tiles_total = 0;
  std::uint64_t bytes = 0;  ///< compressed size of these tiles
};

/// State of a running pipeline, for progress displays.
struct Progress {
  std::uint64_t slides_total = 0;
  std::uint64_t slides_done = 0;  ///< finished without error
  std::uint64_t slides_failed = 0;
  std::uint64_t slides_skipped = 0;  ///< part of `slides_done` that an earlier run did; set by the caller
  std::uint64_t pixels = 0;          ///< pixels of the level that are computed
  std::uint64_t pixels_started = 0;  ///< pixels of all slides that are opened
  std::uint64_t bytes_read = 0;
  std::uint64_t tiles_written = 0;    ///< tiles of images, finished or not
  std::uint64_t bytes_written = 0;    ///< compressed size of these tiles
  std::uint64_t files_made = 0;       ///< files of finished slides; set by the caller
  std::vector<ImageProgress> images;  ///< images that are being written, oldest first
  double seconds = 0.0;               ///< since the start of the run
  std::string busiest_stage;          ///< the stage with the most busy seconds so far
};

/// Lets a caller watch and stop a run. `request_stop` and `stop_requested` are thread-safe. Set the data members before
/// the run and don't change them while it works. Exceptions of `on_slide`, `on_pause` and `on_progress` stop the run,
/// and `run_pipeline` throws them.
class RunControl {
 public:
  /// Asks the run to stop. Slides whose last strip is already in flight are finished if that takes less than 5 s and no
  /// network has work left for them. Other slides are abandoned and have no result. May be called in a signal handler.
  void request_stop() noexcept { stop_.store(true, std::memory_order_relaxed); }
  /// Tells whether the caller or an error of the run requested a stop.
  /// @return True from the request on.
  bool stop_requested() const noexcept { return stop_.load(std::memory_order_relaxed); }

  /// Called from any thread before a slide is opened. An exception fails the slide.
  std::function<void(const std::string& path)> on_start;
  /// Returns the name with which all files of a slide begin. Called from any thread after `on_start`, only if operators
  /// make files. An exception fails the slide. If empty, the name is the stem of the slide's file; then no two slides
  /// of a run may have the same stem.
  std::function<std::string(const std::string& path)> image_name;
  /// Returns the path of a file of a slide. `name` is its usual name, such as "NAME.identity.ome.tif". Called from any
  /// thread after `image_name`. An exception fails the slide. If empty, files are in subfolders of `output.dir`, and
  /// images are in `images`.
  std::function<std::filesystem::path(const std::string& path, const std::string& name)> image_file;
  /// Called with the path of each file or folder of a slide before it is begun, after `image_file`. Called from any
  /// thread. An exception fails the slide. May be empty.
  std::function<void(const std::filesystem::path& file)> check_file;
  /// Called after `check_file` with the name that an image has while it is written, such as "NAME.partial.ome.tif".
  /// What has this name is removed. Called from any thread. An exception fails the slide. May be empty.
  std::function<void(const std::filesystem::path& file)> check_partial;
  /// Called with a slide's path when all its files were checked, before the first has its name. Called from any thread.
  /// It must not throw. May be empty.
  std::function<void(const std::string& path)> on_files;
  /// Called with a slide's path when a file of it can't be written, which ends the run. Called from any thread. It must
  /// not throw. May be empty.
  std::function<void(const std::string& path)> on_unwritten;
  /// Called when a slide is done or failed, in the order in which slides end. One thread makes all calls, one at a
  /// time, before `run_pipeline` returns. A call may block. If it blocks long, the run waits, because results keep
  /// their slots. A call may move `map` and `sums` out of the result.
  std::function<void(SlideResult&)> on_slide;
  /// Called on the thread of `on_slide` when no other slide waits for a call, and after 8 slides at the latest. What
  /// these calls put off, such as a commit, can be done here once for all. May be empty.
  std::function<void()> on_pause;
  /// Called about ten times per second and once at the end, from a thread of its own.
  std::function<void(const Progress&)> on_progress;
  /// Called from any thread with notes of one line each. It must not throw. May be empty.
  std::function<void(const std::string&)> on_message;
  /// Called as `on_message` with doubts about results: `SlideInfo::warnings`, and what was found without a pixel size,
  /// such as tissue and stains. If empty, `on_message` gets these lines.
  std::function<void(const std::string&)> on_warning;

  /// The caller's own operators, in place of the operators that `operators.run` names. If empty, the latter run. Each
  /// has its own name. The run calls them from any thread.
  std::vector<std::shared_ptr<const Operator>> operators;

 private:
  std::atomic<bool> stop_{false};
};

/// Checks whether this build and this machine can run a configuration: its values, operators, backend and devices.
/// `run_pipeline` does the same; call this before you create files. It checks the operators of `operators.run`, not
/// those of `RunControl::operators`. Thread-safe.
/// @param config  The configuration.
/// @throws ConfigError  The configuration can't be run. The message says why.
/// @throws CudaError  A GPU fails.
void check_runnable(const Config& config);

/// Starts the driver of the configured GPUs. A program may call this while it looks for its slides, so that the run
/// starts sooner. Thread-safe.
/// @param config  The configuration of the run.
void wake_up(const Config& config) noexcept;

/// Runs the pipeline over slides. A slide that fails is reported in its result and doesn't stop the others. If a GPU is
/// lost, the run ends and `RunResult::failure` says why.
/// @param config  The configuration. `input.slides` isn't read.
/// @param slides  Paths of slide files, each once. `expand_inputs` finds them in folders and manifests.
/// @param control  Callbacks and the stop request.
/// @return The results of all slides that were done or failed.
/// @throws ConfigError  The configuration can't be run on this machine.
/// @throws OutputError  A slide's file can't be written.
/// @throws CudaError  A GPU fails before the first slide.
/// @throws Error  The pipeline itself fails, for example if no thread can be started.
RunResult run_pipeline(const Config& config, const std::vector<std::string>& slides, RunControl& control);

/// The slides of a list of inputs.
struct ExpandedInputs {
  std::vector<std::string> slides;     ///< in order, each once
  std::vector<std::string> canonical;  ///< absolute path of each slide, without links
  std::vector<std::string> warnings;   ///< one line each, such as a slide named twice
  std::map<std::string, double> mpp;   ///< by slide, where a CSV list gives it: for `input.slide_mpp`
};

/// Finds the slides of a list of inputs. A folder gives its slides and those of its subfolders, by suffix and in
/// bytewise order, without hidden files. If some inputs don't exist, they stay in the list and fail as slides later.
/// @param inputs  Slides, folders, `.list` and `.csv` manifests, or `-` for a list on standard input.
/// @return The slides, and warnings.
/// @throws ConfigError  No input exists, a path is empty, or a manifest can't be read.
ExpandedInputs expand_inputs(const std::vector<std::string>& inputs);

/// Creates the output folder and checks that results can be written there. Call it before a run.
/// @param config  The configuration of the run.
/// @throws OutputError  The folder or a file can't be written. The message names it.
void prepare_output(const Config& config);

/// Writes the result files into `output.dir`. These are `slides.csv`, `failures.csv`, `corpus.json`, and
/// `artifacts.csv` if slides have artifacts. With the spectrum, `histograms.npy` and a NAME.npy per series of each
/// statistic are added. Each file is written under a temporary name, synced and renamed. If a file can't be written, an
/// earlier version of it is removed and the other files are still written.
/// @param config  The configuration of the run.
/// @param result  The results of the run.
/// @throws OutputError  A file can't be written. The message names the first one and the cause.
void write_results(const Config& config, const RunResult& result);

/// Writes the map of a slide to maps/NAME.npy or maps/NAME.tif in `output.dir`. `output.maps` = `tiff` selects the
/// second. The file appears whole or not at all. Thread-safe for different names.
/// @param config  The configuration of the run.
/// @param slide  The slide's result, with its map.
/// @param name  Name of the file without suffix.
/// @return Path of the file.
/// @throws OutputError  The file can't be written.
std::string write_map(const Config& config, const SlideResult& slide, const std::string& name);

/// The version of the library. Thread-safe.
/// @return "MAJOR.MINOR.PATCH".
const char* version() noexcept;

}  // namespace slidestream
