#include "report/report.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/bounded_json.hpp"
#include "config/dump_json.hpp"
#include "config/keys.hpp"
#include "output/atomic_file.hpp"
#include "output/corpus_json.hpp"
#include "output/statistics_json.hpp"
#include "report/cohorts.hpp"
#include "report/distribution.hpp"
#include "report/made.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"
#include "report/run_reader.hpp"
#include "report/sweep_table.hpp"
#include "report/text_file.hpp"
#include "report/timeline.hpp"

namespace slidestream::report {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Of the charts' axis.
constexpr std::size_t most_steps = 160;
constexpr std::size_t timeline_steps = 600;
/// More than anybody can tell apart; a column with more values isn't one of cohorts.
constexpr std::size_t most_cohorts = 40;

struct Run {
  std::string folder;
  std::unique_ptr<RunReader> reader;
  bool spectrum = false;  ///< whether it analysed spectra
  SpectrumSums sums;
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t unfinished = 0;
  std::uint64_t artifacts = 0;  ///< files that were made
  std::uint64_t artifact_bytes = 0;
  double fence = 0.0;
};

struct Cohort {
  SpectrumSums sums;
  std::size_t slides = 0;
};

/// As many digits as a reader can use.
Json rounded(double value, double digits = 1e4) {
  return std::isfinite(value) ? Json(std::round(value * digits) / digits) : Json();
}

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  char text[64] = "";
  if (localtime_r(&now, &local) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

/// Numbers from 0 to the largest as 16 bits each, the lower byte first, and that largest.
Json packed(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, value);
  std::string bytes;
  for (const double value : values) {
    const auto level = static_cast<unsigned>(most > 0 ? std::lround(value / most * 65535.0) : 0);
    bytes += static_cast<char>(level & 255);
    bytes += static_cast<char>(level >> 8);
  }
  return Json::array({most, base64(bytes)});
}

/// What corpus.json says of how the run went. The run may not have written it yet, and anybody may have changed it.
Json course_of_run(const std::string& folder) {
  try {
    return members_of(read_text_file((fs::path(folder) / "corpus.json").string(), FileOrigin::own),
                      {"versions", "backend", "threads", "seconds", "interrupted", "stages", "overlap"});
  } catch (const ConfigError&) {
    return Json::object();
  }
}

Json statistics_json(const SpectrumSums& sums, const Config& config, const Axis& axis) {
  Json percentiles = Json::object();
  for (const int p : {1, 5, 25, 50, 75, 95, 99}) {
    percentiles[std::to_string(p)] = rounded(sums.percentile(p / 100.0, config.analysis));
  }
  return {{"windows", sums.windows},
          {"values", sums.values},
          {"clipped", sums.clipped},
          {"mean", rounded(sums.mean())},
          {"std", rounded(sums.standard_deviation())},
          {"percentiles", std::move(percentiles)},
          {"shares", packed(shares(sums.histogram, axis))}};
}

/// The other statistics of a run, as `statistics_json`; counts become shares in % per unit of the axis, over as many
/// places as a chart needs.
Json further_json(const AnalysisConfig& analysis, const SpectrumSums& sums) {
  Json all = slidestream::statistics_json(analysis, sums);
  for (auto& [name, statistic] : all.items()) {
    for (auto& [series_name, series] : statistic["series"].items()) {
      if (!series.contains("counts")) continue;
      const auto counts = series["counts"].get<std::vector<std::uint64_t>>();
      const Axis axis = fitting_axis(counts, most_steps);
      const double first = series["first"];
      const double step = series["step"];
      const double wide = step * static_cast<double>(axis.bins_a_step);
      Json values = Json::array();
      for (const double share : shares(counts, axis)) values.push_back(rounded(share / wide * 100.0));
      series["values"] = std::move(values);
      series["first"] = first + step * static_cast<double>(axis.first) + wide / 2.0;
      series["step"] = wide;
      series["unit"] = "% of values per unit";
      series.erase("counts");
    }
  }
  return all;
}

class Builder {
 public:
  explicit Builder(const ReportOptions& options) : options_(options) {}

  ReportResult write() {
    open_folders();
    if (!options_.manifest.empty()) cohorts_ = Cohorts(options_.manifest, options_.cohort);
    add_up();
    describe_slides();
    Json data = {{"created", now_text()}, {"version", version()}, {"limit", options_.most_bytes}};
    add_distribution(data);
    data["runs"] = runs_json();
    data["cohorts"] = cohorts_json();
    data["slides"] = std::move(columns_);
    // Made of them all at once: to add one by its name looks at all before.
    data["figures"] =
        Json::object_t(std::make_move_iterator(figures_.begin()), std::make_move_iterator(figures_.end()));
    data["class_colours"] = class_colours_json();
    data["sweeps"] = std::move(sweeps_);
    if (!options_.trace.empty()) data["timeline"] = timeline_json();
    add_pictures(data);
    write_page(data);
    return std::move(result_);
  }

 private:
  void open_folders() {
    std::vector<std::string> faults;
    for (const std::string& folder : options_.folders) {
      const fs::path path = folder;
      std::error_code code;
      const bool run = fs::exists(path / "run.sqlite", code);
      const bool sweep = fs::exists(path / "sweep.csv", code);
      if (!run && !sweep) {
        throw ConfigError(folder + ": holds neither a run (run.sqlite) nor a sweep (sweep.csv)");
      }
      if (run) {
        runs_.push_back({.folder = folder, .reader = std::make_unique<RunReader>(path), .sums = {}});
        runs_.back().spectrum = runs_.back().reader->config().operators.runs("spectrum");
        check_alike(runs_.back());
      }
      if (!sweep) continue;
      try {
        sweeps_.push_back(sweep_json(path));
      } catch (const ConfigError& error) {
        faults.emplace_back(error.what());
      }
    }
    // A page of nothing helps nobody.
    if (!faults.empty() && runs_.empty() && sweeps_.empty()) throw ConfigError(faults.front());
    for (const std::string& fault : faults) result_.warnings.push_back(fault + "; the sweep is left out");
    result_.sweeps = sweeps_.size();
  }

  /// The first run with spectra; null: none has.
  const Run* with_spectrum() const {
    const auto found = std::ranges::find(runs_, true, &Run::spectrum);
    return found == runs_.end() ? nullptr : &*found;
  }

  /// Histograms are compared bin by bin.
  void check_alike(const Run& run) const {
    if (!run.spectrum) return;
    for (const char* name : {"value", "bins", "range"}) {
      const ConfigKey* key = find_key("analysis", name);
      const Run& first = *with_spectrum();
      if (key->get(run.reader->config()) != key->get(first.reader->config())) {
        throw ConfigError(run.folder + ": analysis." + name + " is another than in " + first.folder +
                          "; one report shows histograms of one kind");
      }
    }
  }

  static Json sweep_json(const fs::path& folder) {
    const std::string file = (folder / "sweep.csv").string();
    const SweepTable table = read_sweep(read_text_file(file, FileOrigin::own), file);
    Json points = Json::array();
    for (const SweepPoint& point : table.points) {
      points.push_back({{"values", point.values},
                        {"runs", point.seconds.size()},
                        {"seconds", point.seconds.empty() ? Json() : Json(point.median())},
                        {"least", point.seconds.empty() ? Json() : Json(*std::ranges::min_element(point.seconds))},
                        {"most", point.seconds.empty() ? Json() : Json(*std::ranges::max_element(point.seconds))},
                        {"base", point.base},
                        {"note", point.note}});
    }
    Json json = {{"folder", folder.string()}, {"keys", table.keys}, {"points", std::move(points)}};
    if (const std::optional<SweepVerdict> verdict = verdict_of(table)) {
      const TimeComparison& times = verdict->times;
      json["verdict"] = {{"winner", verdict->winner},       {"seconds", times.winner.median},
                         {"runs", times.winner.runs},       {"base_seconds", times.base.median},
                         {"base_runs", times.base.runs},    {"probability", times.probability},
                         {"significant", times.significant}};
    }
    return json;
  }

  void add_up() {
    for (Run& run : runs_) {
      const auto bins = static_cast<std::size_t>(run.reader->config().analysis.bins);
      if (run.spectrum) {
        run.sums.histogram.assign(bins, 0);
        all_.histogram.resize(bins, 0);
      }
      run.reader->for_each([&](const LedgerSlide& slide) {
        check_stop();
        const SlideResult& result = slide.result;
        ++(result.done ? run.done : run.failed);
        if (!result.done) return;
        run.artifacts += result.artifacts.size();
        for (const Artifact& artifact : result.artifacts) run.artifact_bytes += artifact.bytes;
        if (run.spectrum) run.sums += result.sums;
        if (options_.manifest.empty()) return;
        Cohort& cohort = by_cohort_[cohorts_.of(slide.canonical)];
        ++cohort.slides;
        if (run.spectrum) {
          cohort.sums.histogram.resize(bins, 0);
          SpectrumSums distribution = result.sums;
          distribution.counters.clear();
          cohort.sums += distribution;
        }
        if (by_cohort_.size() > most_cohorts) {
          throw ConfigError(options_.manifest + ": column '" + options_.cohort + "' has more than " +
                            std::to_string(most_cohorts) + " values; a report tells fewer cohorts apart");
        }
      });
      // Other statistics are each run's own.
      if (run.spectrum) {
        SpectrumSums distribution = run.sums;
        distribution.counters.clear();
        all_ += distribution;
      }
      run.unfinished = run.reader->unfinished();
      result_.slides += run.done + run.failed + run.unfinished;
      result_.failed += run.failed;
      result_.unfinished += run.unfinished;
    }
    axis_ = fitting_axis(all_.histogram, most_steps);
  }

  void describe_slides() {
    columns_ = Json::object();
    // All columns are there, also without slides.
    for (const char* name : {"run",    "path", "done",    "error",   "cohort",  "width",    "height", "codec",
                             "colour", "mpp",  "files",   "windows", "clipped", "mean",     "std",    "p05",
                             "p50",    "p95",  "missing", "bad",     "seconds", "distance", "shares"}) {
      columns_[name] = Json::array();
    }
    std::map<std::string, std::size_t> cohort_places;
    for (const auto& [name, cohort] : by_cohort_) cohort_places.emplace(name, cohort_places.size());
    for (std::size_t number = 0; number < runs_.size(); ++number) {
      Run& run = runs_[number];
      std::vector<double> distances;
      run.reader->for_each([&](const LedgerSlide& slide) {
        check_stop();
        const auto cohort = cohort_places.find(cohorts_.of(slide.canonical));
        describe(slide, number, run, distances);
        columns_["cohort"].push_back(cohort == cohort_places.end() ? Json() : Json(cohort->second));
      });
      run.fence = outlier_fence(std::move(distances));
    }
  }

  void describe(const LedgerSlide& slide, std::size_t number, const Run& run, std::vector<double>& distances) {
    const SlideResult& result = slide.result;
    const Config& config = run.reader->config();
    const double bin = (config.analysis.range[1] - config.analysis.range[0]) / config.analysis.bins;
    const bool sized = result.width > 0;
    const auto put = [&](const char* column, Json value) { columns_[column].push_back(std::move(value)); };
    const auto put_if = [&](bool there, const char* column, auto&& value) {
      put(column, there ? Json(value()) : Json());
    };
    put("run", number);
    put("path", result.path);
    put("done", result.done ? 1 : 0);
    put("error", result.error);
    put_if(sized, "width", [&] { return result.width; });
    put_if(sized, "height", [&] { return result.height; });
    put("codec", result.codec);
    put("colour", result.colour);
    put_if(result.mpp.has_value(), "mpp", [&] { return rounded(*result.mpp); });
    put("missing", result.missing_tiles);
    put("bad", result.bad_tiles);
    put("seconds", rounded(result.seconds));
    put("files", files_json(result, run.folder, options_.html));
    const SpectrumSums& sums = result.sums;
    const bool analysed = result.done && run.spectrum;
    const bool counted = analysed && sums.values > 0;
    put_if(analysed, "windows", [&] { return sums.windows; });
    put_if(analysed, "clipped", [&] { return sums.clipped; });
    put_if(counted, "mean", [&] { return rounded(sums.mean()); });
    put_if(counted, "std", [&] { return rounded(sums.standard_deviation()); });
    put_if(counted, "p05", [&] { return rounded(sums.percentile(0.05, config.analysis)); });
    put_if(counted, "p50", [&] { return rounded(sums.percentile(0.5, config.analysis)); });
    put_if(counted, "p95", [&] { return rounded(sums.percentile(0.95, config.analysis)); });
    put_if(counted, "shares", [&] { return packed(shares(sums.histogram, axis_)); });
    double distance = 0.0;
    if (counted) {
      distance = wasserstein_distance(sums.histogram, run.sums.histogram) * bin;
      distances.push_back(distance);
    }
    put_if(counted, "distance", [&] { return rounded(distance); });
    describe_figures(result, config.analysis, run.spectrum);
    sources_.push_back({number, slide.id, slide.canonical, result.path, result.map.columns, result.map.rows,
                        made_images(result, run.folder), &config, config.operators.runs("volume"), !result.done});
  }

  /// What operators and the other statistics say of a slide, by the figure's name: [[slide, number], ...], slides
  /// counted from 0. The operators' have a dot in their names.
  void describe_figures(const SlideResult& result, const AnalysisConfig& analysis, bool spectrum) {
    if (!result.done) return;
    for (const NamedValue& value : result.values) {
      if (std::isfinite(value.value)) figure(value.name).push_back({sources_.size(), rounded(value.value, 1e6)});
    }
    if (!spectrum) return;
    for (const PlacedStatistic& placed : placed_statistics(analysis)) {
      for (const Figure& each : findings_of(placed, analysis, result.sums).figures) {
        if (each.value) figure(each.name).push_back({sources_.size(), rounded(*each.value)});
      }
    }
  }

  Json& figure(const std::string& name) {
    const auto [place, is_new] = places_of_figures_.try_emplace(name, figures_.size());
    if (is_new) figures_.emplace_back(name, Json::array());
    return figures_[place->second].second;
  }

  void add_distribution(Json& data) const {
    const Run* const first = with_spectrum();
    if (first == nullptr) return;
    const AnalysisConfig& analysis = first->reader->config().analysis;
    const double bin = (analysis.range[1] - analysis.range[0]) / analysis.bins;
    const char* const value = analysis.value == ValueKind::log1p_db ? "20 log10(1 + |F|)"
                              : analysis.value == ValueKind::db     ? "20 log10 |F|"
                                                                    : "|F|";
    data["value"] = {{"name", value}, {"unit", analysis.value == ValueKind::linear ? "" : "dB"}};
    data["axis"] = {{"low", analysis.range[0] + bin * static_cast<double>(axis_.first)},
                    {"step", bin * static_cast<double>(axis_.bins_a_step)},
                    {"steps", axis_.steps}};
    data["windows"] = all_.windows;
    if (all_.values > 0) data["all"] = statistics_json(all_, first->reader->config(), axis_);
  }

  static Json class_colours_json() {
    Json colours = Json::array();
    for (int label = 0; label < 16; ++label) colours.push_back(class_colour(label));
    return colours;
  }

  Json runs_json() const {
    Json runs = Json::array();
    for (const Run& run : runs_) {
      const Config& config = run.reader->config();
      Json json = course_of_run(run.folder);
      json["folder"] = run.folder;
      json["done"] = run.done;
      json["failed"] = run.failed;
      json["artifacts"] = run.artifacts;
      json["artifact_bytes"] = run.artifact_bytes;
      json["unfinished"] = run.unfinished;
      json["fence"] = rounded(run.fence);
      json["spectrum"] = run.spectrum;
      json["statistics"] = run.sums.values > 0 ? statistics_json(run.sums, config, axis_) : Json();
      json["further"] = run.spectrum ? further_json(config.analysis, run.sums) : Json::object();
      json["settings"] = settings_json(config);
      runs.push_back(std::move(json));
    }
    return runs;
  }

  Json cohorts_json() const {
    if (options_.manifest.empty() || runs_.empty()) return {};
    Json groups = Json::array();
    for (const auto& [name, cohort] : by_cohort_) {
      Json json = Json::object();
      if (cohort.sums.values > 0) json = statistics_json(cohort.sums, with_spectrum()->reader->config(), axis_);
      json["name"] = name;
      json["slides"] = cohort.slides;
      groups.push_back(std::move(json));
    }
    return {{"column", options_.cohort}, {"groups", std::move(groups)}};
  }

  Json timeline_json() const {
    const Timeline timeline = read_timeline(options_.trace, timeline_steps, options_.stopped);
    Json rows = Json::array();
    for (const TimelineRow& row : timeline.rows) {
      rows.push_back({{"name", row.name},
                      {"kind", row.kind},
                      {"most", row.most},
                      {"busy", row.busy_seconds},
                      {"overlapped", row.overlapped_seconds},
                      {"load", packed(row.load)}});
    }
    return {{"file", options_.trace},
            {"seconds", timeline.seconds},
            {"dropped", timeline.dropped},
            {"rows", std::move(rows)}};
  }

  /// Last, when it is known how much room is left for them.
  void add_pictures(Json& data) {
    const std::size_t taken = empty_page_size() + dumped(data).size();
    const std::uint64_t room = options_.most_bytes > taken ? options_.most_bytes - taken : 0;
    const auto read_map = [&](const PictureSource& source, WindowMap& map) {
      check_stop();
      return runs_[source.run].reader->read_map(source.id, map);
    };
    PictureLimits limits;
    limits.threads = options_.threads;
    limits.stopped = options_.stopped;
    Pictures pictures = make_pictures(sources_, room, limits, read_map, options_.on_thumbnail);
    result_.thumbnails = pictures.thumbnails_made;
    result_.maps = pictures.maps_made;
    data["pictures"] = std::move(pictures.json);
  }

  void check_stop() const {
    if (options_.stopped && options_.stopped()) throw StoppedError("the report was stopped");
  }

  /// Paths may hold bytes that aren't UTF-8, which JSON can't.
  static std::string dumped(const Json& data) { return dump_json(data, -1); }

  void write_page(const Json& data) {
    const std::string html = page(dumped(data));
    result_.bytes = html.size();
    AtomicFile file(options_.html);
    file.write(html);
    file.commit();
    if (html.size() > options_.most_bytes) {
      result_.warnings.push_back(options_.html + ": is larger than " + std::to_string(options_.most_bytes) +
                                 " bytes even without pictures");
    }
  }

  const ReportOptions& options_;
  std::vector<Run> runs_;
  Json sweeps_ = Json::array();
  Cohorts cohorts_;
  std::map<std::string, Cohort> by_cohort_;
  SpectrumSums all_;
  Axis axis_;
  Json columns_;
  std::vector<std::pair<std::string, Json>> figures_;
  std::unordered_map<std::string, std::size_t> places_of_figures_;
  std::vector<PictureSource> sources_;
  ReportResult result_;
};

}  // namespace

ReportResult write_report(const ReportOptions& options) { return Builder(options).write(); }

}  // namespace slidestream::report
