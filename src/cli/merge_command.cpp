#include "cli/merge_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <slidestream/pipeline.hpp>
#include <string>
#include <vector>

#include "cli/listed_files.hpp"
#include "cli/report.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/volume_command.hpp"
#include "ledger/merge.hpp"

namespace slidestream::cli {

namespace {

/// Of slides that are missing.
constexpr std::size_t most_named = 20;

struct MergeArguments {
  std::vector<std::string> folders;
  std::string out;
  bool fresh = false;
  bool quiet = false;
};

int merge(const MergeArguments& options) {
  check_outside_images(std::filesystem::path(options.out) / "slides.csv");
  RunControl control;
  const SignalScope signals(control);
  const MergeResult merged = merge_ledgers(options.folders, options.out,
                                           {options.fresh, [&control] { return control.stop_requested(); },
                                            [](const std::string& line) { spdlog::info("{}", line); }, write_labels});
  if (!merged.aside.empty()) spdlog::info("{}: the earlier results are there now", merged.aside);
  if (merged.stopped) {
    spdlog::warn("interrupted: nothing was merged");
    return 128 + SignalScope::received();
  }
  for (const std::string& warning : merged.warnings) spdlog::warn("{}", warning);
  if (!merged.not_written.empty()) {
    spdlog::error("{}; all is merged, and the same command writes the files again", merged.not_written);
    return control.stop_requested() ? 128 + SignalScope::received() : exit_ended_early;
  }
  for (std::size_t i = 0; i < std::min(merged.missing.size(), most_named); ++i) {
    const std::string& path = merged.missing[i];
    const auto found = merged.not_counted.find(path);
    if (found != merged.not_counted.end()) {
      spdlog::error("{}: still to do, as another folder says; the result in {} doesn't count", path, found->second);
    } else if (merged.repeats.contains(path)) {
      spdlog::error("{}: still to be repeated; its earlier result doesn't count", path);
    } else {
      spdlog::error("{}: done in none of the folders", path);
    }
  }
  if (!merged.missing.empty()) {
    spdlog::error("{} still to do, and {} in slides.csv",
                  count_of(merged.missing.size(), "slide") + (merged.missing.size() == 1 ? " is" : " are"),
                  merged.missing.size() == 1 ? "has no row" : "have no rows");
  }
  if (merged.twice > 0) {
    spdlog::info("{} {} in several folders with the same result", count_of(merged.twice, "slide"),
                 merged.twice == 1 ? "is" : "are");
  }
  if (!options.quiet) {
    const Unfinished missing = {merged.missing.size(), "missing", ": still to do", merged.absent, merged.absent_bytes};
    std::cout << summary_text(merged.config, RunResult{}, merged.corpus, 0, Style::of(1), missing);
  }
  if (!merged.missing.empty() || merged.absent > 0 || merged.uncertain > 0) return exit_ended_early;
  return merged.corpus.failed + merged.corpus.incomplete == 0 ? exit_done : exit_some_failed;
}

}  // namespace

void add_merge_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand("merge", "Join the results of several runs, such as shards");
  command->add_option("folders", options->folders, "Folders with results")
      ->type_name("DIR")
      ->required()
      ->check(not_empty);
  command->add_option("-o,--out", options->out, "Folder for the joined results")
      ->type_name("DIR")
      ->check(not_empty)
      ->required();
  command->add_flag("--fresh", options->fresh,
                    "Move an earlier run in the folder for results aside, to its earlier-N, and start anew");
  command->add_flag("-q,--quiet", options->quiet, "Nothing but warnings and errors");
  command->footer(
      "Ends with 1 when a slide failed, and with 3 when a folder's run hasn't ended, when a slide is still to do or "
      "only "
      "left by an earlier run, or when a file of a slide isn't found with its size; verify compares contents. "
      "Repeated, it replaces what it joined before.\n\n"
      "Examples:\n"
      "  pipeline merge part-1 part-2 part-3 --out results");
  command->callback(
      [&action, options] { action = [options] { return on_storage_with_room([&] { return merge(*options); }); }; });
}

}  // namespace slidestream::cli
