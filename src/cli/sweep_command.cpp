#include "cli/sweep_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <string>
#include <vector>

#include "cli/listed_files.hpp"
#include "cli/own_files.hpp"
#include "cli/run_options.hpp"
#include "cli/signals.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "output/atomic_file.hpp"
#include "sweep/sweep.hpp"
#include "sweep/tuned.hpp"
#include "system/control_groups.hpp"

namespace slidestream::cli {

namespace {

using State = CombinationState::State;

struct SweepCommandOptions {
  RunOptions run;
  std::vector<std::string> over;
  std::string cache = "warm";
  int repeat = 5;
  int warm_up = 1;
  double budget = 0.0;
  std::uint64_t seed = 1;
  bool overlap = false;
  bool fresh = false;
};

std::string state_text(const CombinationState& state, int repeat) {
  switch (state.state) {
    case State::waiting:
      return state.seconds.empty() ? "" : std::to_string(state.seconds.size()) + " of " + std::to_string(repeat);
    case State::measuring:
      return "running";
    case State::done:
      return "";
    case State::cannot_win:
      return "can't win";
    case State::refused:
      return "refused";
    case State::failed:
      return "failed";
    case State::out_of_time:
      return "out of time";
  }
  return "";
}

/// The combinations, the fastest first; those without times last. At most `most` rows.
std::string table_text(const Sweep& sweep, std::size_t most, const Style& style) {
  std::vector<const CombinationState*> order;
  for (const CombinationState& state : sweep.combinations()) order.push_back(&state);
  const auto median = [](const CombinationState* state) {
    return state->seconds.empty() ? 1e300 : summarise(state->seconds).median;
  };
  std::ranges::stable_sort(order, [&](const auto* a, const auto* b) { return median(a) < median(b); });
  Table table({"<combination", "runs", "min s", "median s", "spread s", "Gpx/s", "<"});
  std::size_t shown = 0;
  for (const CombinationState* state : order) {
    if (shown++ == most) break;
    const TimeSummary times = summarise(state->seconds);
    std::string name = printable(state->combination.name);
    if (state->combination.is_base && name != "base") name += " (base)";
    if (times.runs == 0) {
      table.add({name, "0", "", "", "", "", state_text(*state, sweep.options().repeat)});
      continue;
    }
    table.add({name, std::to_string(times.runs), fixed(times.least, 4), fixed(times.median, 4),
               fixed(times.spread(), 4), fixed(static_cast<double>(state->pixels) / times.median / 1e9, 3),
               state_text(*state, sweep.options().repeat)});
  }
  std::string text = table.text(style);
  if (order.size() > most) text += "and " + std::to_string(order.size() - most) + " more\n";
  return text;
}

/// On a terminal a table that is drawn again and again; elsewhere a line a run.
class Display {
 public:
  Display(bool quiet, bool plain) : quiet_(quiet), style_(Style::of(2)) {
    if (plain) style_.terminal = false;
  }

  void show(const Sweep& sweep, const std::string& what) {
    if (quiet_) return;
    if (!style_.terminal) {
      if (!what.empty()) spdlog::info("{}", what);
      return;
    }
    clear();
    if (what.empty()) return;
    constexpr std::size_t most_rows = 20;
    Style plain = style_;
    plain.colour = false;  // so that lines can be cut
    const std::string text = table_text(sweep, most_rows, plain) + printable(what) + "\n";
    // A line that wraps would be more than one to go up.
    const auto width = static_cast<std::size_t>(std::max(terminal_width(2) - 1, 20));
    std::string cut;
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      cut += shortened_path(line, width, style_) + "\n";
      ++lines_;
      begin = end + 1;
    }
    std::cerr << cut << std::flush;
  }

  void clear() {
    if (lines_ == 0) return;
    std::cerr << "\x1b[" << lines_ << "A\r\x1b[J" << std::flush;
    lines_ = 0;
  }

 private:
  bool quiet_;
  Style style_;
  std::size_t lines_ = 0;
};

SweepOptions sweep_options(const SweepCommandOptions& options) {
  if (std::isnan(options.budget)) throw ConfigError("--budget is nan; expected a number of seconds");
  SweepOptions sweep;
  sweep.base = effective_config(options.run);
  for (const std::string& text : options.over) sweep.axes.push_back(parse_axis(text));
  if (sweep.base.input.slides.empty()) throw ConfigError("no slide: name slides, folders or lists to measure with");
  const ExpandedInputs inputs = expand_inputs(sweep.base.input.slides);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty()) throw ConfigError("no slide in " + sweep.base.input.slides.front());
  sweep.slides = inputs.slides;
  sweep.base.input.slide_mpp = inputs.mpp;
  sweep.folder = options.run.out;
  sweep.repeat = options.repeat;
  sweep.warm_up = options.warm_up;
  sweep.cache = options.cache == "cold" ? CachePolicy::cold : CachePolicy::warm;
  sweep.budget = options.budget;
  sweep.seed = options.seed;
  sweep.overlap = options.overlap;
  sweep.limit = group_limits().memory;
  return sweep;
}

void remove_earlier(const std::string& folder) {
  for (const char* name : {"sweep.csv", "tuned.toml"}) {
    std::error_code code;
    std::filesystem::remove(std::filesystem::path(folder) / name, code);
    if (code) throw OutputError((std::filesystem::path(folder) / name).string() + ": " + code.message());
  }
}

/// What was found, in words; writes tuned.toml.
void conclude(const Sweep& sweep, const std::filesystem::path& folder) {
  const Style style = Style::of(1);
  std::string text = table_text(sweep, 1000, style);
  for (const CombinationState& state : sweep.combinations()) {
    if (state.reason.empty()) continue;
    text += style.red(state.state == State::refused ? "refused" : "failed") + "  " + printable(state.combination.name) +
            ": " + printable(state.reason) + "\n";
  }
  const std::optional<Verdict> verdict = sweep.verdict();
  const Sweep::Choice choice = sweep.choice();
  if (sweep.difference().empty() && verdict && !choice.is_one()) {
    text += "\n" + style.bold("measured") + " " + choice.text() + ": too few to choose from\n";
  } else if (sweep.difference().empty() && verdict) {
    AtomicFile file(folder / "tuned.toml");
    file.write(tuned_toml(sweep, *verdict));
    file.commit();
    text += "\n" + style.bold("fastest") + "  " + printable(sweep.combinations()[verdict->winner].combination.name) +
            ": " + verdict_text(*verdict) + (choice.is_whole() ? "" : "; " + choice.text() + " were measured") + "\n";
    text +=
        style.bold("results") + "  of all combinations that compute the same are equal to the bit, on each backend\n";
    text += style.bold("written") + "  " + printable(folder.string()) + ": sweep.csv, tuned.toml\n";
  }
  std::cout << text;
}

int sweep_slides(const SweepCommandOptions& options) {
  const SweepOptions wanted = sweep_options(options);
  const std::string& folder = options.run.out;
  for (const char* file : {"sweep.csv", "tuned.toml"}) check_unlisted_above(std::filesystem::path(folder) / file);
  // An earlier table is read, and refused where it is no sweep's.
  if (options.fresh) check_target(std::filesystem::path(folder) / "sweep.csv", options.run.overwrite);
  check_target(std::filesystem::path(folder) / "tuned.toml", options.run.overwrite);
  if (options.fresh) remove_earlier(folder);
  Display display(options.run.quiet, options.run.log_json);
  const Sweep* shown = nullptr;
  Sweep::Watcher watcher;
  watcher.changed = [&](const std::string& what) { display.show(*shown, what); };
  watcher.warn = [&](const std::string& message) {
    display.clear();
    spdlog::warn("{}", message);
  };
  Sweep sweep(wanted, watcher);
  shown = &sweep;
  spdlog::info("{}, {} each after {} to warm up, in an order by seed {}",
               count_of(sweep.combinations().size(), "combination"),
               count_of(static_cast<unsigned long long>(wanted.repeat), "run"), wanted.warm_up, wanted.seed);
  if (sweep.runs_before() > 0) {
    spdlog::info("{} of {}/sweep.csv {}", count_of(sweep.runs_before(), "row"), folder,
                 sweep.runs_before() == 1 ? "counts" : "count");
  }
  RunControl control;
  try {
    {
      const SignalScope signals(control);
      sweep.run([&control] { return control.stop_requested(); });
      display.clear();
    }
    conclude(sweep, folder);
  } catch (const OutputError& error) {
    // What was measured is kept.
    display.clear();
    throw EndedEarlyError(std::string(error.what()) + "; the same command goes on");
  }
  if (!sweep.difference().empty()) {
    spdlog::error("{}", sweep.difference());
    return exit_some_failed;
  }
  if (sweep.stopped()) {
    spdlog::warn("interrupted: what was measured is in {}/sweep.csv; the same command goes on", folder);
    return 128 + std::max(1, SignalScope::received());
  }
  if (!sweep.best()) {
    spdlog::error("no combination could be measured");
    return exit_some_failed;
  }
  if (sweep.out_of_time()) spdlog::warn("the budget of {} s ended it; the same command goes on", wanted.budget);
  return exit_done;
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<SweepCommandOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Measure combinations of settings, and name the fastest");
  command->add_option("slides", options->run.inputs, "Slides, folders or lists to measure with")
      ->type_name("SLIDE|DIR|LIST");
  command->add_option("-c,--config", options->run.config_file, "Configuration to start from")
      ->type_name("FILE")
      ->check(not_empty);
  const auto repeated = [](CLI::Option* option) {
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  };
  repeated(command->add_option("-s,--set", options->run.settings, "One setting, over the file's; may be repeated")
               ->type_name("SECTION.KEY=VALUE"));
  add_key_option(*command, options->run, {"-t,--threads", "pipeline", "threads", "Threads of each run, 0 for all"});
  repeated(command->add_option("--over", options->over, "A key and the values to try; may be repeated")
               ->type_name("SECTION.KEY=VALUE,VALUE")
               ->required());
  command->add_option("-o,--out", options->run.out, "Folder for sweep.csv and tuned.toml")
      ->type_name("DIR")
      ->check(not_empty)
      ->required();
  command->add_option("--repeat", options->repeat, "Runs of each combination")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command->add_option("--warm-up", options->warm_up, "Runs of each before them that don't count")
      ->type_name("N")
      ->check(CLI::Range(0, 100));
  command->add_option("--cache", options->cache, "Whether the slides are in the page cache when a run begins")
      ->type_name("warm|cold")
      ->check(CLI::IsMember({"warm", "cold"}));
  command->add_option("--budget", options->budget, "End after so many seconds, with what was measured by then")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--seed", options->seed, "What the order of the runs is drawn by")->type_name("N");
  command->add_flag("--overlap", options->overlap, "Record each run, for how well GPUs were kept busy");
  command->add_flag("--fresh", options->fresh, "Forget what an earlier sweep left in the folder");
  command->add_flag("--overwrite", options->run.overwrite,
                    "Replace files that are there and that no sweep wrote; with --fresh");
  command->add_flag("-q,--quiet", options->run.quiet, "No table while it runs");
  command->footer(
      "The runs of all combinations follow each other in rounds, each in another order, so that drift hits all alike. "
      "A\n"
      "combination is left out of further rounds when, with two runs or more, its fastest is slower than the best's\n"
      "median by more than the larger of both spreads. The winner and the configuration to start from are measured "
      "once\n"
      "more against each other; only these runs decide whether they differ. The same command goes on after an\n"
      "interruption. Ends with 1 when the results of two combinations differ.\n\n"
      "Examples:\n"
      "  pipeline sweep slide.svs --over pipeline.strip_height=256,512,1024 --over pipeline.queue_depth=1,2,4 --out "
      "sweep\n"
      "  pipeline sweep --config configs/h100.toml slide.svs --over pipeline.memory_mib=4096,8192 --cache cold --out "
      "sweep\n"
      "  pipeline --config sweep/tuned.toml slides/");
  command->callback([&action, options] { action = [options] { return sweep_slides(*options); }; });
}

}  // namespace slidestream::cli
