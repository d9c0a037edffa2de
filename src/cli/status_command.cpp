#include "cli/status_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "ledger/status.hpp"

namespace slidestream::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Of those that failed, in the text.
constexpr std::size_t most_named = 10;

struct StatusOptions {
  std::string folder;
  bool json = false;
};

std::string state_of(const LedgerStatus& status) {
  if (!status.owner) return status.pending + status.running > 0 ? "stopped" : "ended";
  if (!status.owner_is_alive) return "running, as far as can be told from here";
  return *status.owner_is_alive ? "running" : "dead: the same command goes on from here";
}

Json status_json(const LedgerStatus& status) {
  Json failures = Json::array();
  for (const LedgerStatus::Failure& failure : status.failures) {
    const SlideFailure& why = failure.why;
    failures.push_back({{"path", failure.path},
                        {"error", why.text()},
                        {"stage", why.stage.empty() ? Json() : Json(why.stage)},
                        {"tile", why.tile ? Json(*why.tile) : Json()},
                        {"attempts", failure.attempts}});
  }
  Json owner;
  if (status.owner) {
    owner = {{"host", status.owner->process.host},
             {"pid", status.owner->process.pid},
             {"since", status.owner->since},
             {"beat", status.owner->beat_at},
             {"alive", status.owner_is_alive ? Json(*status.owner_is_alive) : Json()}};
  }
  return {{"slides", status.slides},
          {"done", status.done},
          {"failed", status.failed},
          {"running", status.running},
          {"pending", status.pending},
          {"other_shards", status.other_shards},
          {"bytes", status.bytes},
          {"bytes_done", status.bytes_done},
          {"windows", status.windows},
          {"artifacts", status.artifacts},
          {"artifact_bytes", status.artifact_bytes},
          {"bytes_per_second", status.bytes_per_second},
          {"seconds_left", status.seconds_left ? Json(*status.seconds_left) : Json()},
          {"owner", std::move(owner)},
          {"running_slides", status.running_paths},
          {"failures", std::move(failures)}};
}

std::string status_text(const LedgerStatus& status, const Style& style) {
  std::string text = style.bold("state") + "     " + state_of(status);
  if (status.owner) text += " (" + printable(status.owner->process.name()) + ")";
  text += "\n" + style.bold("slides") + "    " + count_text(status.done) + " of " + count_text(status.slides) + " done";
  if (status.failed > 0) text += ", " + style.red(count_text(status.failed) + " failed");
  if (status.running > 0) text += ", " + count_text(status.running) + " running";
  if (status.pending > 0) text += ", " + count_text(status.pending) + " to do";
  if (status.other_shards > 0) text += "; " + count_text(status.other_shards) + " are other shards'";
  text += "\n" + style.bold("bytes") + "     " + bytes_text(static_cast<double>(status.bytes_done)) + " of " +
          bytes_text(static_cast<double>(status.bytes));
  if (status.bytes_per_second > 0) text += ", " + bytes_text(status.bytes_per_second) + "/s";
  if (status.owner && status.seconds_left) text += ", ETA " + clock_text(*status.seconds_left);
  if (status.artifacts > 0) {
    text += "\n" + style.bold("made") + "      " + count_text(status.artifacts) +
            (status.artifacts == 1 ? " file, " : " files, ") + bytes_text(static_cast<double>(status.artifact_bytes));
  }
  text += "\n";
  for (const std::string& path : status.running_paths) text += style.bold("running") + "   " + printable(path) + "\n";
  for (std::size_t i = 0; i < std::min(status.failures.size(), most_named); ++i) {
    const LedgerStatus::Failure& failure = status.failures[i];
    text += style.red("failed") + "    " + printable(failure.path) + ": " + printable(failure.why.text()) + "\n";
  }
  if (status.failures.size() > most_named) {
    text += "          and " + std::to_string(status.failures.size() - most_named) + " more in failures.csv\n";
  }
  return text;
}

int show_status(const StatusOptions& options) {
  const LedgerStatus status = read_status(options.folder);
  if (options.json) {
    std::cout << status_json(status).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << status_text(status, Style::of(1));
  }
  return exit_done;
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "How far a run is, also while it runs and from another machine");
  command->add_option("folder", options->folder, "Folder with results")->type_name("DIR")->required();
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Examples:\n"
      "  pipeline status results\n"
      "  watch -n 10 pipeline status results\n"
      "  pipeline status results --json | jq .failures");
  command->callback([&action, options] { action = [options] { return show_status(*options); }; });
}

}  // namespace slidestream::cli
