#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <new>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "config/operator_files.hpp"
#include "config/read_file.hpp"
#include "output/atomic_file.hpp"
#include "output/corpus_json.hpp"
#include "output/folders.hpp"
#include "output/map_file.hpp"
#include "output/npy.hpp"
#include "output/slides_csv.hpp"
#include "output/views.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

constexpr const char* slides_name = "slides.csv";
constexpr const char* failures_name = "failures.csv";
constexpr const char* artifacts_name = "artifacts.csv";
constexpr const char* corpus_name = "corpus.json";
constexpr const char* histograms_name = "histograms.npy";

[[noreturn]] void fail(const fs::path& path, const std::error_code& code) {
  throw OutputError(path.string() + ": " + reason_of(code.value(), path));
}

void write_histograms(AtomicFile& file, const Config& config, const Corpus& corpus, SlideSource& slides) {
  const auto bins = static_cast<std::size_t>(config.analysis.bins);
  file.write(npy_header("i8", {corpus.done + corpus.failed, bins}));
  std::vector<std::uint64_t> row;
  slides.for_each([&](const SlideResult& slide) {
    row.assign(bins, 0);
    if (slide.done) std::copy_n(slide.sums.histogram.begin(), std::min(bins, slide.sums.histogram.size()), row.begin());
    file.write(std::as_bytes(std::span(row)));
  });
}

/// One series of a statistic, a row a slide. A failed slide's is one of no windows.
void write_series(AtomicFile& file, const Config& config, const Corpus& corpus, SlideSource& slides,
                  const PlacedStatistic& placed, std::size_t number) {
  const auto series_of = [&](const SpectrumSums& sums) {
    return findings_of(placed, config.analysis, sums).series.at(number);
  };
  const Series empty = series_of({});
  file.write(npy_header(empty.is_counts() ? "i8" : "f8", {corpus.done + corpus.failed, empty.size()}));
  slides.for_each([&](const SlideResult& slide) {
    const Series series = slide.done ? series_of(slide.sums) : empty;
    file.write(series.is_counts() ? std::as_bytes(std::span(series.counts)) : std::as_bytes(std::span(series.values)));
  });
}

/// A file as a text; empty where it can't be read.
std::string text_of(const fs::path& path) {
  constexpr std::size_t largest = std::size_t{256} << 20;
  try {
    return read_file(path, largest, FileOrigin::own);
  } catch (const ConfigError&) {
    return {};
  }
}

/// A text that grows slide by slide and is written in pieces.
class TextWriter {
 public:
  TextWriter(AtomicFile& file, std::string head) : file_(file), text_(std::move(head)) {}

  void add(const std::string& text) {
    text_ += text;
    if (text_.size() >= piece) end();
  }
  void end() {
    file_.write(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;
  AtomicFile& file_;
  std::string text_;
};

/// The slides of a finished run.
class RunSlides final : public SlideSource {
 public:
  explicit RunSlides(const RunResult& run) : run_(run) {}
  void for_each(const std::function<void(const SlideResult&)>& visit) override {
    for (const SlideResult& slide : run_.slides) visit(slide);
  }

 private:
  const RunResult& run_;
};

}  // namespace

void prepare_output(const Config& config) {
  const fs::path folder = config.output.dir;
  make_folder(folder);
  if (config.output.maps != MapFormat::none) make_folder(folder / "maps");
  std::vector<std::string> names = statistic_files();
  names.insert(names.end(), {slides_name, failures_name, artifacts_name, corpus_name, histograms_name});
  for (const std::string& name : names) {
    std::error_code code;
    // A table takes the place of a link, whatever that leads to.
    const fs::file_status there = fs::symlink_status(folder / name, code);
    if (fs::is_symlink(there)) continue;
    if (fs::is_directory(there)) fail(folder / name, std::make_error_code(std::errc::is_a_directory));
    if (!code && !fs::is_regular_file(there)) throw OutputError((folder / name).string() + ": isn't a regular file");
  }
  // Only making a file shows whether one can be made. It goes away again.
  const AtomicFile probe(folder / slides_name, LinkTarget::anything);
}

namespace {

bool writes_into_images(const Config& config) {
  return std::ranges::any_of(config.operators.run,
                             [&](const std::string& name) { return surely_writes_into_images(name, config.model); });
}

/// Why no file can be made in a folder that may not be there yet; empty: nothing is known.
std::string fault_of_folder(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(fs::symlink_status(folder, code))) return {};
  try {
    make_folder(folder);
  } catch (const OutputError& error) {
    return error.what();
  }
  const fs::path file = folder / "file";
  return denied_at(file).empty() ? std::string() : folder.string() + ": " + reason_of(EACCES, file);
}

}  // namespace

std::string fault_of_folders(const Config& config) {
  const fs::path folder = config.output.dir;
  std::string fault;
  if (config.output.maps != MapFormat::none) fault = fault_of_folder(folder / "maps");
  if (fault.empty() && writes_into_images(config)) fault = fault_of_folder(folder / "images");
  return fault;
}

std::uint64_t bytes_of(const std::vector<Artifact>& artifacts) {
  std::uint64_t bytes = 0;
  for (const Artifact& artifact : artifacts) bytes += artifact.bytes;
  return bytes;
}

namespace {

/// What a failure says pipeline.memory_mib should be; 0: nothing.
std::uint64_t advised_mib(std::string_view text) {
  constexpr std::string_view before = "pipeline.memory_mib to ";
  const std::size_t found = text.find(before);
  std::uint64_t advised = 0;
  if (found != std::string_view::npos) {
    std::from_chars(text.data() + found + before.size(), text.data() + text.size(), advised);
  }
  return advised;
}

void add_cause(std::map<std::string, Corpus::Cause>& causes, const SlideResult& slide) {
  constexpr std::size_t most_causes = 200;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string key;
  for (const char c : slide.error) {
    if (!is_digit(c)) {
      key += c;
    } else if (key.empty() || key.back() != '0') {
      key += '0';
    }
  }
  const bool has_room = causes.size() < most_causes || causes.contains(key);
  Corpus::Cause& cause = causes[has_room ? key : ""];
  // Of several the one that asks for most memory stands: with that all of them go.
  const bool asks_for_more = has_room && advised_mib(slide.error) > advised_mib(cause.text);
  if (cause.slides++ > 0 && !asks_for_more) return;
  cause.text = has_room ? slide.error : "other causes";
  cause.first = slide.path;
}

}  // namespace

namespace {

/// Of all operators' figures of a name.
double largest_figure(const SlideResult& slide, std::string_view name) {
  double largest = 0.0;
  for (const NamedValue& value : slide.values) {
    if (value.name.ends_with(name)) largest = std::max(largest, value.value);
  }
  return largest;
}

}  // namespace

double clamped_share(const SlideResult& slide) { return largest_figure(slide, ".clamped"); }

double saturated_share(const SlideResult& slide) {
  constexpr double worth_a_line = 0.01;
  const double share = largest_figure(slide, ".saturated");
  return share < worth_a_line ? 0.0 : share;
}

void Corpus::add(const SlideResult& slide) {
  if (!slide.done) {
    ++failed;
    add_cause(causes, slide);
    return;
  }
  ++done;
  if (!slide.complete()) {
    ++incomplete;
    add_cause(causes, slide);
  }
  missing_tiles += slide.missing_tiles;
  bad_tiles += slide.bad_tiles;
  file_bytes += slide.file_bytes;
  gpu_fallback_tiles += slide.gpu_fallback_tiles;
  artifacts += slide.artifacts.size();
  artifact_bytes += bytes_of(slide.artifacts);
  for (const Artifact& artifact : slide.artifacts) {
    const std::string folder = artifact.file.substr(0, artifact.file.find('/'));
    if (folder == "images" || folder == "features") {
      artifact_folders.insert(folder);
    } else {
      artifacts_elsewhere = true;
    }
  }
  try {
    sums += slide.sums;
  } catch (const std::bad_alloc&) {
    throw OutputError(slide.path + ": can't be added to the other slides: out of memory");
  } catch (const std::exception& error) {
    throw OutputError(slide.path + ": can't be added to the other slides: " + error.what());
  }
  if (const double share = clamped_share(slide); share > 0.0) {
    ++clamped_slides;
    most_clamped = std::max(most_clamped, share);
  }
  if (const double share = saturated_share(slide); share > 0.0) {
    ++saturated_slides;
    most_saturated = std::max(most_saturated, share);
  }
  for (const NamedValue& value : slide.values) {
    if (known_values.insert(value.name).second) value_names.push_back(value.name);
  }
  if (!slide.map_file.empty()) maps.emplace_back(slide.path, slide.map_file);
}

void write_views(const Config& config, const RunResult& run, SlideSource& slides, Corpus& corpus,
                 const std::function<void()>& before_each) {
  slides.for_each([&](const SlideResult& slide) { corpus.add(slide); });
  corpus.deciding = slides.deciding();
  const fs::path folder = config.output.dir;
  std::string first_failure;
  const auto check = [&before_each] {
    if (before_each) before_each();
  };
  const auto write = [&](const std::string& name, const auto& fill) {
    check();
    try {
      AtomicFile file(folder / name, LinkTarget::anything);
      fill(file);
      check();
      file.commit();
    } catch (const OutputError& error) {
      check();
      if (first_failure.empty()) first_failure = error.what();
      // What an earlier run left under this name belongs to other slides than its new neighbours.
      std::error_code ignored;
      if (fs::is_regular_file(folder / name, ignored)) fs::remove(folder / name, ignored);
    }
  };
  // The smallest and most wanted first: what a full disk still takes is kept.
  write(slides_name, [&](AtomicFile& file) {
    TextWriter text(file, slides_csv_header(config, corpus.value_names));
    slides.for_each([&](const SlideResult& slide) { text.add(slides_csv_record(config, slide, corpus.value_names)); });
    text.end();
  });
  write(failures_name, [&](AtomicFile& file) {
    TextWriter text(file, failures_csv_header());
    slides.for_each([&](const SlideResult& slide) {
      if (!slide.complete()) text.add(failures_csv_record(slide, config.output.csv));
    });
    text.end();
  });
  if (corpus.artifacts > 0) {
    write(artifacts_name, [&](AtomicFile& file) {
      TextWriter text(file, artifacts_csv_header());
      slides.for_each([&](const SlideResult& slide) { text.add(artifacts_csv_records(slide, config.output.csv)); });
      text.end();
    });
  } else {
    std::error_code ignored;
    if (fs::is_regular_file(folder / artifacts_name, ignored)) fs::remove(folder / artifacts_name, ignored);
  }
  write(corpus_name, [&](AtomicFile& file) {
    // A start that had nothing to do leaves what is said of the last that had.
    const bool idle = run.backend.empty() && run.stages.empty();
    file.write(corpus_json(config, run, corpus, idle ? text_of(folder / corpus_name) : std::string()));
  });
  if (config.operators.runs("spectrum")) {
    write(histograms_name, [&](AtomicFile& file) { write_histograms(file, config, corpus, slides); });
    for (const PlacedStatistic& placed : placed_statistics(config.analysis)) {
      const std::vector<Series> series = findings_of(placed, config.analysis, {}).series;
      for (std::size_t i = 0; i < series.size(); ++i) {
        write(series[i].name + ".npy",
              [&](AtomicFile& file) { write_series(file, config, corpus, slides, placed, i); });
      }
    }
  }
  if (!first_failure.empty()) throw OutputError(first_failure);
}

bool writes_labels(const Config& config) {
  return config.operators.runs("volume") && config.volume.fusion != VolumeFusion::blend;
}

void write_results(const Config& config, const RunResult& result) {
  RunSlides slides(result);
  Corpus corpus(static_cast<std::size_t>(config.analysis.bins));
  make_folder(config.output.dir);
  write_views(config, result, slides, corpus);
}

bool is_whole_map(const Config& config, const WindowMap& map, const fs::path& file) {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return false;
  if (config.output.maps == MapFormat::tiff) return is_whole_tiff(file, map);
  const auto rows = static_cast<std::uint64_t>(map.rows);
  const auto columns = static_cast<std::uint64_t>(map.columns);
  const std::uint64_t bytes = npy_header("f4", {rows, columns, 2}).size() + rows * columns * 2 * sizeof(float);
  return fs::file_size(file, code) == bytes;
}

std::vector<std::byte> map_bytes(const Config& config, const SlideResult& slide) {
  const WindowMap& map = slide.map;
  if (config.output.maps == MapFormat::tiff) {
    const auto step = [&](const std::optional<double>& mpp) {
      return mpp ? std::optional<double>(*mpp * config.analysis.stride) : std::nullopt;
    };
    const auto down = std::ranges::find(slide.values, "mpp_y", &NamedValue::name);
    return tiff_bytes(map, step(slide.mpp),
                      down == slide.values.end() ? std::nullopt : step(std::optional<double>(down->value)));
  }
  const std::string header =
      npy_header("f4", {static_cast<std::uint64_t>(map.rows), static_cast<std::uint64_t>(map.columns), 2});
  const auto head = std::as_bytes(std::span(header));
  const auto values = std::as_bytes(std::span(map.values));
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

std::string write_map(const Config& config, const SlideResult& slide, const std::string& name) {
  const fs::path folder = fs::path(config.output.dir) / "maps";
  make_folder(folder);
  const fs::path path = folder / (name + (config.output.maps == MapFormat::tiff ? ".tif" : ".npy"));
  AtomicFile file(path);
  file.write(map_bytes(config, slide));
  file.commit();
  return path.string();
}

}  // namespace slidestream
