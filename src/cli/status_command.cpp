#include "cli/status_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "cli/progress_file.hpp"
#include "cli/terminal.hpp"
#include "config/dump_json.hpp"
#include "config/printable.hpp"
#include "ledger/database.hpp"
#include "ledger/status.hpp"
#include "output/text.hpp"

namespace slidestream::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Of those that failed, in the text.
constexpr std::size_t most_failures = 10;

struct StatusOptions {
  std::string folder;
  bool json = false;
};

std::string state_of(const LedgerStatus& status) {
  if (!status.owner) return status.pending + status.running > 0 ? "stopped" : "ended";
  if (!status.owner_is_alive) return "running, as far as can be told from here";
  return *status.owner_is_alive ? "running" : "dead: the same command goes on from here";
}

/// What the run that has the folder, or died with it, told last.
std::optional<ToldProgress> progress_of(const LedgerStatus& status, const std::string& folder) {
  if (!status.owner) return std::nullopt;
  std::optional<ToldProgress> told = read_progress(progress_file_of(folder));
  if (!told || told->process != status.owner->process) return std::nullopt;
  // What it told last may be older than the end of an image.
  if (!status.owner_is_alive.value_or(true)) {
    std::erase_if(told->progress.images, [&folder](const ImageProgress& image) {
      std::error_code ignored;
      return !std::filesystem::exists(std::filesystem::path(folder) / image.file, ignored);
    });
  }
  return told;
}

/// Of images that are being written, or that a process has left when it died.
std::string images_text(const ToldProgress& told, bool is_dead, const Style& style) {
  const Progress& progress = told.progress;
  if (progress.tiles_written == 0 && progress.images.empty()) return "";
  std::string text = style.bold("written") + "   " + count_text(progress.tiles_written) + " tiles, " +
                     bytes_text(static_cast<double>(progress.bytes_written)) +
                     (is_dead ? " or more until it died" : " since the start") + "\n";
  for (const ImageProgress& image : progress.images) {
    const double share =
        static_cast<double>(image.tiles) / static_cast<double>(std::max<std::uint64_t>(1, image.tiles_total));
    text += style.bold(is_dead ? "partial" : "writing") + "   " + printable(image.file) + ": " +
            count_text(image.tiles) + " of " + count_text(image.tiles_total) + " tiles (" +
            std::to_string(static_cast<int>(100 * share)) + " %), " + bytes_text(static_cast<double>(image.bytes)) +
            "\n";
  }
  return text;
}

/// Members whose items are written one by one.
constexpr const char* running_key = "running_slides";
constexpr const char* failures_key = "failures";

Json failure_json(const LedgerStatus::Failure& failure) {
  const SlideFailure& why = failure.why;
  return {{"path", json_text(failure.path)},
          {"error", json_text(why.text())},
          {"stage", why.stage.empty() ? Json() : Json(why.stage)},
          {"tile", why.tile ? Json(*why.tile) : Json()},
          {"attempts", failure.attempts}};
}

/// All but the items of those members.
Json status_json(const LedgerStatus& status, const std::optional<ToldProgress>& told) {
  Json owner;
  if (status.owner) {
    owner = {{"host", status.owner->process.host},
             {"pid", status.owner->process.pid},
             {"since", status.owner->since},
             {"beat", status.owner->beat_at},
             {"alive", status.owner_is_alive ? Json(*status.owner_is_alive) : Json()}};
  }
  Json damage = Json::array();
  for (const LedgerStatus::Damage& each : status.damage) {
    damage.push_back({{"what", each.what}, {"count", each.count}});
  }
  return {{"slides", status.slides},
          {"done", status.done},
          {"failed", status.failed},
          {"running", status.running},
          {"pending", status.pending},
          {"in_doubt", status.in_doubt},
          {"other_shards", status.other_shards},
          {"bytes", status.bytes},
          {"bytes_done", status.bytes_done},
          {"windows", status.windows},
          {"artifacts", status.artifacts},
          {"artifact_bytes", status.artifact_bytes},
          {"bytes_per_second", status.bytes_per_second},
          {"seconds_left", status.seconds_left ? Json(*status.seconds_left) : Json()},
          {"owner", std::move(owner)},
          {running_key, Json::array()},
          {failures_key, Json::array()},
          {"damage", std::move(damage)},
          {"unchecked", status.unchecked},
          {"progress", told ? told->json : Json()}};
}

const char* things_of(const LedgerStatus& status) { return status.of_volumes ? "volumes" : "slides"; }

std::string damage_text(const LedgerStatus& status, const Style& style) {
  std::string text;
  for (const LedgerStatus::Damage& damage : status.damage) {
    text += style.red("damaged") + "   " + damage.what + ": " + count_text(damage.count) + "\n";
  }
  if (!text.empty() && status.unchecked > 0) {
    text += std::string("          ") + things_of(status) +
            " that ended, and weren't checked: " + count_text(status.unchecked) + "\n";
  }
  return text;
}

std::string dumped(const Json& json) { return dump_json(json, 2); }

/// With a margin before all lines but the first.
std::string indented(const Json& json, const char* margin) {
  std::string text;
  for (const char character : dumped(json)) {
    text += character;
    if (character == '\n') text += margin;
  }
  return text;
}

/// Writes the items of a member's list, as `dumped` does.
class ListWriter {
 public:
  void add(const Json& item) {
    std::cout << (std::exchange(has_items_, true) ? ",\n    " : "[\n    ") << indented(item, "    ");
  }
  void end() { std::cout << (has_items_ ? "\n  ]" : "[]"); }

 private:
  bool has_items_ = false;
};

/// As `dumped` would write the document of all rows, which may be too large to hold.
void write_json(StatusReader& reader, const std::optional<ToldProgress>& told) {
  const Json document = status_json(reader.status(), told);
  const char* before = "{\n  ";
  for (auto member = document.begin(); member != document.end(); ++member) {
    std::cout << std::exchange(before, ",\n  ") << Json(member.key()).dump() << ": ";
    ListWriter list;
    if (member.key() == running_key) {
      reader.each_running([&list](const std::string& path) { list.add(json_text(path)); });
      list.end();
    } else if (member.key() == failures_key) {
      reader.each_failure([&list](const LedgerStatus::Failure& failure) { list.add(failure_json(failure)); });
      list.end();
    } else {
      std::cout << indented(*member, "  ");
    }
  }
  std::cout << "\n}\n";
}

std::string head_text(const LedgerStatus& status, const Style& style) {
  std::string text = style.bold("state") + "     " + state_of(status);
  if (status.owner) text += " (" + printable(status.owner->process.name()) + ")";
  text += "\n" + style.bold(things_of(status)) + (status.of_volumes ? "   " : "    ") + count_text(status.done) +
          " of " + count_text(status.slides) + " done";
  if (status.failed > 0) text += ", " + style.red(count_text(status.failed) + " failed");
  if (status.running > 0) text += ", " + count_text(status.running) + " running";
  if (status.pending > 0) text += ", " + count_text(status.pending) + " to do";
  if (status.in_doubt > 0) text += ", " + count_text(status.in_doubt) + " in doubt";
  if (status.other_shards > 0) text += "; " + count_text(status.other_shards) + " are other shards'";
  text += "\n" + style.bold("bytes") + "     " + bytes_text(static_cast<double>(status.bytes_done)) + " of " +
          bytes_text(static_cast<double>(status.bytes));
  if (status.bytes_per_second > 0) text += ", " + bytes_text(status.bytes_per_second) + "/s";
  if (status.owner && status.seconds_left) text += ", ETA " + clock_text(*status.seconds_left);
  if (status.artifacts > 0) {
    text += "\n" + style.bold("made") + "      " + count_text(status.artifacts) +
            (status.artifacts == 1 ? " file, " : " files, ") + bytes_text(static_cast<double>(status.artifact_bytes));
  }
  return text + "\n";
}

void write_text(StatusReader& reader, const std::optional<ToldProgress>& told, const Style& style) {
  const LedgerStatus& status = reader.status();
  std::cout << head_text(status, style);
  if (told) std::cout << images_text(*told, !status.owner_is_alive.value_or(true), style);
  reader.each_running(
      [&style](const std::string& path) { std::cout << style.bold("running") << "   " << printable(path) << "\n"; });
  const auto write_failure = [&style](const LedgerStatus::Failure& failure) {
    std::cout << style.red("failed") << "    " << printable(failure.path) << ": " << printable(failure.why.text())
              << "\n";
  };
  reader.each_failure(write_failure, most_failures);
  if (status.failure_rows.size() > most_failures) {
    std::cout << "          and " << status.failure_rows.size() - most_failures << " more in failures.csv\n";
  }
  std::cout << damage_text(status, style);
}

void print(const Json& json) { std::cout << dumped(json) << '\n'; }

/// Of an image that is written alone, which has no ledger.
int show_image(const StatusOptions& options, const std::filesystem::path& file) {
  const std::optional<ToldProgress> told = read_progress(file);
  if (!told) {
    std::error_code ignored;
    const bool is_whole = std::filesystem::exists(options.folder, ignored);
    throw OutputError(options.folder + ": " + (is_whole ? "it is whole, and " : "") +
                      "nobody writes it, or not for a second yet");
  }
  const std::optional<bool> alive = is_alive(told->process);
  if (options.json) {
    print(told->json);
    return exit_done;
  }
  const Style style = Style::of(1);
  std::string text = style.bold("state") + "     " +
                     (alive.value_or(true) ? "running" : "dead: nobody writes it any more") + " (" +
                     printable(told->process.name()) + ")";
  if (alive.value_or(true) && told->seconds_left) text += ", ETA " + clock_text(*told->seconds_left);
  std::cout << text << "\n" << images_text(*told, !alive.value_or(true), style);
  return exit_done;
}

int show_run(const StatusOptions& options, StatusReader& reader) {
  const LedgerStatus& status = reader.status();
  const std::optional<ToldProgress> told = progress_of(status, options.folder);
  if (options.json) {
    write_json(reader, told);
  } else {
    write_text(reader, told, Style::of(1));
  }
  return status.damage.empty() ? exit_done : exit_some_failed;
}

int show_status(const StatusOptions& options) {
  const std::filesystem::path progress_file = progress_file_of(options.folder);
  if (progress_file.filename() != "progress.json") return show_image(options, progress_file);
  std::optional<StatusReader> reader;
  try {
    reader.emplace(options.folder);
  } catch (const DamagedError& error) {
    // So much that nothing can be counted.
    if (options.json) print({{"error", json_text(error.what())}});
    spdlog::error("{}", error.what());
    return exit_some_failed;
  }
  return show_run(options, *reader);
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "How far a run is, also while it runs and from another machine");
  command->add_option("folder", options->folder, "Folder with results, or the image that `pipeline convert` is writing")
      ->type_name("DIR|IMAGE")
      ->required()
      ->check(not_empty);
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "Lines say what is damaged in the ledger, and the exit status is 1 then.\n\n"
      "Examples:\n"
      "  pipeline status results\n"
      "  watch -n 10 pipeline status results\n"
      "  pipeline status results --json | jq .failures\n"
      "  pipeline status slide.ome.tif");
  command->callback([&action, options] { action = [options] { return show_status(*options); }; });
}

}  // namespace slidestream::cli
