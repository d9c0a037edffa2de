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

std::string size_text(const SlideResult& slide) {
  return std::to_string(slide.width) + " x " + std::to_string(slide.height);
}

std::string files_text(std::uint64_t files) { return count_text(files) + (files == 1 ? " file" : " files"); }

/// A row a slide: what the spectrum found of it, or else the files that were made.
class SlideTable {
 public:
  SlideTable(const Config& config, int width, const Style& style)
      : config_(config), style_(style), spectrum_(config.operators.runs("spectrum")), table_(titles()) {
    // What the other columns usually take.
    path_width_ = static_cast<std::size_t>(std::clamp(width - (spectrum_ ? 66 : 46), 16, 60));
  }

  void add(const SlideResult& slide) {
    std::vector<std::string> row = {shortened_path(slide.path, path_width_, style_)};
    if (!slide.done) {
      row.emplace_back("failed");
    } else if (spectrum_) {
      const auto& [low, high] = config_.analysis.range;
      row.push_back(count_text(slide.sums.windows));
      row.push_back(fixed(slide.sums.mean(), 4));
      row.push_back(fixed(slide.sums.standard_deviation(), 4));
      for (const double p : {0.05, 0.5, 0.95}) row.push_back(fixed(slide.sums.percentile(p, low, high), 2));
      row.push_back(seconds_text(slide.seconds));
    } else {
      row.push_back(size_text(slide));
      row.push_back(count_text(slide.artifacts.size()));
      row.push_back(bytes_text(static_cast<double>(bytes_of(slide.artifacts))));
      row.push_back(seconds_text(slide.seconds));
    }
    row.resize(titles().size());
    table_.add(std::move(row));
  }

  std::string text() const { return table_.text(style_); }

 private:
  std::vector<std::string> titles() const {
    if (!spectrum_) return {"<slide", "size", "files", "bytes", "time"};
    const bool linear = config_.analysis.value == ValueKind::linear;
    return {"<slide", "windows", linear ? "mean |F|" : "mean dB", linear ? "std |F|" : "std dB", "5 %", "50 %",
            "95 %",   "time"};
  }

  const Config& config_;
  const Style& style_;
  bool spectrum_;
  Table table_;
  std::size_t path_width_ = 0;
};

}  // namespace

std::string summary_text(const Config& config, const RunResult& result, const Corpus& corpus, std::size_t skipped,
                         int width, const Style& style) {
  const bool spectrum = config.operators.runs("spectrum");
  const char* unit = config.analysis.value == ValueKind::linear ? "" : " dB";
  std::string text;
  if (!result.slides.empty()) {
    SlideTable table(config, width, style);
    const std::size_t shown = std::min(result.slides.size(), most_slides);
    for (std::size_t i = 0; i < shown; ++i) table.add(result.slides[i]);
    text += table.text();
    if (const std::size_t all = corpus.done + corpus.failed; shown < all) {
      text += "and " + std::to_string(all - shown) + " more in slides.csv\n";
    }
    text += "\n";
  }
  text +=
      style.bold("corpus") + "   " + std::to_string(corpus.done) + (corpus.done == 1 ? " slide done" : " slides done");
  if (skipped > 0) text += " (" + std::to_string(skipped) + " before)";
  if (corpus.failed > 0) text += ", " + style.red(std::to_string(corpus.failed) + " failed");
  if (spectrum) {
    text += ", " + count_text(corpus.sums.windows) + " windows";
    if (corpus.done > 0) text += ", " + statistics_text(corpus.sums, unit, style);
  }
  text += ", " + seconds_text(result.seconds) + "\n";
  if (corpus.gpu_fallback_tiles > 0) {
    text += style.bold("tiles") + "    " + count_text(corpus.gpu_fallback_tiles) +
            " were decoded by the CPU, for the GPU didn't vouch for them\n";
  }
  if (corpus.artifacts > 0) {
    text += style.bold("images") + "   " + files_text(corpus.artifacts) + ", " +
            bytes_text(static_cast<double>(corpus.artifact_bytes)) +
            (corpus.artifacts_elsewhere ? ", where artifacts.csv says"
                                        : ", in " + printable(config.output.dir) + "/images") +
            "\n";
  }
  text += style.bold("results") + "  " + printable(config.output.dir) + ": slides.csv, corpus.json";
  if (spectrum) text += ", histograms.npy";
  if (corpus.artifacts > 0) text += ", artifacts.csv";
  if (corpus.failed > 0) text += ", failures.csv";
  if (!corpus.maps.empty()) text += ", maps/ (" + std::to_string(corpus.maps.size()) + ")";
  return text + "\n";
}

std::string file_text(const SlideResult& slide) {
  std::string text;
  for (const Artifact& artifact : slide.artifacts) {
    text += printable(artifact.file) + ": " + size_text(slide) + " pixels, " +
            bytes_text(static_cast<double>(artifact.bytes)) + ", in " + seconds_text(slide.seconds) + "\n";
  }
  return text;
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
