#include "stages/slide_opener.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "codec/tile_rule.hpp"
#include "operators/common/tile_grid.hpp"
#include "operators/tissue/preparation.hpp"
#include "planning/network_plan.hpp"
#include "planning/operator_needs.hpp"
#include "planning/tile_ranges.hpp"
#include "slide/file.hpp"
#include "slide/open_options.hpp"
#include "stages/emit.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/run/small_levels.hpp"
#include "stages/source.hpp"

namespace slidestream {
namespace {

/// Besides those of a failing storage: pauses of 30 s at most, some four minutes.
constexpr int retries_of_shortage = 8;
/// Of these, before a line says what is waited for: pauses of 0.7 s together.
constexpr int silent_retries = 3;
/// Where memory lacks: pauses of 3 s together.
constexpr int retries_of_memory = 5;

}  // namespace

SlideOpener::SlideOpener(RunContext& context, const std::vector<std::string>& slides, const RunControl& control)
    : context_(context), slides_(slides), control_(control) {}

std::shared_ptr<SlideRun> SlideOpener::open(SlideAttempt& attempt) {
  auto run = std::make_shared<SlideRun>();
  run->index = attempt.index;
  run->path = slides_[attempt.index];
  run->start = runtime::Clock::now();
  run->result.path = run->path;
  run->result.level = context_.config.input.level;
  if (!try_to_open(*run, attempt)) {
    attempt.due = runtime::Clock::now() + pause_before_retry(attempt.number++);
    return nullptr;
  }
  run->is_opening.store(false);
  if (context_.emit != nullptr && run->images == nullptr) context_.emit->nothing_of(*run);
  if (run->chains.empty()) {
    run->chains = std::vector<Chain>(1);
    return run;
  }
  run->chains_to_send.store(run->chains.size());
  for (std::size_t i = 0; i < run->chains.size(); ++i) {
    run->chains[i].index = i;
    run->chains[i].plan = run->plan.chains[i];
  }
  return run;
}

/// Marks the slide where it fails or is abandoned. False: another attempt may succeed.
bool SlideOpener::try_to_open(SlideRun& run, SlideAttempt& attempt) {
  try {
    begin(run, attempt);
  } catch (const StoppedError&) {
    if (control_.stop_requested()) {
      run.abandoned.store(true);
    } else {
      run.fail("source", context_.text_of_limit(), {});
    }
  } catch (const StorageError& error) {
    return !may_retry_storage(run, attempt, dynamic_cast<const DescriptorError*>(&error) != nullptr);
  } catch (const std::bad_alloc&) {
    // Others that end may give back what it needs.
    if (!control_.stop_requested() && attempt.number < retries_of_memory && !is_late(attempt.begin)) return false;
    run.fail("source", current_cause(run.path), {});
  } catch (...) {
    run.fail("source", current_cause(run.path), {});
  }
  return true;
}

/// Called while the storage's failure is handled. False: the slide is marked with it.
bool SlideOpener::may_retry_storage(SlideRun& run, const SlideAttempt& attempt, bool no_descriptor) {
  const int retries = context_.config.input.retries;
  if (control_.stop_requested()) {
    run.abandoned.store(true);
  } else if (is_late(attempt.begin)) {
    run.fail("source", context_.text_of_limit(), {});
  } else if (attempt.number < retries + (no_descriptor && retries > 0 ? retries_of_shortage : 0)) {
    if (no_descriptor && attempt.number >= silent_retries) tell_of_shortage(run);
    return true;
  } else if (no_descriptor) {
    // All slides that are left would fail: the next run does them.
    run.abandoned.store(true);
    context_.on_fatal(std::current_exception());
  } else {
    run.fail("source", current_cause(run.path), {});
  }
  return false;
}

/// Called while its failure is handled. Once: others that wait wait for the same.
void SlideOpener::tell_of_shortage(const SlideRun& run) {
  std::call_once(shortage_said_, [&] {
    if (!context_.on_warning) return;
    context_.on_warning(run.path + ": " + current_cause(run.path) + ": it is tried again for some minutes");
  });
}

void SlideOpener::begin(SlideRun& run, SlideAttempt& attempt) {
  if (attempt.number == 0) {
    attempt.begin = run.start;
    if (control_.on_start) control_.on_start(run.path);
  }
  const runtime::StageMeter::Busy busy(context_.source, {static_cast<std::int64_t>(run.index)});
  context_.check_fault("source", run, 0);
  // The slide doesn't outlive its run.
  const auto give_up = [this, &run, begin = attempt.begin] {
    return control_.stop_requested() || context_.is_late(*run.work) ||
           (run.is_opening.load() && is_late(begin + std::chrono::nanoseconds(run.waited)));
  };
  OpenOptions options = open_options(context_.config, run.path);
  options.retry_opening = false;
  options.give_up = give_up;
  options.decode_memory = context_.decode_memory;
  run.slide = Slide::open(run.path, options);
  tell_of_opening(run);
  describe(run);
  run.decode_on_device = context_.gpus != nullptr && context_.gpus->decodes(*run.slide, run.level);
  if (!run.decode_on_device && !context_.operators.empty()) {
    check_decode_memory(context_.config, *run.slide, run.level, [&] { plan_of(run); });
  }
  // Small levels may take minutes to decode: whether the slide fits is known before.
  std::optional<LevelPlan> planned = plan_of(run);
  prepare_operators(run, give_up);
  // Levels are made elsewhere then.
  if (run.lacks_any()) planned = plan_of(run);
  keep_plan(run, std::move(planned));
  begin_result(run);
  begin_files(run);
}

/// Takes the strips and chains that the slide is cut into, where an operator reads its pixels.
void SlideOpener::keep_plan(SlideRun& run, std::optional<LevelPlan> planned) const {
  if (planned) {
    run.plan = std::move(*planned);
    const Level& level = run.slide->info().levels[run.level];
    context_.pixels_started += static_cast<std::uint64_t>(level.width * level.height);
  }
  run.chains = std::vector<Chain>(run.plan.chains.size());
}

/// Whether an operator has a window on the level.
bool SlideOpener::reads_pixels(const SlideRun& run) const {
  const Level& level = run.slide->info().levels[run.level];
  return std::ranges::any_of(context_.needs,
                             [&level](const OperatorNeeds& needs) { return has_window(level, needs.footprint); });
}

/// Nothing where no operator has a window: others have found what they want in the small level.
std::optional<LevelPlan> SlideOpener::plan_of(SlideRun& run) const {
  const TileRanges ranges{*run.slide, run.level};
  const Level& level = run.slide->info().levels[run.level];
  if (!reads_pixels(run)) return std::nullopt;
  // A device makes the levels of all images or of none.
  run.levels_on_device = !run.lacks_any() && levels_on_device(level, context_.needs, context_.limits);
  const std::int64_t fragments =
      fragments_of_slide(context_.config.gpu.split_slides, slides_.size() - run.index, context_.lanes);
  return plan_level(
      level, fitting_needs(level, context_.needs), context_.config.pipeline, context_.limits,
      &TileRanges::compressed_bytes, &ranges,
      {fragments, run.decode_on_device,
       batch_pixels_of(run.index, slides_.size(), context_.lanes, run.levels_on_device), run.levels_on_device});
}

/// Makes room for the slide's sums and its map.
void SlideOpener::begin_result(SlideRun& run) const {
  SlideResult& result = run.result;
  result.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
  if (!context_.spectrum || context_.config.output.maps == MapFormat::none ||
      run.lacks(context_.ranks[*context_.spectrum])) {
    return;
  }
  const Size& windows = run.plan.outputs[*context_.spectrum];
  result.map.columns = windows.width;
  result.map.rows = windows.height;
  result.map.values.assign(static_cast<std::size_t>(windows.width * windows.height) * 2, 0.0F);
}

bool SlideOpener::is_late(runtime::Clock::time_point begin) const {
  const int limit = context_.config.input.max_seconds;
  return limit > 0 && runtime::Clock::now() - begin > std::chrono::seconds(limit);
}

/// What operators want to know before the slide's pixels pass by. One that fails makes nothing of the slide; the
/// slide fails only if all do.
void SlideOpener::prepare_operators(SlideRun& run, const std::function<bool()>& given_up) const {
  const SlideContext about = {*run.slide, run.level, run.path, run.slide->info().mean_mpp()};
  operators::Admission admission = admission_of(
      context_.small_levels, run.path, [this] { return control_.stop_requested(); }, run.waited);
  admission.given_up = given_up;
  admission.decode_memory = context_.decode_memory;
  admission.beside = stains_bytes(context_.config, run.slide->info());
  about.common =
      std::make_shared<operators::Preparation>(about, context_.config, std::move(admission), context_.tissue_network);
  std::exception_ptr first;
  for (std::size_t rank = 0; rank < context_.all_operators.size(); ++rank) {
    const auto& op = context_.all_operators[rank];
    std::shared_ptr<const SlideParameters> parameters;
    bool lacks = false;
    try {
      check_labels(*op, run.slide->info(), context_.config);
      const auto of_pixels = std::ranges::find(context_.ranks, rank);
      if (of_pixels != context_.ranks.end()) {
        const auto& needs = context_.needs[static_cast<std::size_t>(of_pixels - context_.ranks.begin())];
        require_window(run.slide->info().levels[run.level], needs.footprint);
      }
      parameters = op->prepare(about);
      if (op->network() != nullptr) prepare_network(run, *op, about);
    } catch (const StorageError&) {
      throw;
    } catch (const StoppedError&) {
      throw;
    } catch (const Error&) {
      lacks = true;
      run.result.lack({op->name(), {}, current_cause(run.path)});
      if (first == nullptr) first = std::current_exception();
    }
    run.lacking.push_back(lacks);
    if (parameters != nullptr && !lacks) {
      for (NamedValue& value : parameters->values()) run.result.values.push_back(std::move(value));
    }
    run.parameters.push_back(lacks ? nullptr : std::move(parameters));
  }
  if (first != nullptr && std::ranges::find(run.lacking, false) == run.lacking.end()) std::rethrow_exception(first);
  count_tiles_as_glass(run, *about.common);
  tell_of_tissue(run, about);
}

/// Tiles of the run's level count where its pixels are read.
void SlideOpener::count_tiles_as_glass(SlideRun& run, const operators::Preparation& common) const {
  for (const auto& [level, tiles] : common.tiles_as_glass()) {
    if (level == run.level && reads_pixels(run)) continue;
    run.result.missing_tiles += static_cast<std::uint64_t>(tiles.lost);
    run.result.bad_tiles += static_cast<std::uint64_t>(tiles.bad);
    const std::string doubt = operators::doubt_of_bad_tiles(level, tiles.bad);
    if (!doubt.empty() && context_.on_warning) context_.on_warning(run.path + ": " + doubt);
  }
}

/// Whether its tiles can be cut, and which of them are tissue.
void SlideOpener::prepare_network(SlideRun& run, const Operator& op, const SlideContext& about) const {
  const SlideInfo& info = run.slide->info();
  const NetworkPlan plan = network_plan_of(context_, run, op);
  if (plan.factor != stitch_whole) info.require_no_labels("pixels of another size are means of several");
  const NetworkTiles& tiles = op.network()->tiles();
  if (!tiles.tissue_only) return;
  if (run.tissue == nullptr) {
    const GridScale scale = {info.downsample_x(run.level), info.downsample_y(run.level)};
    run.tissue = std::make_shared<const TissueTiles>(
        TissueTiles{MaskTable(*operators::prepare_mask(about, context_.config)), scale});
  }
  about.common->doubt(operators::doubt_of_tiles({plan.factor, plan.stitch}, run.tissue->mask, run.tissue->level,
                                                tiles.tissue_share, op.network()->setting_name("tissue_share")));
}

void SlideOpener::tell_of_share(const SlideRun& run, const std::optional<double>& share) const {
  if (!share || !context_.on_warning) return;
  const bool by_colour = context_.config.tissue.source != TissueSource::geojson;
  const std::string keys = context_.tissue_network ? "tissue.probability or tissue.class"
                           : by_colour             ? "tissue.method or tissue.threshold"
                                                   : "";
  const std::string doubt = operators::doubt_of_share(*share, keys);
  if (doubt.empty()) return;
  const bool grey = *share == 0.0 && by_colour && is_grey(run.slide->info().levels.front().colour);
  context_.on_warning(run.path + ": " + doubt + (grey ? "; the slide is grey" : ""));
}

void SlideOpener::tell_of_tissue(const SlideRun& run, const SlideContext& about) const {
  // A network that wants to know the pixel size has said so.
  if (about.common->is_asked() && !about.mpp && context_.on_warning && context_.tissue_network == nullptr) {
    context_.on_warning(run.path + ": " +
                        operators::doubt_of_pixel_size(context_.config.operators.runs("stain"), "set input.mpp"));
  }
  tell_of_share(run, about.common->share());
  // Without tissue there is no more to say.
  if (context_.on_warning && about.common->share().value_or(0.0) > 0.0) {
    for (const std::string& doubt : about.common->doubts()) context_.on_warning(run.path + ": " + doubt);
  }
  const std::string ink = operators::doubt_of_ink(about.common->ink_share(), about.common->share().value_or(0.0));
  if (!ink.empty() && context_.on_message) context_.on_message(run.path + ": " + ink);
  const operators::PassedOver& passed_over = about.common->passed_over();
  const std::string text = operators::text_of_passed_over(passed_over);
  // Outlines of the class Ignore* were drawn to be left out.
  const bool is_doubt = passed_over.flat > 0 || passed_over.planes > 0;
  const auto& tell = is_doubt ? context_.on_warning : context_.on_message;
  if (!text.empty() && tell) tell(run.path + ": " + text);
}

/// The files that operators make.
void SlideOpener::begin_files(SlideRun& run) const {
  if (context_.emit == nullptr) return;
  ImageNames names;
  names.name = control_.image_name ? control_.image_name(run.path) : std::filesystem::path(run.path).stem().string();
  names.check = control_.check_file;
  names.check_partial = control_.check_partial;
  if (control_.image_file) {
    names.place = [this, &run](const std::string& name) { return control_.image_file(run.path, name); };
  }
  try {
    run.images = context_.emit->open(run, names);
    if (control_.on_files) control_.on_files(run.path);
  } catch (const OutputError&) {
    // Where nothing can be written, no slide can be done: it waits for the next run.
    run.abandoned.store(true);
    context_.on_output_failure(std::current_exception());
  }
}

void SlideOpener::tell_of_opening(const SlideRun& run) {
  const SlideInfo& info = run.slide->info();
  if (context_.on_warning) {
    for (const std::string& warning : info.warnings) context_.on_warning(run.path + ": " + warning);
  }
  if (!context_.on_message) return;
  for (const std::string& note : info.notes) context_.on_message(run.path + ": " + note);
  say_library(run);
}

/// Who reads slides that have no reader here is said once.
void SlideOpener::say_library(const SlideRun& run) {
  const SlideInfo& info = run.slide->info();
  if (info.library.empty()) return;
  std::call_once(library_said_, [&] {
    context_.on_message(run.path + ": is read by " + info.library + "; so are others that have no reader here");
  });
}

void SlideOpener::describe(SlideRun& run) const {
  const SlideInfo& info = run.slide->info();
  SlideResult& result = run.result;
  result.file_bytes = info.file_size;
  run.level = level_of(context_.config, context_.operators, info);
  result.level = static_cast<int>(run.level);
  const Level& level = info.levels[run.level];
  // Tiles may be decoded at half size; the results give the slide's own size.
  const Level& coded = run.slide->coded_level(run.level);
  result.width = coded.width;
  result.height = coded.height;
  result.codec = name(level.codec);
  result.colour = name(level.colour);
  result.mpp = mpp_of(info, run.level);
  if (context_.config.converts_colours()) {
    result.values.push_back({"srgb", info.is_srgb ? 1.0 : 0.0});
  }
  if (info.mpp_y) result.values.push_back({"mpp_y", *info.mpp_y * info.downsample_y(run.level)});
}

}  // namespace slidestream
