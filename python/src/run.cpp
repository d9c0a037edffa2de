#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <thread>
#include <unordered_map>

#include "bindings.hpp"
#include "cli/image_file.hpp"
#include "cli/run_command.hpp"
#include "cli/volume_command.hpp"
#include "config/printable.hpp"
#include "config/toml_text.hpp"
#include "ledger/ledger_view.hpp"
#include "ledger/schema.hpp"
#include "map.hpp"
#include "message_sink.hpp"
#include "output/slides_csv.hpp"
#include "runtime/forked.hpp"

namespace slidestream::python {

namespace {

/// What is known of a run's slides.
struct Outcome {
  Config config;
  RunResult run;  ///< with its slides and corpus
};

/// A run on a thread of its own. In a child that was forked meanwhile it has ended, and its outcome is an error.
class Run {
 public:
  /// \param calls  the network in place of `model.file`; may be null
  Run(cli::RunOptions options, std::shared_ptr<Calls> calls) : options_(std::move(options)), calls_(std::move(calls)) {
    runtime::require_whole_process();
    options_.quiet = true;
    options_.embedded = &embedded_;
    embedded_.network = calls_;
    const Config config = cli::effective_config(options_);
    embedded_.in_memory = to_folder() && options_.out.empty() && config.output.dir == Config{}.output.dir;
    check_for_folder();
    embedded_.on_progress = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      progress_ = progress;
    };
    at_work_.emplace();
    thread_ = std::thread([this] { work(); });
  }
  ~Run() {
    abort();
    join();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void stop() noexcept { embedded_.control.request_stop(); }

  /// Stops it at once: slides under way stay as they were.
  void abort() noexcept {
    if (is_foreign()) return;
    embedded_.aborted = true;
    stop();
    if (calls_ != nullptr) calls_->abort();
  }

  /// Whether it has ended within that time.
  bool wait(int milliseconds) {
    if (is_foreign()) return true;
    const Unlocked unlocked;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return ended_; });
  }

  /// What is new since the last call.
  std::optional<Progress> progress() {
    if (is_foreign()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return std::exchange(progress_, {});
  }

  /// Once it has ended. \throws what ended it
  std::shared_ptr<Outcome> outcome() {
    if (is_foreign()) throw Error("the run goes on in the process that this one was forked from, and can't end here");
    const Unlocked unlocked;
    join();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (!embedded_.failure.empty()) throw OutputError(embedded_.failure);
    if (!embedded_.result.failure.empty()) throw EndedEarlyError("the run ended early: " + embedded_.result.failure);
    if (!embedded_.stopped.empty()) throw EndedEarlyError(embedded_.stopped + "; the same run does the rest");
    // Names of files are relative to that folder.
    if (!to_folder()) embedded_.config.output.dir.clear();
    return std::make_shared<Outcome>(Outcome{embedded_.config, std::move(embedded_.result)});
  }

 private:
  bool is_foreign() const noexcept { return process_ != ::getpid(); }
  bool to_folder() const noexcept { return options_.file.empty(); }

  /// \throws ConfigError where an argument is for runs in a folder alone, and there is none
  void check_for_folder() const {
    if (!embedded_.in_memory && to_folder()) return;
    const auto check = [](const char* name, const std::string& value) {
      if (!value.empty()) throw ConfigError(name + std::string(" is for results in a folder: name one with out"));
    };
    check("shard", options_.shard);
    check("max_failures", options_.max_failures);
    check("metrics", options_.metrics);
    if (embedded_.in_memory) check("trace", options_.trace);
  }

  void work() noexcept {
    try {
      cli::run(options_);
      if (!embedded_.in_memory && to_folder() && embedded_.failure.empty()) read_results();
    } catch (...) {
      failure_ = std::current_exception();
    }
    if (calls_ != nullptr) calls_->close();
    at_work_.reset();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void read_results() {
    const std::filesystem::path file = std::filesystem::path(embedded_.config.output.dir) / ledger_name;
    read_results(file);
    // A connection that only reads leaves files beside the ledger, which the next one that may write takes away.
    open_to_read(file);
  }

  void read_results(const std::filesystem::path& file) {
    const auto bins = static_cast<std::size_t>(embedded_.config.analysis.bins);
    LedgerView view(file, bins);
    std::unordered_map<std::string, std::size_t> places;
    std::vector<SlideResult>& slides = embedded_.result.slides;
    slides.clear();
    Corpus corpus(bins);
    view.for_each([&](const SlideResult& slide) {
      places[slide.path] = slides.size();
      slides.push_back(slide);
      corpus.add(slide);
    });
    view.for_each_map([&](std::size_t position, const SlideResult& slide) {
      WindowMap& map = slides[places.at(slide.path)].map;
      map.columns = slide.map.columns;
      map.rows = slide.map.rows;
      if (!view.read_map(position, map)) map = {};
    });
    embedded_.result.corpus = std::move(corpus.sums);
    embedded_.result.interrupted = embedded_.control.stop_requested() && !view.missing().empty();
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

  const pid_t process_ = ::getpid();
  std::optional<runtime::Work> at_work_;  ///< until the thread has done its work
  cli::RunOptions options_;
  const std::shared_ptr<Calls> calls_;
  cli::EmbeddedRun embedded_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;                // guarded by mutex_
  std::optional<Progress> progress_;  // guarded by mutex_
  std::thread thread_;
};

/// One slide of an outcome, which it keeps.
struct SlideOfRun {
  std::shared_ptr<Outcome> outcome;
  std::size_t place = 0;

  SlideResult& result() const { return outcome->run.slides[place]; }
  bool has_spectrum() const { return result().done && outcome->config.operators.runs("spectrum"); }
};

std::vector<Findings> findings_of(const Outcome& outcome, const SpectrumSums& sums) {
  std::vector<Findings> all;
  if (!outcome.config.operators.runs("spectrum")) return all;
  for (const PlacedStatistic& placed : placed_statistics(outcome.config.analysis)) {
    all.push_back(findings_of(placed, outcome.config.analysis, sums));
  }
  return all;
}

nb::typed<nb::dict, nb::str, nb::any> values_of(const Outcome& outcome, const SlideResult& slide) {
  nb::typed<nb::dict, nb::str, nb::any> values;
  for (const Findings& findings : findings_of(outcome, slide.sums)) {
    for (const Figure& figure : findings.figures) values[figure.name.c_str()] = nb::cast(figure.value);
  }
  for (const NamedValue& value : slide.values) values[value.name.c_str()] = value.value;
  return values;
}

nb::typed<nb::dict, nb::str, nb::any> series_of(const Outcome& outcome, const SpectrumSums& sums) {
  nb::typed<nb::dict, nb::str, nb::any> all;
  for (Findings& findings : findings_of(outcome, sums)) {
    for (Series& series : findings.series) {
      const std::size_t size = series.size();
      const char* const name = series.name.c_str();
      if (series.is_counts()) {
        all[name] = array_of(std::move(series.counts), {size});
      } else {
        all[name] = array_of(std::move(series.values), {size});
      }
    }
  }
  return all;
}

/// A file's name as Python has it, which `os.fsencode` turns into its bytes again.
nb::str name_of(const std::string& path) {
  return nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

/// slides.csv of the outcome, which to_pandas reads: so its columns are the same.
std::string slides_csv(const Outcome& outcome) {
  Corpus corpus(static_cast<std::size_t>(outcome.config.analysis.bins));
  for (const SlideResult& slide : outcome.run.slides) corpus.add(slide);
  std::string text = slides_csv_header(outcome.config, corpus.value_names);
  for (const SlideResult& slide : outcome.run.slides) {
    text += slides_csv_record(outcome.config, slide, corpus.value_names);
  }
  return text;
}

Array<std::int64_t> histogram_of(SpectrumSums& sums, const std::shared_ptr<Outcome>& outcome) {
  // Counts have 63 bits at most.
  return array_of(reinterpret_cast<std::int64_t*>(sums.histogram.data()), {sums.histogram.size()}, outcome);
}

/// What was found of the spectrum's values, where there are any: of none there is nothing to say.
double or_nan(const SpectrumSums& sums, double found) {
  return sums.values == 0 ? std::numeric_limits<double>::quiet_NaN() : found;
}

double mean_of(const SpectrumSums& sums) { return or_nan(sums, sums.mean()); }
double deviation_of(const SpectrumSums& sums) { return or_nan(sums, sums.standard_deviation()); }

/// @param q 0 to 1
double quantile_of(const SpectrumSums& sums, const Config& config, double q) {
  if (!(q >= 0.0 && q <= 1.0)) throw ConfigError("quantile: q is " + std::to_string(q) + "; expected 0 to 1");
  return or_nan(sums, sums.percentile(q, config.analysis));
}

/// @param p 0 to 100
double percentile_of(const SpectrumSums& sums, const Config& config, double p) {
  if (!(p >= 0.0 && p <= 100.0)) throw ConfigError("percentile: p is " + to_toml_number(p) + "; expected 0 to 100");
  return quantile_of(sums, config, p / 100.0);
}

void bind_progress(nb::module_& module) {
  nb::class_<Progress>(module, "Progress", "A moment of a run.")
      .def_ro("slides_total", &Progress::slides_total)
      .def_ro("slides_done", &Progress::slides_done, "Finished without error, by earlier runs too.")
      .def_ro("slides_failed", &Progress::slides_failed)
      .def_ro("slides_skipped", &Progress::slides_skipped, "Of those done, done by an earlier run.")
      .def_ro("pixels", &Progress::pixels, "Worked on so far.")
      .def_ro("pixels_started", &Progress::pixels_started, "Of all slides that were opened so far.")
      .def_ro("bytes_read", &Progress::bytes_read)
      .def_ro("tiles_written", &Progress::tiles_written, "Of images.")
      .def_ro("bytes_written", &Progress::bytes_written, "Of these tiles, compressed.")
      .def_prop_ro(
          "images_share",
          [](const Progress& progress) -> std::optional<double> {
            std::uint64_t written = 0;
            std::uint64_t all = 0;
            for (const ImageProgress& image : progress.images) {
              written += image.tiles;
              all += image.tiles_total;
            }
            if (all == 0) return std::nullopt;
            return static_cast<double>(written) / static_cast<double>(all);
          },
          "Tiles that are written of the images under way, 0 to 1; None where there is none.")
      .def_ro("seconds", &Progress::seconds, "Since the start.")
      .def_ro("busiest_stage", &Progress::busiest_stage);
}

void bind_slide_result(nb::module_& module) {
  const auto field = [](auto member) { return [member](const SlideOfRun& slide) { return slide.result().*member; }; };
  nb::class_<SlideOfRun>(module, "SlideResult", "What a run found of a slide.")
      .def_prop_ro("path", [](const SlideOfRun& slide) { return name_of(slide.result().path); })
      .def_prop_ro("done", field(&SlideResult::done), "False: it failed, and `error` says why.")
      .def_prop_ro("error", [](const SlideOfRun& slide) { return text_of(slide.result().error); })
      .def_prop_ro("width", field(&SlideResult::width), "Pixels of `level`.")
      .def_prop_ro("height", field(&SlideResult::height), "Pixels of `level`.")
      .def_prop_ro("level", field(&SlideResult::level))
      .def_prop_ro("mpp", field(&SlideResult::mpp), "Micrometres a pixel at `level`, where known.")
      .def_prop_ro("codec", field(&SlideResult::codec))
      .def_prop_ro("colour", field(&SlideResult::colour))
      .def_prop_ro("missing_tiles", field(&SlideResult::missing_tiles))
      .def_prop_ro("bad_tiles", field(&SlideResult::bad_tiles), "That were taken as white.")
      .def_prop_ro("backend", field(&SlideResult::backend), "\"cpu\" or \"cuda\".")
      .def_prop_ro("seconds", field(&SlideResult::seconds), "From the first read to the result.")
      .def_prop_ro("windows", [](const SlideOfRun& slide) { return slide.result().sums.windows; })
      .def_prop_ro(
          "clipped", [](const SlideOfRun& slide) { return slide.result().sums.clipped; },
          "The spectrum's values outside analysis.range, which end bins count.")
      .def_prop_ro(
          "mean", [](const SlideOfRun& slide) { return mean_of(slide.result().sums); },
          "Of the spectrum's values, in the unit of analysis.value; NaN where there are none.")
      .def_prop_ro(
          "std", [](const SlideOfRun& slide) { return deviation_of(slide.result().sums); }, "Likewise.")
      .def(
          "percentile",
          [](const SlideOfRun& slide, double p) {
            return percentile_of(slide.result().sums, slide.outcome->config, p);
          },
          nb::arg("p"), "Of the spectrum's values; p is 0 to 100. NaN in an end bin that can count clipped values.")
      .def(
          "quantile",
          [](const SlideOfRun& slide, double q) { return quantile_of(slide.result().sums, slide.outcome->config, q); },
          nb::arg("q"), "Of the spectrum's values; q is 0 to 1. NaN in an end bin that can count clipped values.")
      .def_prop_ro(
          "histogram", [](const SlideOfRun& slide) { return histogram_of(slide.result().sums, slide.outcome); },
          nb::rv_policy::reference, "int64: a count per bin; empty without the spectrum.")
      .def_prop_ro(
          "map",
          [](const SlideOfRun& slide) -> std::optional<Array<float>> {
            WindowMap& map = slide.result().map;
            if (map.values.empty()) return std::nullopt;
            return array_of(map.values.data(),
                            {static_cast<std::size_t>(map.rows), static_cast<std::size_t>(map.columns), 2},
                            slide.outcome);
          },
          nb::rv_policy::reference,
          "float32: rows x columns of windows x (mean, standard deviation), with output.maps; else None.")
      .def_prop_ro(
          "values", [](const SlideOfRun& slide) { return values_of(*slide.outcome, slide.result()); },
          "Figures that operators and statistics found, by name, such as \"tissue.share\".")
      .def_prop_ro(
          "series", [](const SlideOfRun& slide) { return series_of(*slide.outcome, slide.result().sums); },
          "Arrays that statistics found, by name, such as \"radial\".")
      .def_prop_ro(
          "files",
          [](const SlideOfRun& slide) {
            std::vector<std::filesystem::path> files;
            for (const Artifact& artifact : slide.result().artifacts) {
              files.push_back(std::filesystem::path(slide.outcome->config.output.dir) / artifact.file);
            }
            return files;
          },
          "Images and other files that were made of the slide.")
      .def("__repr__", [](const SlideOfRun& slide) {
        const SlideResult& result = slide.result();
        return text_of(printable("SlideResult('" + result.path + "': " +
                                 (!result.done        ? "failed: " + result.error
                                  : result.complete() ? "done"
                                                      : "done but for " + result.error) +
                                 ")"));
      });
}

void bind_outcome(nb::module_& module) {
  nb::class_<Outcome>(module, "Outcome")
      .def_prop_ro("slides",
                   [](const std::shared_ptr<Outcome>& outcome) {
                     std::vector<SlideOfRun> slides;
                     for (std::size_t i = 0; i < outcome->run.slides.size(); ++i) slides.push_back({outcome, i});
                     return slides;
                   })
      .def_prop_ro("interrupted", [](const Outcome& outcome) { return outcome.run.interrupted; })
      .def_prop_ro("seconds", [](const Outcome& outcome) { return outcome.run.seconds; })
      .def_prop_ro("backend", [](const Outcome& outcome) { return outcome.run.backend; })
      .def_prop_ro("threads", [](const Outcome& outcome) { return outcome.run.threads; })
      .def_prop_ro("stages",
                   [](const Outcome& outcome) {
                     nb::typed<nb::dict, nb::str, double> stages;
                     for (const StageReport& stage : outcome.run.stages)
                       stages[stage.name.c_str()] = stage.busy_seconds;
                     return stages;
                   })
      .def_prop_ro("settings", [](const Outcome& outcome) { return text_of(to_toml(outcome.config)); })
      .def_prop_ro("bins", [](const Outcome& outcome) { return outcome.config.analysis.bins; })
      .def_prop_ro("range",
                   [](const Outcome& outcome) {
                     const auto& [low, high] = outcome.config.analysis.range;
                     return std::pair(low, high);
                   })
      .def_prop_ro("windows", [](const Outcome& outcome) { return outcome.run.corpus.windows; })
      .def_prop_ro("clipped", [](const Outcome& outcome) { return outcome.run.corpus.clipped; })
      .def_prop_ro("mean", [](const Outcome& outcome) { return mean_of(outcome.run.corpus); })
      .def_prop_ro("std", [](const Outcome& outcome) { return deviation_of(outcome.run.corpus); })
      .def("percentile",
           [](const Outcome& outcome, double p) { return percentile_of(outcome.run.corpus, outcome.config, p); })
      .def("quantile",
           [](const Outcome& outcome, double q) { return quantile_of(outcome.run.corpus, outcome.config, q); })
      .def_prop_ro(
          "histogram",
          [](const std::shared_ptr<Outcome>& outcome) { return histogram_of(outcome->run.corpus, outcome); },
          nb::rv_policy::reference)
      .def_prop_ro("series", [](const Outcome& outcome) { return series_of(outcome, outcome.run.corpus); })
      .def("slides_csv", [](const Outcome& outcome) { return text_of(slides_csv(outcome)); });
}

}  // namespace

void bind_run(nb::module_& module) {
  bind_progress(module);
  bind_slide_result(module);
  bind_outcome(module);
  const auto sink = std::make_shared<MessageSink>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("slidestream", sink));
  module.def("take_messages", [sink] {
    std::vector<std::pair<int, nb::str>> messages;
    for (const auto& [level, text] : sink->take()) messages.emplace_back(level, text_of(printable(text)));
    return messages;
  });
  module.def(
      "set_log_level",
      [](int level) {
        spdlog::set_level(level >= 40   ? spdlog::level::err
                          : level >= 30 ? spdlog::level::warn
                          : level >= 20 ? spdlog::level::info
                                        : spdlog::level::debug);
      },
      nb::arg("level"), "The least level of messages that are kept, as `logging` counts.");
  nb::class_<Run>(module, "Run")
      .def(nb::new_([](const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& config_file,
                       const std::vector<std::string>& settings, const std::filesystem::path& out,
                       const std::filesystem::path& file, bool fresh, bool retry_failed, bool overwrite,
                       const std::string& max_failures, const std::string& shard, const std::string& shard_by,
                       const std::filesystem::path& metrics, const std::filesystem::path& trace,
                       const std::shared_ptr<Calls>& calls, bool volumes) {
             cli::RunOptions options;
             if (volumes) options.work = cli::work_of_volumes();
             for (const std::filesystem::path& input : inputs) options.inputs.push_back(input.string());
             options.config_file = config_file.string();
             options.settings = settings;
             options.out = out.string();
             options.file = file.string();
             options.fresh = fresh;
             options.retry_failed = retry_failed;
             options.overwrite = overwrite;
             options.max_failures = max_failures;
             options.shard = shard;
             options.shard_by = shard_by;
             options.metrics = metrics.string();
             options.trace = trace.string();
             return of_this_process<Run>(std::move(options), calls);
           }),
           nb::kw_only(), nb::arg("inputs"), nb::arg("config_file"), nb::arg("settings"), nb::arg("out"),
           nb::arg("file"), nb::arg("fresh"), nb::arg("retry_failed"), nb::arg("overwrite"), nb::arg("max_failures"),
           nb::arg("shard"), nb::arg("shard_by"), nb::arg("metrics"), nb::arg("trace"), nb::arg("calls").none(),
           nb::arg("volumes"))
      .def("stop", &Run::stop)
      .def("abort", &Run::abort)
      .def("wait", &Run::wait, nb::arg("milliseconds"))
      .def("progress", &Run::progress)
      .def("outcome", &Run::outcome);
}

}  // namespace slidestream::python
