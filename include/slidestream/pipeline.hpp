#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

/// \file
/// Running the pipeline over slides.

namespace slidestream {

/// An image that is being written.
struct ImageProgress {
  std::string slide;        ///< path, as it was given
  std::string file;         ///< as in `Artifact`, but with the name that it has until it is whole
  std::uint64_t tiles = 0;  ///< written so far, of all levels
  std::uint64_t tiles_total = 0;
  std::uint64_t bytes = 0;  ///< of the tiles that were written, compressed
};

/// A moment of a running pipeline, for progress displays.
struct Progress {
  std::uint64_t slides_total = 0;
  std::uint64_t slides_done = 0;  ///< finished without error
  std::uint64_t slides_failed = 0;
  std::uint64_t slides_skipped = 0;  ///< of those done, done by an earlier run: a caller's to set
  std::uint64_t pixels = 0;          ///< transformed so far
  std::uint64_t pixels_started = 0;  ///< pixels of all slides opened so far
  std::uint64_t bytes_read = 0;
  std::uint64_t tiles_written = 0;    ///< of images, also of those that aren't whole yet
  std::uint64_t bytes_written = 0;    ///< of these tiles, compressed
  std::uint64_t files_made = 0;       ///< of slides that are done: a caller's to set
  std::vector<ImageProgress> images;  ///< that are being written, in the order in which they were begun
  double seconds = 0.0;               ///< since the start
  std::string busiest_stage;          ///< the stage with the largest busy share so far
};

/// What `wake_up` got ready.
struct Woken;

/// How a caller watches and stops a run. All members may be used from any thread while it runs. What `on_slide`,
/// `on_progress` and `on_message` throw stops the run and comes out of it.
class RunControl {
 public:
  /// Asks the run to stop: slides whose last strip is in flight are finished, others left as they were; so are those
  /// that a network hasn't given all of yet.
  void request_stop() noexcept { stop_.store(true, std::memory_order_relaxed); }
  bool stop_requested() const noexcept { return stop_.load(std::memory_order_relaxed); }

  /// Called from any thread before a slide is opened. What it throws fails the slide.
  std::function<void(const std::string& path)> on_start;
  /// Called after `on_start`, from any thread, for what the names of the slide's images begin with. What it throws
  /// fails the slide. Empty: the stem of its file, which two slides of a run must not share then.
  std::function<std::string(const std::string& path)> image_name;
  /// Called after `image_name`, from any thread, for where a file of the slide is to lie: `name` is what it is called
  /// otherwise, such as "NAME.identity.ome.tif". What it throws fails the slide. Empty: `output.dir`/images/name.
  std::function<std::filesystem::path(const std::string& path, const std::string& name)> image_file;
  /// Called when a slide is done or failed, one call at a time, in the order in which slides ended, from a thread of
  /// its own: it may block, and other slides go on meanwhile. Few of them: while results wait, their slots aren't used
  /// again. All calls have returned when the run does. It may take `map` and `sums` out of the result.
  std::function<void(SlideResult&)> on_slide;
  /// Called about ten times a second from a thread of its own.
  std::function<void(const Progress&)> on_progress;
  /// Called with warnings and notes (one line each), from any thread.
  std::function<void(const std::string&)> on_message;

  /// What `wake_up` gave for the same configuration, for one run to use up; may be null.
  std::shared_ptr<Woken> woken;

 private:
  std::atomic<bool> stop_{false};
};

/// Checks what only this build and this machine can tell: backends, devices, and that the transforms can be planned.
/// `run_pipeline` does the same; a program calls it to know before it makes anything.
/// \throws ConfigError that names the key.
void check_runnable(const Config& config);

/// Has the GPUs of a configuration ready sooner: their driver takes some tenths of a second for it, and a program may
/// look for its slides at the same time. Meanwhile memory for the first slots is taken, which the run that `woken` is
/// given to uses, or which goes with the last copy of what is returned. Needn't be called; what can't be run is passed
/// over, and null is returned then. Thread-safe.
std::shared_ptr<Woken> wake_up(const Config& config) noexcept;

/// Runs the pipeline over `slides` (paths of slide files: see `expand_inputs` for folders and manifests).
/// A slide that fails is reported in its result and doesn't stop the others.
/// \throws ConfigError when the configuration can't be run on this machine; Error when the pipeline itself fails.
RunResult run_pipeline(const Config& config, const std::vector<std::string>& slides, RunControl& control);

/// What a list of inputs comes to.
struct ExpandedInputs {
  std::vector<std::string> slides;     ///< in order, each once
  std::vector<std::string> canonical;  ///< of each, the file behind it: absolute, without links
  std::vector<std::string> warnings;   ///< one line each, such as a slide named twice
};

/// Resolves slides, folders (recursively, by suffix, bytewise order), `.list` and `.csv` manifests and `-` (a list on
/// standard input) to slide paths. A path that doesn't exist stays, and fails as a slide later.
/// \throws ConfigError when a manifest can't be read.
ExpandedInputs expand_inputs(const std::vector<std::string>& inputs);

/// Makes the output folder and checks that results can be written there: to be called before a run.
/// \throws OutputError naming what is in the way.
void prepare_output(const Config& config);

/// Writes `slides.csv`, `corpus.json` and `histograms.npy` into `config.output.dir`, each whole to a temporary name,
/// synced and renamed. One that can't be written is missing afterwards, also where an earlier run left it; the others
/// are written all the same. \throws OutputError naming the file and the system's reason.
void write_results(const Config& config, const RunResult& result);

/// Names for slides' maps, each once: a slide's file name without suffix, and a number from its second use on.
std::vector<std::string> map_names(const std::vector<std::string>& slides);

/// Writes one slide's map, whole, to `config.output.dir`/maps/NAME.npy or .tif (`config.output.maps` says which) and
/// returns its path. \throws OutputError.
std::string write_map(const Config& config, const SlideResult& slide, const std::string& name);

/// The version of the library, "MAJOR.MINOR.PATCH".
const char* version() noexcept;

}  // namespace slidestream
