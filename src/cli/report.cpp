#include "cli/report.hpp"

#include <algorithm>

#include "cli/table.hpp"
#include "config/printable.hpp"

namespace slidestream::cli {

namespace {

constexpr std::size_t most_slides = 20;

std::string percent(double share) { return fixed(share * 100, 1) + " %"; }

std::string statistics_text(const SpectrumSums& sums, const char* unit, const Style& style) {
  return fixed(sums.mean(), 4) + (style.unicode ? " \u00b1 " : " +- ") + fixed(sums.standard_deviation(), 4) + unit;
}

void add_slide(Table& table, const Config& config, const SlideResult& slide, std::size_t path_width,
               const Style& style) {
  const std::string path = shortened_path(slide.path, path_width, style);
  if (!slide.done) {
    table.add({path, "failed", "", "", "", "", "", ""});
    return;
  }
  const auto& [low, high] = config.analysis.range;
  const auto percentile = [&, l = low, h = high](double p) { return fixed(slide.sums.percentile(p, l, h), 2); };
  table.add({path, count_text(slide.sums.windows), fixed(slide.sums.mean(), 4),
             fixed(slide.sums.standard_deviation(), 4), percentile(0.05), percentile(0.5), percentile(0.95),
             seconds_text(slide.seconds)});
}

}  // namespace

std::string summary_text(const Config& config, const RunResult& result, const Corpus& corpus, std::size_t skipped,
                         int width, const Style& style) {
  const bool linear = config.analysis.value == ValueKind::linear;
  const char* unit = linear ? "" : " dB";
  std::string text;
  if (!result.slides.empty()) {
    Table table({"<slide", "windows", linear ? "mean |F|" : "mean dB", linear ? "std |F|" : "std dB", "5 %", "50 %",
                 "95 %", "time"});
    // What the other columns usually take.
    const auto path_width = static_cast<std::size_t>(std::clamp(width - 66, 16, 60));
    const std::size_t shown = std::min(result.slides.size(), most_slides);
    for (std::size_t i = 0; i < shown; ++i) add_slide(table, config, result.slides[i], path_width, style);
    text += table.text(style);
    if (const std::size_t all = corpus.done + corpus.failed; shown < all) {
      text += "and " + std::to_string(all - shown) + " more in slides.csv\n";
    }
    text += "\n";
  }
  text +=
      style.bold("corpus") + "   " + std::to_string(corpus.done) + (corpus.done == 1 ? " slide done" : " slides done");
  if (skipped > 0) text += " (" + std::to_string(skipped) + " before)";
  if (corpus.failed > 0) text += ", " + style.red(std::to_string(corpus.failed) + " failed");
  text += ", " + count_text(corpus.sums.windows) + " windows";
  if (corpus.done > 0) text += ", " + statistics_text(corpus.sums, unit, style);
  text += ", " + seconds_text(result.seconds) + "\n";
  if (corpus.gpu_fallback_tiles > 0) {
    text += style.bold("tiles") + "    " + count_text(corpus.gpu_fallback_tiles) +
            " were decoded by the CPU, for the GPU didn't vouch for them\n";
  }
  text += style.bold("results") + "  " + printable(config.output.dir) + ": slides.csv, corpus.json, histograms.npy";
  if (corpus.failed > 0) text += ", failures.csv";
  if (!corpus.maps.empty()) text += ", maps/ (" + std::to_string(corpus.maps.size()) + ")";
  return text + "\n";
}

std::string stages_text(const RunResult& result, const Style& style) {
  Table table({"<stage", "busy", "wait", "items", "bytes", "rate while busy"});
  for (const StageReport& stage : result.stages) {
    const double there = stage.busy_seconds + stage.wait_seconds;
    const auto bytes = static_cast<double>(stage.bytes);
    const double thread_seconds = result.seconds * std::max(stage.parallel, 1);
    table.add({stage.name, percent(thread_seconds > 0 ? stage.busy_seconds / thread_seconds : 0),
               percent(there > 0 ? stage.wait_seconds / there : 0), count_text(stage.items), bytes_text(bytes),
               stage.busy_seconds > 0 && stage.bytes > 0 ? bytes_text(bytes / stage.busy_seconds) + "/s" : "-"});
  }
  return table.text(style);
}

std::string overlap_text(const RunResult& result) {
  if (!result.overlap) return "";
  const Overlap& overlap = *result.overlap;
  const DeviceOverlap& gap = overlap.longest_gap();
  const std::optional<double> hidden = overlap.copy_hidden_share();
  std::string text = "GPU busy          " + percent(overlap.busy_share()) + "\n";
  text += "copies hidden     " +
          (hidden ? percent(*hidden) + " behind kernels, " + percent(*overlap.copy_covered_share()) + " behind any work"
                  : "no copies") +
          "\n";
  text += "longest idle gap  " + fixed(gap.longest_gap_seconds * 1e3, 2) + " ms";
  if (gap.longest_gap_seconds > 0) {
    text += ", GPU " + std::to_string(gap.device) + " at " + fixed(gap.longest_gap_start, 3) + " s, waited for " +
            (gap.waited_for.empty() ? "nothing that was recorded" : gap.waited_for);
  }
  return text + "\n";
}

}  // namespace slidestream::cli
