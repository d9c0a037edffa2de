#include "cli/report_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <string>

#include "cli/listed_files.hpp"
#include "cli/own_files.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "config/suggest.hpp"
#include "report/report.hpp"
#include "system/control_groups.hpp"

namespace slidestream::cli {

namespace {

struct Options {
  report::ReportOptions report;
  double most_megabytes = 20.0;
  bool overwrite = false;
};

int write(Options options) {
  report::ReportOptions& wanted = options.report;
  if (wanted.manifest.empty() != wanted.cohort.empty()) {
    throw ConfigError("--manifest and --cohort belong together: the file, and its column to compare by");
  }
  for (const std::string& folder : wanted.folders) check_unlisted(wanted.html, folder);
  check_unlisted_above(wanted.html);
  check_page_target(wanted.html, PageOf::report, options.overwrite);
  wanted.most_bytes = static_cast<std::uint64_t>(options.most_megabytes * 1e6);
  wanted.threads = std::clamp(allowed_processors(), 1, 16);
  auto told = std::chrono::steady_clock::now();
  wanted.on_thumbnail = [&told](std::size_t done, std::size_t all) {
    constexpr std::chrono::seconds pause{5};
    if (std::chrono::steady_clock::now() - told < pause) return;
    told = std::chrono::steady_clock::now();
    spdlog::info("{} of {} thumbnails", done, all);
  };
  RunControl control;
  const SignalScope signals(control);
  wanted.stopped = [&control] { return control.stop_requested(); };
  report::ReportResult result;
  try {
    result = report::write_report(wanted);
  } catch (const StoppedError&) {
    spdlog::warn("interrupted: {} isn't written", printable(wanted.html));
    return 128 + std::max(1, SignalScope::received());
  }
  for (const std::string& warning : result.warnings) spdlog::warn("{}", warning);
  const Style style = Style::of(1);
  const auto counted = [](std::size_t n, const char* thing) { return count_text(n) + thing + (n == 1 ? "" : "s"); };
  std::string text = style.bold(printable(wanted.html)) + ": " + counted(result.slides, " slide");
  if (const std::size_t others = result.failed + result.unfinished; others > 0) {
    text += " (" + count_text(result.slides - others) + " done, " + style.red(count_text(result.failed) + " failed") +
            ", " + style.red(count_text(result.unfinished) + " unfinished") + ")";
  }
  text += ", " + counted(result.thumbnails, " thumbnail") + ", " + counted(result.maps, " map");
  if (result.sweeps > 0) text += ", " + counted(result.sweeps, " sweep");
  std::cout << text << ", " << bytes_text(static_cast<double>(result.bytes)) << '\n';
  return exit_done;
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  report::ReportOptions& report = options->report;
  CLI::App* command = app.add_subcommand("report", "Results as one page to look at in a browser");
  command->add_option("folders", report.folders, "Folders with results, of runs or sweeps")
      ->type_name("DIR")
      ->required();
  command->add_option("--html", report.html, "File to write, FILE.html; it needs no other and no network")
      ->check([](const std::string& file) {
        return file.ends_with(".html") || file.ends_with(".htm") ? "" : "must end in .html or .htm";
      })
      ->type_name("FILE")
      ->check(not_empty)
      ->required();
  command->add_option("--manifest", report.manifest, "CSV with a column `path` that says more of the slides")
      ->type_name("FILE");
  command->add_option("--cohort", report.cohort, "The manifest's column to compare slides by")->type_name("COLUMN");
  command->add_option("--trace", report.trace, "What `--trace` recorded of a run, to show what overlapped")
      ->type_name("FILE");
  command->add_option("--max-size", options->most_megabytes, "Size that thumbnails and maps may fill the file up to")
      ->type_name("MB")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "Replace a file that is there and is no report");
  command->footer(
      "Thumbnails are made from the slides' files where those are still there.\n\n"
      "Examples:\n"
      "  pipeline report results --html report.html\n"
      "  pipeline report scanner-a scanner-b --html both.html\n"
      "  pipeline report results --html report.html --manifest cohort.csv --cohort stain\n"
      "  pipeline report results --html report.html --trace trace.json");
  command->callback(
      [&action, options] { action = [options] { return on_storage_with_room([&] { return write(*options); }); }; });
}

}  // namespace slidestream::cli
