#include "cli/run_command.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <future>
#include <iostream>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/network.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/trace.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.hpp"
#include "cli/dry_run.hpp"
#include "cli/failure_limit.hpp"
#include "cli/folder_guard.hpp"
#include "cli/image_file.hpp"
#include "cli/left_images.hpp"
#include "cli/listed_files.hpp"
#include "cli/logging.hpp"
#include "cli/own_files.hpp"
#include "cli/progress.hpp"
#include "cli/progress_file.hpp"
#include "cli/report.hpp"
#include "cli/run_end.hpp"
#include "cli/run_inputs.hpp"
#include "cli/run_record.hpp"
#include "cli/run_record_start.hpp"
#include "cli/run_targets.hpp"
#include "cli/run_warnings.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/tracing.hpp"
#include "cli/under_way.hpp"
#include "config/toml_text.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/map_files.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/shard.hpp"
#include "output/atomic_file.hpp"
#include "output/folders.hpp"
#include "sink/partial_file.hpp"

namespace slidestream::cli {

namespace {

/// What slides that are given a pixel size say of their magnification no longer counts.
void tell_of_pixel_size(const InputConfig& input) {
  constexpr double micrometres_at_magnification_1 = 10.0;
  if (input.mpp > 0.0) {
    spdlog::info("input.mpp is {}: slides have a magnification of {:g} x, whatever they say", to_toml_number(input.mpp),
                 micrometres_at_magnification_1 / input.mpp);
  }
  if (!input.slide_mpp.empty()) {
    spdlog::info("the list gives {} {} a pixel size: the magnification is 10 / mpp", input.slide_mpp.size(),
                 input.slide_mpp.size() == 1 ? "slide" : "slides");
  }
}

void report_slide(const SlideResult& slide) {
  if (!slide.done) {
    spdlog::error("{}: {}", slide.path, slide.error);
  } else if (!slide.complete()) {
    spdlog::error("{}: {}; what the other operators made of it is kept", slide.path, slide.error);
  } else if (slide.missing_tiles + slide.bad_tiles > 0) {
    spdlog::warn("{}: {} missing and {} bad tiles, taken as white", slide.path, slide.missing_tiles, slide.bad_tiles);
  }
}

/// Whether the file is to be in that folder, which may not be there yet.
bool lies_in(const std::string& file, const std::string& folder) {
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::weakly_canonical(file, code).parent_path();
  return !file.empty() && parent == std::filesystem::weakly_canonical(folder, code);
}

/// Folders that can't be written are named before the first slide is begun. \throws OutputError
void check_folders(const Config& config) {
  if (const std::string fault = fault_of_folders(config); !fault.empty()) throw OutputError(fault);
}

/// Runs slides. Where images can't be written the run ends, and `failure` says why; what was finished before is kept.
RunResult run_to_end(const Config& config, const std::vector<std::string>& slides, RunControl& control,
                     std::string& failure, const OwnWork* work = nullptr) {
  try {
    return work != nullptr ? work->run(config, slides, control) : run_pipeline(config, slides, control);
  } catch (const OutputError& error) {
    failure = error.what();
    return {};
  }
}

/// Adds what a run over other slides took.
void add_run(RunResult& all, const RunResult& run) {
  if (all.backend.empty()) {
    all = run;
    return;
  }
  for (const StageReport& stage : run.stages) {
    const auto same = std::ranges::find(all.stages, stage.name, &StageReport::name);
    if (same == all.stages.end()) continue;  // a run of the same settings has the same
    same->busy_seconds += stage.busy_seconds;
    same->wait_seconds += stage.wait_seconds;
    same->items += stage.items;
    same->bytes += stage.bytes;
  }
  all.slides.insert(all.slides.end(), run.slides.begin(), run.slides.end());
  all.seconds += run.seconds;
  all.interrupted |= run.interrupted;
  if (all.failure.empty()) all.failure = run.failure;
  all.lacks_memory |= run.lacks_memory;
}

/// Adds what was done before a run's own progress begins.
void add_progress(Progress& to, const Progress& before) {
  to.slides_done += before.slides_done;
  to.slides_failed += before.slides_failed;
  to.pixels += before.pixels;
  to.pixels_started += before.pixels_started;
  to.bytes_read += before.bytes_read;
  to.tiles_written += before.tiles_written;
  to.bytes_written += before.bytes_written;
  to.seconds += before.seconds;
}

/// Passes on what a run says.
void hear(RunControl& control) {
  control.on_message = [](const std::string& message) { spdlog::info("{}", message); };
  control.on_warning = [](const std::string& message) { spdlog::warn("{}", message); };
}

/// What a run is stopped by: the program that it is a part of, or signals.
struct Controls {
  explicit Controls(EmbeddedRun* embedded)
      : control(embedded == nullptr ? own : embedded->control), by_signals(embedded == nullptr) {
    if (by_signals) log_with_time();
  }

  /// From here on a signal lets the slides end that are under way. Before, it ends the process.
  void begin() {
    if (by_signals) signals.emplace(control);
  }

  RunControl own;
  RunControl& control;
  bool by_signals;
  std::optional<SignalScope> signals;
};

int run_recorded(const Config& config, const RunOptions& options, const FolderGuard& guard, std::future<void>& waking,
                 Controls& controls, RunRecord& record) {
  EmbeddedRun* const embedded = options.embedded;
  RunControl& control = controls.control;
  check_descriptors(config, record.start().todo.size());
  const StopNoteScope stop_notes(record.stop_descriptor());
  controls.begin();
  tell_of_pixel_size(config.input);
  // One run over all slides but those that are to be alone, and a run for each of these.
  std::vector<std::vector<std::string>> runs = {record.todo()};
  std::vector<std::string> slides = runs.front();
  for (std::string& suspect : record.suspects()) {
    slides.push_back(suspect);
    runs.push_back({std::move(suspect)});
  }
  if (!slides.empty()) check_folders(config);
  const LedgerStart& start = record.start();
  ProgressDisplay display(options.quiet, options.log_json,
                          Estimate(start.bytes_left, slides.size(), start.bytes - start.bytes_left),
                          options.work != nullptr ? RunOver::volumes : RunOver::slides);
  ProgressFile progress_file(progress_file_of(config.output.dir), [&] { return record.owns_folder(); });
  control.on_start = [&](const std::string& path) { guard.check_map(record.slide_started(path)); };
  control.image_name = [&](const std::string& path) { return record.image_name(path); };
  control.check_file = [&](const std::filesystem::path& file) {
    record.check_place();
    guard.check_file(file);
  };
  control.check_partial = [&](const std::filesystem::path& file) { guard.check_partial(file); };
  control.on_files = [&](const std::string& path) { record.files_begun(path); };
  control.on_unwritten = [&](const std::string& path) { record.slide_unwritten(path); };
  std::atomic<std::uint64_t> files{0};
  control.on_slide = [&](SlideResult& slide) {
    if (embedded != nullptr && embedded->aborted && !slide.done) return;
    record.slide_ended(slide);
  };
  control.on_pause = [&] {
    for (const SlideResult& slide : record.keep_slides()) {
      files += slide.artifacts.size();
      report_slide(slide);
      display.slide_ended(slide, record.bytes_of(slide.path));
    }
  };
  Progress before, latest;
  control.on_progress = [&](Progress progress) {
    add_progress(progress, before);
    latest = progress;
    record.progressed(progress);
    progress.slides_total = start.mine;
    progress.slides_done += start.done;
    progress.slides_failed += start.failed;
    progress.slides_skipped = start.done;
    progress.files_made = files;
    progress_file.update(progress, display.update(progress));
    if (embedded != nullptr && embedded->on_progress) embedded->on_progress(progress);
  };
  hear(control);
  record.watch(control);
  RunResult result;
  if (!slides.empty()) {
    Tracing tracing(config, options.trace);
    if (waking.valid()) waking.get();
    std::string failure;
    for (const std::vector<std::string>& run : runs) {
      if (run.empty()) continue;
      if (control.stop_requested()) {
        result.interrupted = true;
        break;
      }
      add_run(result, run_to_end(config, run, control, failure, options.work.get()));
      if (result.lacks_memory) record.note_shortage();
      before = latest;
    }
    if (!failure.empty()) record.fail(failure);
    display.end();
    progress_file.end();
    record.end_watch();
    tracing.finish(result);
    return conclude(config, result, slides, record, tracing, options);
  }
  record.end_watch();
  if (!options.trace.empty()) spdlog::warn("{}: isn't written, for no slide is left to do", options.trace);
  return conclude(config, result, slides, record, Tracing(config, ""), options);
}

int run_slides(const Config& config, const ExpandedInputs& inputs, const RunOptions& options, const FolderGuard& guard,
               std::future<void>& waking) {
  Controls controls(options.embedded);
  RunRecord record(config, inputs, options);
  try {
    return run_recorded(config, options, guard, waking, controls, record);
  } catch (const std::exception& error) {
    if (is_shortage(error)) record.note_shortage();
    throw;
  }
}

/// Runs slides and writes nothing.
int run_in_memory(const Config& config, const std::vector<std::string>& slides, EmbeddedRun& embedded) {
  for (const std::string& name : config.operators.run) {
    if (name != "spectrum") throw ConfigError("the operator " + name + " makes files: name a folder for them with out");
  }
  embedded.control.on_progress = embedded.on_progress;
  embedded.control.on_slide = report_slide;
  hear(embedded.control);
  embedded.result = run_pipeline(config, slides, embedded.control);
  warn_of_clipped(embedded.result.corpus);
  return exit_done;
}

/// Runs one slide into one file, and writes nothing else. \throws ConfigError where another process writes the file
int run_to_file(const Config& config, const std::string& slide, const RunOptions& options, std::future<void>& waking) {
  EmbeddedRun* const embedded = options.embedded;
  check_descriptors(config, 1);
  Controls controls(embedded);
  controls.begin();
  RunControl& control = controls.control;
  std::error_code code;
  const std::uintmax_t bytes = std::filesystem::file_size(slide, code);
  tell_of_pixel_size(config.input);
  ProgressDisplay display(options.quiet, options.log_json, Estimate(code ? 0 : bytes, 1));
  ProgressFile progress_file(progress_file_beside(options.file));
  control.image_name = [&](const std::string&) { return output_name(options.file); };
  control.image_file = [&](const std::string&, const std::string& name) { return place_beside(options.file, name); };
  std::string failure;
  bool network_changed = false;
  NetworkGuard network_guard(config);
  const auto contents = network_contents(config);
  control.on_start = [](const std::string&) { slide_was_begun = true; };
  control.on_slide = [&](const SlideResult& ended) {
    network_changed = !network_guard.is_as_it_was(contents);
    if (network_changed) {
      failure = network_setting(config) + ": the network's files have changed while it computed: " + options.file +
                " isn't kept";
      std::error_code ignored;
      for (const Artifact& made : ended.artifacts) std::filesystem::remove_all(made.file, ignored);
    }
    if (embedded == nullptr || !embedded->aborted) report_slide(ended);
  };
  control.on_progress = [&](const Progress& progress) {
    progress_file.update(progress, display.update(progress));
    if (embedded != nullptr && embedded->on_progress) embedded->on_progress(progress);
  };
  hear(control);
  Tracing tracing(config, options.trace);
  waking.get();
  RunResult result;
  try {
    result = run_pipeline(config, {slide}, control);
  } catch (const InUseError& error) {
    slide_was_begun = false;  // a second try would replace what the other one makes
    throw ConfigError(error.what());
  } catch (const OutputError& error) {
    failure = error.what();
  }
  // Only now nobody writes it.
  if (network_changed) {
    remove_left_image(options.file, place_beside(options.file, output_name(options.file) + ".model.partial.csv"));
  }
  display.end();
  progress_file.end();
  tracing.finish(result);
  if (!failure.empty()) spdlog::error("{}", failure);
  if (!result.failure.empty()) spdlog::error("the run ended early: {}", result.failure);
  const double clamped = result.slides.empty() ? 0.0 : clamped_share(result.slides.front());
  warn_of_clamped(config, clamped > 0.0 ? 1 : 0, clamped);
  const double saturated = result.slides.empty() ? 0.0 : saturated_share(result.slides.front());
  warn_of_saturated(config, saturated > 0.0 ? 1 : 0, saturated);
  bool complete = failure.empty() && result.failure.empty();
  try {
    tracing.write({slide});
  } catch (const OutputError& error) {
    spdlog::error("{}", error.what());
    complete = false;
  }
  if (embedded != nullptr) {
    embedded->failure = failure;
    embedded->result = std::move(result);
    return exit_done;
  }
  const bool done = !result.slides.empty() && result.slides.front().done;
  // Of one that failed the line that says why is all there is to say.
  if (!options.quiet && done && failure.empty() && !result.stages.empty()) {
    const Style style = Style::of(1);
    const std::string stages = options.stats ? "\n" + stages_text(result, style) + overlap_text(result) : "";
    print_report(file_text(result.slides.front()) + stages);
  }
  if (const int signal = SignalScope::received(); signal != 0 && !done) {
    spdlog::warn("interrupted: {} isn't written", options.file);
    return 128 + signal;
  }
  if (!complete) return exit_ended_early;
  return done ? exit_done : exit_some_failed;
}

/// Wakes devices while inputs are looked at; where no thread can be had for that, when the run begins.
std::future<void> wake(const Config& config) {
  const auto work = [&config] { wake_up(config); };
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

}  // namespace

int run(const RunOptions& options) {
  Config config = effective_config(options);
  if (config.output.maps != MapFormat::none && !config.operators.runs("spectrum")) {
    throw ConfigError("output.maps is for what the spectrum finds of windows, and operators.run is without it");
  }
  if (options.print_config) {
    errno = 0;
    if (!(std::cout << to_toml(config))) {
      const std::string reason = std::strerror(errno);
      std::cout.clear();
      throw Error("standard output: " + reason);
    }
    return exit_done;
  }
  if (options.work != nullptr) config.operators.run = {options.work->name};
  if (!options.dry_run && !options.assume_gpu.empty()) throw ConfigError("--assume-gpu goes with --dry-run");
  const std::string thing = options.work != nullptr ? options.work->name : "slide";
  if (options.dry_run && !options.shard.empty()) {
    throw ConfigError("--dry-run plans all " + thing + "s: leave --shard out");
  }
  if (options.work != nullptr && options.dry_run && config.input.slides.empty()) {
    return options.work->dry_run(config, {}, options);
  }
  if (options.dry_run && config.input.slides.empty()) return dry_run(config, {}, options);
  if (config.input.slides.empty()) {
    const std::string command = options.work != nullptr ? "pipeline " + thing : "pipeline";
    throw ConfigError("no " + thing + ": " +
                      (options.embedded == nullptr
                           ? "name " + thing + "s, folders or lists, or set input.slides (see " + command + " --help)"
                           : "the argument " + thing + "s names none, and input.slides isn't set"));
  }
  FailureLimit::parse(options.max_failures);
  if (!options.shard.empty()) parse_shard(options.shard);
  const bool wakes = !options.dry_run && options.work == nullptr;
  std::future<void> waking = wakes ? wake(config) : std::future<void>();
  std::optional<SignalScope> signals;
  if (options.embedded == nullptr) signals.emplace();
  const ExpandedInputs inputs =
      options.work != nullptr ? options.work->inputs(config) : inputs_of_run(config, options.file.empty());
  config.input.slide_mpp = inputs.mpp;
  if (!options.file.empty()) check_output_file(options.file, config, inputs.slides, options.overwrite);
  if (options.dry_run && options.work != nullptr) return options.work->dry_run(config, inputs, options);
  if (options.dry_run) return dry_run(config, inputs, options);
  if (options.work != nullptr) {
    options.work->check(config);
  } else {
    check_runnable(config);
  }
  if (options.embedded != nullptr) {
    options.embedded->config = config;
    if (options.embedded->in_memory) return run_in_memory(config, inputs.slides, *options.embedded);
  }
  check_run_targets(config, inputs, options);
  const std::string warning = options.work ? "" : memory_warning(config, inputs.slides, group_limits());
  if (!warning.empty()) spdlog::warn("{}", warning);
  for (const std::string& named : {options.trace, options.metrics}) {
    if (named.empty()) continue;
    check_unlisted_above(named);
    check_target(named, options.overwrite);
  }
  // Whoever was asked to stop may still end slides, which is to be known of the files that are there.
  if (options.file.empty()) {
    check_outside_images(std::filesystem::path(config.output.dir) / "slides.csv");
    refuse_if_in_use(std::filesystem::path(config.output.dir) / ledger_name, false, owner_watch(options));
  }
  const FolderGuard guard(config, options.overwrite, options.fresh);
  if (options.file.empty()) guard.check_names(config, map_files(config, inputs));
  if (!options.file.empty()) {
    if (!options.trace.empty()) check_trace_file(options.trace);
    check_progress_target(progress_file_beside(options.file), options.overwrite);
    AtomicFile::check(options.file);
    return run_to_file(config, inputs.slides.front(), options, waking);
  }
  const bool trace_among_results = lies_in(options.trace, config.output.dir);
  if (!options.trace.empty() && !trace_among_results) check_trace_file(options.trace);
  // Of an earlier run nothing may be left to do, and --fresh moves folders aside.
  std::error_code code;
  const bool has_ledger = std::filesystem::exists(std::filesystem::path(config.output.dir) / ledger_name, code);
  if (!options.fresh && !has_ledger) check_folders(config);
  const bool metrics_among_results = lies_in(options.metrics, config.output.dir);
  if (!options.metrics.empty() && !metrics_among_results) AtomicFile::check(options.metrics);
  // The folder of maps is made once the ledger is known to be a run's.
  Config without_maps = config;
  without_maps.output.maps = MapFormat::none;
  prepare_output(without_maps);
  if (metrics_among_results) AtomicFile::check(options.metrics);
  if (trace_among_results) check_trace_file(options.trace);
  return run_slides(config, inputs, options, guard, waking);
}

}  // namespace slidestream::cli
