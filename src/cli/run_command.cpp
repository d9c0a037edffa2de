#include "cli/run_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <future>
#include <iostream>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/trace.hpp>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "cli/archive.hpp"
#include "cli/command.hpp"
#include "cli/dry_run.hpp"
#include "cli/logging.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/signals.hpp"
#include "config/keys.hpp"
#include "output/atomic_file.hpp"

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

/// A results folder among the inputs holds maps and images of earlier runs, which look like slides.
void leave_out_results(const Config& config, ExpandedInputs& inputs) {
  std::error_code code;
  const std::filesystem::path out = std::filesystem::weakly_canonical(config.output.dir, code);
  const auto is_result = [&out](const std::string& slide) {
    const std::filesystem::path folder = std::filesystem::path(slide).parent_path();
    if (folder.filename() != "maps" && folder.filename() != "images") return false;
    const std::filesystem::path above = folder.parent_path();
    return above == out || (above.parent_path() == out && above.filename().string().starts_with("earlier-"));
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < inputs.slides.size(); ++i) {
    if (is_result(inputs.canonical[i])) continue;
    if (i != kept) {
      inputs.slides[kept] = std::move(inputs.slides[i]);
      inputs.canonical[kept] = std::move(inputs.canonical[i]);
    }
    ++kept;
  }
  const std::size_t left_out = inputs.slides.size() - kept;
  inputs.slides.resize(kept);
  inputs.canonical.resize(kept);
  if (left_out > 0) {
    inputs.warnings.push_back(out.string() + ": " + std::to_string(left_out) +
                              " maps and images of an earlier run lie among the inputs and are left out");
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

void report_results(const Config& config, RunResult& result, const Archive& archive, bool complete) {
  const Style style = Style::of(1);
  const int width = style.terminal ? terminal_width(1) : 120;
  result.slides = archive.first_slides();
  std::string text = complete ? summary_text(config, result, archive.corpus(), archive.start().done, width, style) : "";
  if (!result.stages.empty()) text += (complete ? "\n" : "") + stages_text(result, style) + overlap_text(result);
  print_report(text);
}

/// Where the run ended: written results, and the status that says how.
int conclude(const Config& config, RunResult& result, const std::vector<std::string>& slides, Archive& archive,
             const Tracing& tracing, bool quiet) {
  bool complete = archive.failure().empty();
  if (!complete) spdlog::error("{}", archive.failure());
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
  attempt([&] {
    try {
      archive.write_files(result);
    } catch (const OutputError& error) {
      // What ended the run is most often what fails again here, and was told.
      if (archive.failure().empty()) throw;
      spdlog::debug("{}", error.what());
    }
  });
  attempt([&] { tracing.write(slides); });
  if (!quiet) report_results(config, result, archive, complete);
  const Corpus& corpus = archive.corpus();
  if (const std::uint64_t clipped = corpus.sums.clipped; clipped > 0) {
    spdlog::warn("{} of {} values lie outside analysis.range and were counted in the end bins", clipped,
                 corpus.sums.values);
  }
  // A limit that is reached by the last slides has stopped nothing.
  const std::size_t left = archive.start().mine - std::min(archive.start().mine, corpus.done + corpus.failed);
  if (!archive.stopped().empty() && left > 0) {
    spdlog::error("{}: {} slides failed, {} are left", archive.stopped(), corpus.failed, left);
  }
  if (const int signal = SignalScope::received(); signal != 0) {
    spdlog::warn("interrupted: {} of {} slides are done and {} failed; the same command does the others", corpus.done,
                 archive.start().mine, corpus.failed);
    return 128 + signal;
  }
  return complete && corpus.failed == 0 && archive.stopped().empty() ? exit_done : exit_some_failed;
}

int run_slides(const Config& config, const ExpandedInputs& inputs, const RunOptions& options,
               std::future<std::shared_ptr<Woken>>& waking) {
  log_with_time();
  RunControl control;
  const SignalScope signals(control);
  Archive archive(config, inputs, options);
  const std::vector<std::string> slides = archive.todo();
  const LedgerStart& start = archive.start();
  ProgressDisplay display(options.quiet, options.log_json,
                          Estimate(start.bytes_left, slides.size(), start.bytes - start.bytes_left));
  control.on_start = [&](const std::string& path) { archive.slide_started(path); };
  control.image_name = [&](const std::string& path) { return archive.image_name(path); };
  control.on_slide = [&](SlideResult& slide) {
    if (!archive.slide_ended(slide)) return;
    report_slide(slide);
    display.slide_ended(slide, archive.bytes_of(slide.path));
  };
  control.on_progress = [&](Progress progress) {
    archive.progressed(progress);
    progress.slides_total = start.mine;
    progress.slides_done += start.done;
    progress.slides_failed += start.failed;
    progress.slides_skipped = start.done;
    display.update(progress);
  };
  control.on_message = [](const std::string& message) { spdlog::info("{}", message); };
  archive.watch(control);
  RunResult result;
  if (!slides.empty()) {
    Tracing tracing(config, options.trace);
    control.woken = waking.get();
    result = run_pipeline(config, slides, control);
    display.end();
    archive.end_watch();
    tracing.finish(result);
    return conclude(config, result, slides, archive, tracing, options.quiet);
  }
  archive.end_watch();
  if (!options.trace.empty()) spdlog::warn("{}: isn't written, for no slide is left to do", options.trace);
  return conclude(config, result, slides, archive, Tracing(config, ""), options.quiet);
}

void add_archive_options(CLI::App& app, RunOptions& options) {
  const std::string group = "Long runs";
  app.add_flag("--retry-failed", options.retry_failed,
               "Try slides again that failed in an earlier run of the same command")
      ->group(group);
  app.add_flag("--fresh", options.fresh,
               "Move an earlier run in the folder for results aside, to its earlier-N, and start anew")
      ->group(group);
  app.add_option("--max-failures", options.max_failures,
                 "Stop, with status 1, when so many slides have failed since the start, or such a share of all")
      ->type_name("N|P%")
      ->check(not_empty)
      ->group(group);
  app.add_option(
         "--metrics", options.metrics,
         "Write how far the run is every few seconds, for Prometheus: a file in node_exporter's textfile folder")
      ->type_name("FILE.prom")
      ->check([](const std::string& file) { return file.ends_with(".prom") ? "" : "must end in .prom"; })
      ->group(group);
  app.add_option("--shard", options.shard,
                 "Do one of N parts of the slides: I from 1 to N; `pipeline merge` joins them")
      ->type_name("I/N")
      ->check(not_empty)
      ->group(group);
  app.add_option("--shard-by", options.shard_by,
                 "What parts are made by: the path, or the size for parts of equal bytes")
      ->type_name("path|size")
      ->check(CLI::IsMember({"path", "size"}))
      ->group(group);
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
  add_archive_options(app, *options);
  app.add_flag("--print-config", options->print_config, "Write the effective configuration, every key explained")
      ->group(group);
  app.add_flag("--dry-run", options->dry_run, "Say what would be done and the memory it takes; start nothing")
      ->group(group);
  app.add_option("--assume-gpu", options->assume_gpu, "With --dry-run: as if the GPUs were these, here or not")
      ->type_name("a40|a100|h100|h200")
      ->check(not_empty)
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
    errno = 0;
    if (!(std::cout << to_toml(config))) {
      const std::string reason = std::strerror(errno);
      std::cout.clear();
      throw Error("standard output: " + reason);
    }
    return exit_done;
  }
  if (!options.dry_run && !options.assume_gpu.empty()) throw ConfigError("--assume-gpu goes with --dry-run");
  if (options.dry_run && !options.shard.empty()) throw ConfigError("--dry-run plans all slides: leave --shard out");
  if (options.dry_run && config.input.slides.empty()) return dry_run(config, {}, options.assume_gpu, options.fresh);
  if (config.input.slides.empty()) {
    throw ConfigError("no slide: name slides, folders or lists, or set input.slides (see pipeline --help)");
  }
  std::future<std::shared_ptr<Woken>> waking;
  if (!options.dry_run) waking = std::async(std::launch::async, [&config] { return wake_up(config); });
  ExpandedInputs inputs = expand_inputs(config.input.slides);
  leave_out_results(config, inputs);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty())
    throw ConfigError("no slide in " + config.input.slides.front() +
                      (config.input.slides.size() > 1 ? " and the other inputs" : ""));
  if (options.dry_run) return dry_run(config, inputs, options.assume_gpu, options.fresh);
  check_runnable(config);
  const bool trace_among_results = lies_in(options.trace, config.output.dir);
  if (!options.trace.empty() && !trace_among_results) check_trace_file(options.trace);
  prepare_output(config);
  if (!options.metrics.empty()) AtomicFile::check(options.metrics);
  if (trace_among_results) check_trace_file(options.trace);
  return run_slides(config, inputs, options, waking);
}

}  // namespace slidestream::cli
