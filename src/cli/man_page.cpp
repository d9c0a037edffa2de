#include <CLI/CLI.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>

#include "cli/help.hpp"
#include "config/keys.hpp"
#include "config/toml_text.hpp"

namespace slidestream::cli {

namespace {

/// Text that roff takes as it is: no line begins with a control character, minus signs and backslashes stay themselves.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }
std::string section(std::string_view title) { return ".SH " + std::string(title) + "\n"; }
std::string item(const std::string& head, std::string_view body) { return ".TP\n" + head + "\n" + roff(body) + "\n"; }

std::string options_text(const CLI::App& command) {
  std::string text;
  for (const OptionText& option : options_of(command)) {
    std::string head;
    for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
    if (!option.value.empty()) head += " " + italic(option.value);
    text += item(head, option.description);
  }
  return text;
}

std::string arguments_text(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options(&CLI::Option::get_positional)) {
    std::string description = option->get_description();
    for (char& c : description) c = c == '\n' ? ' ' : c;
    text += item(italic(option->get_type_name()), description);
  }
  return text;
}

/// The files of statistics besides the distribution.
std::string statistics_text() {
  std::string text;
  for (const Statistic& statistic : statistics()) {
    std::string files;
    for (const std::string& file : files_of(statistic)) files += (files.empty() ? "" : ", ") + file;
    if (files.empty()) continue;
    const std::string title(statistic.title);
    text += item(files, "With analysis." + std::string(statistic.name) + ": " + title + ", a row a slide.");
  }
  return text;
}

std::string keys_text() {
  std::string text;
  std::string_view part;
  const Config defaults;
  for (const ConfigKey& key : config_keys()) {
    if (key.section != part) {
      part = key.section;
      text += ".SS [" + roff(part) + "]\n";
    }
    text += item(bold(key.name) + " = " + roff(to_toml_value(key.get(defaults))), key.comment);
  }
  return text;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text = ".TH PIPELINE 1 \"\" \"slidestream " + roff(version()) + "\" \"User Commands\"\n";
  text += section("NAME") + "pipeline \\- " + roff(app.get_description()) + "\n";
  text += section("SYNOPSIS") + ".B pipeline\n[" + italic("SLIDE") + "|" + italic("DIR") + "|" + italic("LIST") +
          "|\\- ...] [" + italic("OPTION") + " ...]\n";
  for (const CLI::App* command : commands_of(app)) {
    text += ".br\n" + bold(full_name(*command)) + " ...\n";
  }
  text += section("DESCRIPTION") +
          roff(
              "Reads whole-slide images (Aperio SVS and other tiled TIFF), and computes spectral statistics of every "
              "window of every slide: a histogram of the logarithmic Fourier magnitudes, their mean, standard "
              "deviation and percentiles, for each slide and for all together. pipeline convert writes slides as "
              "images. A slide that fails is reported and doesn't stop the others.\n");
  text += arguments_text(app) + section("OPTIONS") + options_text(app);
  text += section("COMMANDS");
  for (const CLI::App* command : commands_of(app)) {
    text += ".SS " + roff(full_name(*command)) + "\n" + roff(command->get_description()) + "\n";
    text += arguments_text(*command) + options_text(*command);
  }
  text += section("CONFIGURATION") +
          roff(
              "A TOML file, with --config; defaults lie below the file, the file below --set, and that below the "
              "options of their own. pipeline --print-config writes the effective one.\n");
  text += keys_text();
  text +=
      section("FILES") +
      item("slides.csv", "One record a slide in the order of the input: status, error, size, codec, statistics.") +
      item("corpus.json", "Settings, versions, totals, the stages' times, and the merged histogram.") +
      item("histograms.npy", "Of the spectrum: counts, int64, slides x bins, in the order of slides.csv.") +
      statistics_text() + item("failures.csv", "A record a slide that failed: path, stage, tile, cause.") +
      item("progress.json",
           "While a run works, and after one that was killed: how far it is, tiles and bytes of images under way.") +
      item("run.sqlite", "The ledger of the run. The other files are written from it.") +
      item("maps/SLIDE.npy, maps/SLIDE.tif",
           "Where asked for: mean and standard deviation of every window, 32-bit float, rows x columns x 2.") +
      item("images/SLIDE.OPERATOR.ome.tif",
           "Of operators that make images: a tiled pyramid, or .ome.zarr, .dicom, or .dzi with _files and .view.html; "
           "SLIDE.OPERATOR.partial.ome.tif and so on until it is whole.") +
      item("features/SLIDE.h5",
           "Of networks that give vectors: coords and features of tiles, as TRIDENT and CLAM have them; SLIDE.pt, the "
           "features alone for PyTorch, with features.format.") +
      item("coords/SLIDE.h5", "With features.coords_only: coords of tiles alone.") +
      item("artifacts.csv",
           "A record a file in images/, features/ and coords/: slide, operator, product, file, bytes, digest.") +
      roff("Every file is written whole to a temporary name and renamed.\n");
  text += section("INTERRUPTED RUNS") +
          roff(
              "Slides that weren't finished have no row in slides.csv; those that were are written as usual. The same "
              "command again skips what is done. Where settings that decide results are others, it is refused; --fresh "
              "moves the earlier run aside.\n");
  text +=
      section("CLOSING TABLE") +
      roff(
          "For each stage: busy, the share of the run's time on all its threads that the stage worked; wait, the "
          "share of the time that batches spent at this stage before its work on them began (so the two shares are of "
          "different wholes); items and bytes that went through; "
          "and bytes a second of work. The stage with the largest busy share is the one to make faster.\n");
  text += section("EXIT STATUS");
  for (const auto& [status, meaning] : exit_status_text) text += item(bold(status), meaning);
  return text;
}

}  // namespace slidestream::cli
