#include "cli/run_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/trace.hpp>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "cli/command.hpp"
#include "cli/logging.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/signals.hpp"
#include "config/keys.hpp"

namespace slidestream::cli {

namespace {

/// The names that a key takes, as options show them: "none|npy|tiff".
std::string choices_of(std::string_view section, std::string_view name) {
  std::string text;
  for (const std::string& choice : find_key(section, name)->choices) text += (text.empty() ? "" : "|") + choice;
  return text;
}

/// `--trace a.svs b.svs` mustn't write over a slide.
std::string json_file(const std::string& file) { return file.ends_with(".json") ? "" : "must end in .json"; }

/// Writes maps as slides finish; the first that can't be written stops the run.
class MapWriter {
 public:
  MapWriter(const Config& config, const std::vector<std::string>& slides, RunControl& control)
      : config_(config), control_(control) {
    if (config.output.maps == MapFormat::none) return;
    std::vector<std::string> names = map_names(slides);
    for (std::size_t i = 0; i < slides.size(); ++i) names_.emplace(slides[i], std::move(names[i]));
  }

  void write(SlideResult& slide) {
    if (names_.empty() || !slide.done || !error_.empty()) return;
    try {
      slide.map_file = std::filesystem::path(write_map(config_, slide, names_.at(slide.path))).filename().string();
      ++written_;
    } catch (const std::exception& error) {
      error_ = error.what();
      control_.request_stop();
    }
    slide.map = {};
  }

  std::size_t written() const { return written_; }
  const std::string& error() const { return error_; }

 private:
  const Config& config_;
  RunControl& control_;
  std::unordered_map<std::string, std::string> names_;  ///< by path
  std::size_t written_ = 0;
  std::string error_;
};

void report_slide(const SlideResult& slide) {
  if (!slide.done) {
    spdlog::error("{}: {}", slide.path, slide.error);
  } else if (slide.missing_tiles + slide.bad_tiles > 0) {
    spdlog::warn("{}: {} missing and {} bad tiles, taken as white", slide.path, slide.missing_tiles, slide.bad_tiles);
  }
}

void print_report(const std::string& text) {
  errno = 0;
  std::cout << text << std::flush;
  // A reader that went away doesn't want it: the results are written.
  if (!std::cout && errno == EPIPE) std::cout.clear();
}

/// A results folder among the inputs holds maps of an earlier run, which look like slides.
void leave_out_maps(const Config& config, ExpandedInputs& inputs) {
  std::error_code code;
  const std::filesystem::path maps = std::filesystem::weakly_canonical(config.output.dir, code) / "maps";
  const std::size_t left_out = std::erase_if(inputs.slides, [&](const std::string& slide) {
    return std::filesystem::weakly_canonical(slide, code).parent_path() == maps;
  });
  if (left_out > 0) {
    inputs.warnings.push_back(maps.string() + ": " + std::to_string(left_out) +
                              " maps of an earlier run lie among the inputs and are left out");
  }
}

/// Records the run when that is asked for.
class Tracing {
 public:
  Tracing(const Config& config, std::string file) : file_(std::move(file)) {
    if (file_.empty()) return;
    TraceRecording::Options options;
    options.devices = config.pipeline.backend != Backend::cpu;
    recording_.emplace(options);
  }

  /// Ends the recording; what it says of GPUs goes into the result.
  void finish(RunResult& result) {
    if (!recording_) return;
    trace_ = recording_->finish();
    recording_.reset();
    result.overlap = find_overlap(trace_);
    // Where no GPU was used nobody misses its records.
    if (result.backend == "cuda" && !trace_.device_warning.empty()) spdlog::warn("{}", trace_.device_warning);
    if (const std::uint64_t dropped = trace_.dropped_ranges + trace_.dropped_device_records; dropped > 0) {
      spdlog::warn("the trace is incomplete: {} ranges and {} GPU records found no room in it", trace_.dropped_ranges,
                   trace_.dropped_device_records);
    }
  }

  /// \throws OutputError.
  void write(const std::vector<std::string>& slides) const {
    if (file_.empty()) return;
    write_trace(file_, trace_, slides);
    spdlog::info("{}: {} ranges and {} GPU records; ui.perfetto.dev shows them", file_, trace_.ranges.size(),
                 trace_.device_records.size());
  }

 private:
  std::string file_;
  std::optional<TraceRecording> recording_;
  Trace trace_;
};

/// Whether the file is to be in that folder, which may not be there yet.
bool lies_in(const std::string& file, const std::string& folder) {
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::weakly_canonical(file, code).parent_path();
  return !file.empty() && parent == std::filesystem::weakly_canonical(folder, code);
}

/// Where the run ended: written results, and the status that says how.
int conclude(const Config& config, const RunResult& result, const std::vector<std::string>& slides,
             const MapWriter& maps, const Tracing& tracing, bool quiet) {
  bool complete = maps.error().empty();
  if (!complete) spdlog::error("{}", maps.error());
  if (!result.failure.empty()) {
    spdlog::error("the run ended early: {}", result.failure);
    complete = false;
  }
  const auto attempt = [&complete](const auto& write) {
    try {
      write();
    } catch (const OutputError& error) {
      spdlog::error("{}", error.what());
      complete = false;
    }
  };
  attempt([&] { write_results(config, result); });
  attempt([&] { tracing.write(slides); });
  if (!quiet) {
    const Style style = Style::of(1);
    const int width = style.terminal ? terminal_width(1) : 120;
    print_report((complete ? summary_text(config, result, maps.written(), width, style) + "\n" : "") +
                 stages_text(result, style) + overlap_text(result));
  }
  if (const std::uint64_t clipped = result.corpus.clipped; clipped > 0) {
    spdlog::warn("{} of {} values lie outside analysis.range and were counted in the end bins", clipped,
                 result.corpus.values);
  }
  if (const int signal = SignalScope::received(); signal != 0) {
    const auto done = std::ranges::count(result.slides, true, &SlideResult::done);
    spdlog::warn("interrupted: of {} slides {} were done and {} failed; the others have no row in slides.csv",
                 slides.size(), done, static_cast<std::ptrdiff_t>(result.slides.size()) - done);
    return 128 + signal;
  }
  const bool all_done = std::ranges::all_of(result.slides, &SlideResult::done);
  return complete && all_done ? exit_done : exit_some_failed;
}

int run_slides(const Config& config, const std::vector<std::string>& slides, const RunOptions& options) {
  log_with_time();
  RunControl control;
  const SignalScope signals(control);
  MapWriter maps(config, slides, control);
  ProgressDisplay display(options.quiet, options.log_json);
  control.on_slide = [&](SlideResult& slide) {
    maps.write(slide);
    report_slide(slide);
    display.slide_ended(slide);
  };
  control.on_progress = [&](const Progress& progress) { display.update(progress); };
  control.on_message = [](const std::string& message) { spdlog::info("{}", message); };
  Tracing tracing(config, options.trace);
  RunResult result = run_pipeline(config, slides, control);
  display.end();
  tracing.finish(result);
  return conclude(config, result, slides, maps, tracing, options.quiet);
}

}  // namespace

std::shared_ptr<RunOptions> add_run_options(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  app.add_option("slides", options->inputs,
                 "Slides, folders (searched for .svs, .tif, .tiff, .btf), .list or .csv files that name "
                 "slides, or - for a list on standard input")
      ->type_name("SLIDE|DIR|LIST|-");
  const std::string group = "Run";
  app.add_option("-c,--config", options->config_file, "Configuration file (TOML)")->type_name("FILE")->group(group);
  app.add_option("-s,--set", options->settings, "One setting, over the file's; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("-o,--out", options->out, "Folder for results (output.dir)")->type_name("DIR")->group(group);
  app.add_option("--maps", options->maps, "Statistics of every window as an image for each slide (output.maps)")
      ->type_name(choices_of("output", "maps"))
      ->group(group);
  app.add_option("--backend", options->backend, "Where windows are transformed (pipeline.backend)")
      ->type_name(choices_of("pipeline", "backend"))
      ->group(group);
  app.add_option("-t,--threads", options->threads, "Threads of the run, 0 for all (pipeline.threads)")
      ->type_name("N")
      ->group(group);
  app.add_option("--trace", options->trace,
                 "Record when every stage worked and what every GPU did, for ui.perfetto.dev")
      ->type_name("FILE.json")
      ->check(json_file)
      ->group(group);
  app.add_flag("--print-config", options->print_config, "Write the effective configuration, every key explained")
      ->group(group);
  app.add_flag("-q,--quiet", options->quiet, "Nothing but warnings and errors")->group("Messages");
  return options;
}

Config effective_config(const RunOptions& options) {
  Config config = options.config_file.empty() ? Config{} : load_config(options.config_file);
  for (const std::string& setting : options.settings) apply_setting(config, setting);
  if (!options.maps.empty()) apply_setting(config, "output.maps=" + options.maps);
  if (!options.backend.empty()) apply_setting(config, "pipeline.backend=" + options.backend);
  if (!options.threads.empty()) apply_setting(config, "pipeline.threads=" + options.threads);
  // Paths are taken as they are, whatever TOML would make of them.
  if (!options.out.empty()) config.output.dir = options.out;
  if (!options.inputs.empty()) config.input.slides = options.inputs;
  validate(config);
  return config;
}

int run(const RunOptions& options) {
  const Config config = effective_config(options);
  if (options.print_config) {
    std::cout << to_toml(config);
    return exit_done;
  }
  if (config.input.slides.empty()) {
    throw ConfigError("no slide: name slides, folders or lists, or set input.slides (see pipeline --help)");
  }
  ExpandedInputs inputs = expand_inputs(config.input.slides);
  leave_out_maps(config, inputs);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty())
    throw ConfigError("no slide in " + config.input.slides.front() +
                      (config.input.slides.size() > 1 ? " and the other inputs" : ""));
  check_runnable(config);
  const bool trace_among_results = lies_in(options.trace, config.output.dir);
  if (!options.trace.empty() && !trace_among_results) check_trace_file(options.trace);
  prepare_output(config);
  if (trace_among_results) check_trace_file(options.trace);
  return run_slides(config, inputs.slides, options);
}

}  // namespace slidestream::cli
