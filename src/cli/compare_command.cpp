#include "cli/compare_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "compare/compare.hpp"
#include "config/dump_json.hpp"
#include "config/printable.hpp"
#include "output/text.hpp"

namespace slidestream::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Slides in the text: those that differ most.
constexpr std::size_t most_slides = 20;

struct CompareOptions {
  std::string first;
  std::string second;
  double tolerance = -1.0;  ///< below 0: none
  bool json = false;
};

Json difference_json(const Difference& difference) {
  return {{"equal", difference.equal},
          {"mean", difference.mean},
          {"std", difference.standard_deviation},
          {"p05", difference.p05},
          {"p50", difference.p50},
          {"p95", difference.p95},
          {"l1", difference.l1},
          {"wasserstein", difference.wasserstein}};
}

/// No number: none is known.
Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json values_json(const std::vector<ValueDifference>& values) {
  Json json = Json::object();
  for (const ValueDifference& value : values) {
    json[value.name] = {{"first", number_json(value.first)},
                        {"second", number_json(value.second)},
                        {"difference", number_json(value.difference())}};
  }
  return json;
}

void add_statistics(Json& json, const std::vector<StatisticDifference>& statistics) {
  for (const StatisticDifference& statistic : statistics) {
    Json& found = json["statistics"][statistic.name];
    found["equal"] = statistic.equal;
    for (const NamedDifference& part : statistic.parts) found[part.name] = part.value ? Json(*part.value) : Json();
  }
}

Json comparison_json(const Comparison& comparison, const CompareOptions& options) {
  Json slides = Json::array();
  for (const SlidePair& pair : comparison.slides) {
    Json slide = {{"first", json_text(pair.first)}, {"second", json_text(pair.second)}};
    if (pair.difference) slide.update(difference_json(*pair.difference));
    slide["values"] = values_json(pair.values);
    slide["files"] = pair.files;
    slide["equal_files"] = pair.equal_files;
    slide["artifacts"] = pair.artifacts;
    add_statistics(slide, pair.statistics);
    slides.push_back(std::move(slide));
  }
  Json unmatched = Json::array();
  for (const Unmatched& slide : comparison.unmatched) {
    unmatched.push_back({{"path", json_text(slide.path)}, {"why", json_text(slide.why)}});
  }
  Json json = {{"first", json_text(options.first)},
               {"second", json_text(options.second)},
               {"settings", comparison.settings},
               {"only_first", comparison.only_first},
               {"only_second", comparison.only_second},
               {"corpus", comparison.corpus ? difference_json(*comparison.corpus) : Json()},
               {"slides", std::move(slides)},
               {"unmatched", std::move(unmatched)}};
  if (comparison.spectrum) json["unit"] = comparison.first.analysis.value == ValueKind::linear ? "|F|" : "dB";
  if (comparison.corpus) add_statistics(json["corpus"], comparison.corpus_statistics);
  if (options.tolerance >= 0) {
    json["tolerance"] = options.tolerance;
    json["within"] = comparison.within(options.tolerance);
  }
  return json;
}

/// With a sign, and as many digits as tell a rounding error from nothing.
std::string signed_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), value != 0 && std::abs(value) < 1e-4 ? "%+.1e" : "%+.4f", value);
  return value == 0 ? "0" : text;
}

std::string distance_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), value != 0 && value < 1e-4 ? "%.1e" : "%.4f", value);
  return value == 0 ? "0" : text;
}

void add_row(Table& table, const std::string& name, const Difference& difference) {
  if (difference.equal) {
    table.add({name, "equal", "equal", "", "", "", "0", "0"});
    return;
  }
  table.add({name, signed_number(difference.mean), signed_number(difference.standard_deviation),
             signed_number(difference.p05), signed_number(difference.p50), signed_number(difference.p95),
             distance_number(difference.l1), distance_number(difference.wasserstein)});
}

/// The slides whose spectra differ most, and all together.
std::string spectra_text(const Comparison& comparison, int width, const Style& style) {
  const char* const unit = comparison.first.analysis.value == ValueKind::linear ? " |F|" : " dB";
  Table table({"<slide", std::string("mean") + unit, std::string("std") + unit, "5 %", "50 %", "95 %", "L1",
               std::string("Wasserstein") + unit});
  std::vector<const SlidePair*> order;
  for (const SlidePair& pair : comparison.slides) {
    if (pair.difference) order.push_back(&pair);
  }
  if (order.empty()) return {};
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const SlidePair* pair) { return pair->difference->largest(); });
  const auto path_width = static_cast<std::size_t>(std::clamp(width - 76, 16, 60));
  for (std::size_t i = 0; i < std::min(order.size(), most_slides); ++i) {
    add_row(table, shortened_path(order[i]->first, path_width, style), *order[i]->difference);
  }
  if (comparison.corpus) add_row(table, "corpus", *comparison.corpus);
  std::string text = table.text(style);
  if (order.size() > most_slides) {
    text += "and " + std::to_string(order.size() - most_slides) + " more that differ less; --json has all\n";
  }
  return text;
}

/// One figure over all slides that both runs have.
struct ValueSummary {
  std::size_t slides = 0;  ///< that both have it of
  double first = 0.0;      ///< sums
  double second = 0.0;
  double largest = 0.0;  ///< difference, by its size
  std::string where;     ///< slide with that
};

/// A row for each figure of operators that both runs have: means over slides, and the largest difference of a slide.
std::string values_text(const Comparison& comparison, int width, const Style& style) {
  std::map<std::string, ValueSummary> summaries;
  for (const SlidePair& pair : comparison.slides) {
    for (const ValueDifference& value : pair.values) {
      ValueSummary& summary = summaries[value.name];
      if (std::isfinite(value.first) && std::isfinite(value.second)) {
        ++summary.slides;
        summary.first += value.first;
        summary.second += value.second;
      }
      const double difference = value.difference();
      if (std::abs(difference) <= std::abs(summary.largest)) continue;
      summary.largest = difference;
      summary.where = pair.first;
    }
  }
  if (summaries.empty()) return {};
  Table table({"<figure", "slides", "first", "second", "difference", "largest", "<of"});
  const auto path_width = static_cast<std::size_t>(std::clamp(width - 76, 16, 60));
  for (const auto& entry : summaries) {
    // Not as a binding: clang 14 can't use parts of one in a lambda.
    const ValueSummary& summary = entry.second;
    const auto mean = [&](double sum) { return summary.slides == 0 ? 0.0 : sum / static_cast<double>(summary.slides); };
    const auto shown = [&](const std::string& text) { return summary.slides == 0 ? "-" : text; };
    const bool known = std::isfinite(summary.largest);
    table.add({printable(entry.first), count_text(summary.slides), shown(fixed(mean(summary.first), 4)),
               shown(fixed(mean(summary.second), 4)), shown(signed_number(mean(summary.second - summary.first))),
               known ? shown(signed_number(summary.largest)) : "only in one",
               summary.where.empty() ? "" : shortened_path(summary.where, path_width, style)});
  }
  return table.text(style);
}

/// How many files are the same, and which aren't.
std::string files_text(const Comparison& comparison, const Style& style) {
  std::size_t files = 0;
  std::size_t equal = 0;
  std::size_t differing = 0;
  std::string text;
  for (const SlidePair& pair : comparison.slides) {
    files += pair.files;
    equal += pair.equal_files;
    for (const std::string& artifact : pair.artifacts) {
      if (differing++ < most_slides) {
        text += style.yellow("differs") + "  " + printable(pair.first) + ": " + printable(artifact) + "\n";
      }
    }
  }
  if (differing > most_slides) {
    text += "and " + std::to_string(differing - most_slides) + " more files that differ; --json has all\n";
  }
  if (files > 0) text += count_text(equal) + " of " + count_text(files) + " files that both made are equal\n";
  return text;
}

std::string only_text(const std::vector<std::string>& things, const char* which, const Style& style) {
  std::string text;
  for (const std::string& thing : things) text += (text.empty() ? "" : ", ") + printable(thing);
  return text.empty() ? "" : style.yellow(std::string("only in the ") + which) + "  " + text + "\n";
}

/// A line for each statistic that both runs have, of all slides together.
std::string statistics_text(const Comparison& comparison) {
  std::string text;
  for (const StatisticDifference& statistic : comparison.corpus_statistics) {
    text += (text.empty() ? "\n" : "") + statistic.name + " of the corpus: ";
    std::string parts;
    for (const NamedDifference& part : statistic.parts) {
      if (!part.value || *part.value == 0.0) continue;
      parts += (parts.empty() ? "" : ", ") + part.name + " " + signed_number(*part.value);
    }
    text += (statistic.equal ? "equal" : parts.empty() ? "no difference" : parts) + "\n";
  }
  return text;
}

std::string comparison_text(const Comparison& comparison, int width, const Style& style) {
  std::string text;
  for (const std::string& setting : comparison.settings)
    text += style.yellow("differs") + "  " + printable(setting) + "\n";
  text += only_text(comparison.only_first, "first", style) + only_text(comparison.only_second, "second", style);
  text += spectra_text(comparison, width, style);
  text += values_text(comparison, width, style);
  text += files_text(comparison, style);
  for (std::size_t i = 0; i < std::min(comparison.unmatched.size(), most_slides); ++i) {
    const Unmatched& slide = comparison.unmatched[i];
    text += style.red("not compared") + "  " + printable(slide.path) + ": " + slide.why + "\n";
  }
  if (comparison.unmatched.size() > most_slides) {
    text += "and " + std::to_string(comparison.unmatched.size() - most_slides) + " more that weren't compared\n";
  }
  text += statistics_text(comparison);
  const auto equal = std::ranges::count_if(comparison.slides, &SlidePair::equal);
  text += "\n" + std::to_string(comparison.slides.size()) + (comparison.slides.size() == 1 ? " slide" : " slides") +
          " compared (second less first), " + std::to_string(equal) + " equal to the bit, " +
          std::to_string(comparison.unmatched.size()) + " not compared\n";
  return text;
}

/// What is wrong with a tolerance; empty: nothing.
std::string tolerance_fault(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && end == text.c_str() + text.size();
  return whole && std::isfinite(number) && number >= 0 ? "" : "expected a number from 0, not '" + text + "'";
}

int compare(const CompareOptions& options) {
  const Comparison comparison = compare_runs(options.first, options.second);
  if (options.json) {
    std::cout << dump_json(comparison_json(comparison, options), 2) << '\n';
  } else {
    const Style style = Style::of(1);
    std::cout << comparison_text(comparison, style.terminal ? terminal_width(1) : 120, style);
  }
  if (options.tolerance < 0 || comparison.within(options.tolerance)) return exit_done;
  spdlog::error(
      "the runs differ by more than {} in a mean, standard deviation, percentile, Wasserstein distance or figure, have "
      "other files, or weren't compared as a whole",
      options.tolerance);
  return exit_some_failed;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "How the results of two runs differ, slide by slide and in all");
  command->add_option("first", options->first, "Folder with results")->type_name("OUT1")->required()->check(not_empty);
  command->add_option("second", options->second, "Folder with results")
      ->type_name("OUT2")
      ->required()
      ->check(not_empty);
  command
      ->add_option(
          "--tolerance", options->tolerance,
          "End with 1 when a slide, or all together, differ by more in a mean, standard deviation, percentile, "
          "Wasserstein distance or figure of an operator, when a file that was made of it is another, when "
          "only one run made something, or when a slide couldn't be compared")
      ->type_name("DB")
      ->check(tolerance_fault);
  command->add_flag("--json", options->json, "As JSON, all slides");
  command->footer(
      "Slides are the same when their path is, else when their file's name is. L1 is the sum of the differences of "
      "the\n"
      "histograms' shares (0 to 2); Wasserstein the mean distance that values must move to make one the other.\n"
      "Figures are those of operators: tissue share, stain vectors, shares of classes.\n\n"
      "Examples:\n"
      "  pipeline compare baseline optimised --tolerance 0.001\n"
      "  pipeline compare scanner-a scanner-b --json | jq .corpus");
  command->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace slidestream::cli
