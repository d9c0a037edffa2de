#include "cli/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "cli/table.hpp"
#include "config/printable.hpp"
#include "output/views.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::cli {

namespace {

constexpr std::size_t most_listed_slides = 20;

std::string percent(double share) { return fixed(share * 100, 1) + " %"; }

std::string statistics_text(const SpectrumSums& sums, const char* unit, const Style& style) {
  if (sums.values == 0) return "no value";
  return fixed(sums.mean(), 4) + (style.unicode ? " \u00b1 " : " +- ") + fixed(sums.standard_deviation(), 4) + unit;
}

std::string size_text(const SlideResult& slide) {
  std::string text = std::to_string(slide.width) + " x " + std::to_string(slide.height);
  const auto depth = std::ranges::find(slide.values, std::string(volume::depth_figure), &NamedValue::name);
  if (depth != slide.values.end()) text += " x " + std::to_string(static_cast<std::int64_t>(depth->value));
  return text;
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
      row.push_back(count_text(slide.sums.windows));
      const auto known = [&slide](double value, int digits) {
        return slide.sums.values == 0 || std::isnan(value) ? "-" : fixed(value, digits);
      };
      row.push_back(known(slide.sums.mean(), 4));
      row.push_back(known(slide.sums.standard_deviation(), 4));
      for (const double p : {0.05, 0.5, 0.95}) row.push_back(known(slide.sums.percentile(p, config_.analysis), 2));
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
    if (!spectrum_) return {"<" + thing_of(config_), "size", "files", "bytes", "time"};
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

namespace {

std::string slides_text(const Config& config, const RunResult& result, const Corpus& corpus, int width,
                        const Style& style) {
  if (result.slides.empty()) return {};
  SlideTable table(config, width, style);
  const std::size_t shown = std::min(result.slides.size(), most_listed_slides);
  for (std::size_t i = 0; i < shown; ++i) table.add(result.slides[i]);
  std::string text = table.text();
  if (const std::size_t all = corpus.done + corpus.failed; shown < all) {
    text += "and " + std::to_string(all - shown) + " more in slides.csv\n";
  }
  return text + "\n";
}

/// Slides that the run, or the merge, is about.
std::size_t all_slides(const Corpus& corpus, const Unfinished& unfinished) {
  return corpus.done + corpus.failed + unfinished.slides;
}

std::string made_text(const Config& config, const Corpus& corpus, std::size_t skipped, const Style& style,
                      const Unfinished& unfinished) {
  const std::string thing = thing_of(config);
  std::string text = unfinished.slides == 0
                         ? count_of(corpus.done, thing)
                         : count_text(corpus.done) + " of " + count_of(all_slides(corpus, unfinished), thing);
  if (skipped > 0) text += " (" + count_text(skipped) + " before)";
  if (config.operators.runs("spectrum")) {
    text += ", " + count_text(corpus.sums.windows) + " windows";
    const bool linear = config.analysis.value == ValueKind::linear;
    if (corpus.done > 0) text += " of " + statistics_text(corpus.sums, linear ? "" : " dB", style);
  }
  if (corpus.artifacts > 0) {
    const std::uint64_t lost = std::min(unfinished.files, corpus.artifacts);
    const std::uint64_t bytes = corpus.artifact_bytes - std::min(unfinished.bytes, corpus.artifact_bytes);
    text += ", " + (lost > 0 ? count_text(corpus.artifacts - lost) + " of " : "") + files_text(corpus.artifacts) +
            (lost > 0 ? ", " : " of ") + bytes_text(static_cast<double>(bytes));
  }
  return text;
}

std::string places_text(const Config& config, const Corpus& corpus) {
  std::string text = printable(config.output.dir) + ": slides.csv, corpus.json";
  if (config.operators.runs("spectrum")) text += ", histograms.npy";
  if (corpus.artifacts > 0) {
    for (const std::string& folder : corpus.artifact_folders) text += ", " + folder + "/";
    text += corpus.artifacts_elsewhere ? ", files where artifacts.csv says" : ", artifacts.csv";
  }
  if (writes_labels(config)) text += ", labels.csv";
  if (corpus.failed + corpus.incomplete > 0) text += ", failures.csv";
  if (!corpus.maps.empty()) text += ", maps/ (" + std::to_string(corpus.maps.size()) + ")";
  return text;
}

std::string speed_text(const Config& config, const RunResult& result, const Corpus& corpus, std::size_t skipped) {
  std::string text = seconds_text(result.seconds);
  const std::size_t ended = corpus.done + corpus.failed - std::min(skipped, corpus.done);
  if (result.seconds <= 0 || ended == 0) return text;
  text += ", " + seconds_text(result.seconds / static_cast<double>(ended)) + " per " + thing_of(config);
  const auto read = std::ranges::find(result.stages, "read", &StageReport::name);
  if (read != result.stages.end() && read->bytes > 0) {
    text += ", " + bytes_text(static_cast<double>(read->bytes) / result.seconds) + "/s read";
  }
  return text;
}

/// The most frequent first.
std::string causes_text(const Corpus& corpus, const Style& style) {
  constexpr std::size_t most_causes = 10;
  std::vector<const Corpus::Cause*> causes;
  for (const auto& [key, cause] : corpus.causes) causes.push_back(&cause);
  std::ranges::stable_sort(causes, std::ranges::greater{}, &Corpus::Cause::slides);
  std::string text;
  for (std::size_t i = 0; i < std::min(causes.size(), most_causes); ++i) {
    const Corpus::Cause& cause = *causes[i];
    text += "         " + style.red(count_text(cause.slides)) + " x " + printable(cause.text) +
            (cause.slides > 1 ? ", first " : ": ") + printable(cause.first) + "\n";
  }
  if (causes.size() > most_causes) {
    text += "         and " + std::to_string(causes.size() - most_causes) + " other causes in failures.csv\n";
  }
  return text;
}

std::string failed_text(const Corpus& corpus, const Style& style) {
  if (corpus.failed + corpus.incomplete == 0) return "none\n";
  std::string text =
      style.red(count_text(corpus.failed + corpus.incomplete)) + " of " + count_text(corpus.done + corpus.failed);
  if (corpus.incomplete > 0) text += " (" + count_text(corpus.incomplete) + " in one operator alone)";
  return text + "\n" + causes_text(corpus, style);
}

std::string unfinished_text(const Config& config, const Corpus& corpus, const Unfinished& unfinished,
                            const Style& style) {
  if (unfinished.slides == 0) return {};
  constexpr std::size_t column = 9;
  const std::string blanks(column - std::min(column - 1, unfinished.name.size()), ' ');
  return style.bold(unfinished.name) + blanks + style.red(count_text(unfinished.slides)) + " of " +
         count_of(all_slides(corpus, unfinished), thing_of(config)) + unfinished.where + "\n";
}

}  // namespace

std::string thing_of(const Config& config) { return config.operators.runs("volume") ? "volume" : "slide"; }

std::string summary_text(const Config& config, const RunResult& result, const Corpus& corpus, std::size_t skipped,
                         const Style& style, const Unfinished& unfinished) {
  return style.bold("done") + "     " + made_text(config, corpus, skipped, style, unfinished) + "\n" +
         style.bold("where") + "    " + places_text(config, corpus) + "\n" + style.bold("speed") + "    " +
         speed_text(config, result, corpus, skipped) + "\n" + style.bold("failed") + "   " +
         failed_text(corpus, style) + unfinished_text(config, corpus, unfinished, style);
}

std::string statistics_of_run_text(const Config& config, const RunResult& result, const Corpus& corpus, int width,
                                   const Style& style) {
  std::string text = slides_text(config, result, corpus, width, style);
  if (corpus.gpu_fallback_tiles > 0) {
    text +=
        count_text(corpus.gpu_fallback_tiles) + " tiles were decoded by the CPU, for the GPU didn't vouch for them\n\n";
  }
  if (!result.stages.empty()) text += stages_text(result, style) + overlap_text(result);
  return text;
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
