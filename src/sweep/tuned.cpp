#include "sweep/tuned.hpp"

#include <algorithm>
#include <cstdio>

#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "sweep/machine_facts.hpp"

namespace slidestream {

namespace {

std::string rounded(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

std::string runs_text(std::size_t runs) { return std::to_string(runs) + (runs == 1 ? " run" : " runs"); }

}  // namespace

std::string verdict_text(const Verdict& verdict) {
  const TimeSummary& winner = verdict.times.winner;
  const TimeSummary& base = verdict.times.base;
  if (verdict.winner == verdict.base) {
    return "the base itself is the fastest: median " + rounded(winner.median, 4) + " s of " + runs_text(winner.runs);
  }
  if (base.runs == 0) return "median " + rounded(winner.median, 4) + " s; the base wasn't measured: nothing to compare";
  const std::string medians =
      "median " + rounded(winner.median, 4) + " s against " + rounded(base.median, 4) + " s of the base";
  const std::string test = runs_text(winner.runs) + " against " + std::to_string(base.runs) +
                           (verdict.confirmed ? ", taken after the choice" : ", those that it was chosen by");
  if (!verdict.times.significant) {
    return "no significant difference: " + medians + " (" + test +
           (verdict.confirmed ? "; rank-sum test, one-sided p = " + rounded(verdict.times.probability, 3) : "") + ")";
  }
  return medians + ", " + rounded((1 - winner.median / base.median) * 100, 1) + " % less time (" + test +
         "; rank-sum test, one-sided p = " + rounded(verdict.times.probability, 3) + ")";
}

std::string tuned_toml(const Sweep& sweep, const Verdict& verdict) {
  const CombinationState& winner = sweep.combinations()[verdict.winner];
  const SweepOptions& options = sweep.options();
  std::string swept;
  for (const SweepAxis& axis : options.axes) swept += (swept.empty() ? "" : ", ") + axis.key;
  const std::string where = one_line(processor_name() + (winner.gpu.empty() ? "" : ", " + winner.gpu));
  const Sweep::Choice choice = sweep.choice();
  const std::string measured = choice.is_whole() ? "" : std::to_string(choice.measured) + " measured of ";
  std::string text =
      wrapped("The fastest of " + measured + std::to_string(sweep.combinations().size()) + " combinations of " +
                  (swept.empty() ? "nothing" : swept) + ": " + winner.combination.name + ".",
              "# ", 100);
  text += wrapped("Measured " + time_text() + " on " + where + ", " + std::to_string(options.slides.size()) +
                      (options.slides.size() == 1 ? " slide" : " slides") + ", page cache " +
                      (options.cache == CachePolicy::warm ? "warm" : "cold") + ".",
                  "# ", 100);
  const std::string verdict_line = verdict_text(verdict);
  text += wrapped(verdict_line + ".", "# ", 100);
  const Config defaults;
  std::string_view section;
  for (const ConfigKey* key : sweep_keys()) {
    const bool is_swept =
        std::ranges::any_of(options.axes, [key](const auto& axis) { return axis.key == key->full_name(); });
    const std::string value = to_toml_value(key->get(winner.combination.config));
    if (!is_swept && value == to_toml_value(key->get(defaults))) continue;
    if (key->section != section) {
      section = key->section;
      text += "\n[" + std::string(section) + "]\n";
    }
    text += std::string(key->name) + " = " + value + "\n";
  }
  return text;
}

}  // namespace slidestream
