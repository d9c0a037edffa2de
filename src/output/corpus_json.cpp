#include "output/corpus_json.hpp"

#include <tiffio.h>

#include <nlohmann/json.hpp>
#include <slidestream/pipeline.hpp>

#include "config/bounded_json.hpp"
#include "config/dump_json.hpp"
#include "config/keys.hpp"
#include "output/statistics_json.hpp"
#include "output/text.hpp"

namespace slidestream {

namespace {

using Json = nlohmann::ordered_json;

Json versions_json() {
  const std::string tiff = TIFFGetVersion();
  return {{"slidestream", version()},
          {"compiler", SLIDESTREAM_COMPILER},
          {"libtiff", tiff.substr(0, tiff.find('\n'))},
          {"openjpeg", SLIDESTREAM_OPENJPEG_VERSION},
          {"kissfft", SLIDESTREAM_KISSFFT_VERSION}};
}

Json totals_json(const Config& config, const Corpus& corpus) {
  const SpectrumSums& sums = corpus.sums;
  Json totals = {
      {"slides_done", corpus.done}, {"slides_failed", corpus.failed}, {"slides_incomplete", corpus.incomplete}};
  if (config.operators.runs("spectrum")) {
    // No number is a value that nobody measured.
    const auto known = [&sums](double value) { return sums.values == 0 ? Json() : Json(value); };
    totals.update({{"windows", sums.windows},
                   {"values", sums.values},
                   {"clipped", sums.clipped},
                   {"mean", known(sums.mean())},
                   {"std", known(sums.standard_deviation())},
                   {"p05", known(sums.percentile(0.05, config.analysis))},
                   {"p50", known(sums.percentile(0.5, config.analysis))},
                   {"p95", known(sums.percentile(0.95, config.analysis))},
                   {"sum", to_decimal(sums.sum)},
                   {"sum_fraction_bits", SpectrumSums::sum_fraction_bits},
                   {"sum_of_squares", to_decimal(sums.sum_of_squares)},
                   {"square_fraction_bits", SpectrumSums::square_fraction_bits}});
  }
  totals["missing_tiles"] = corpus.missing_tiles;
  totals["bad_tiles"] = corpus.bad_tiles;
  totals["file_bytes"] = corpus.file_bytes;
  return totals;
}

Json stages_json(const RunResult& result) {
  Json stages = Json::array();
  for (const StageReport& stage : result.stages) {
    stages.push_back({{"name", stage.name},
                      {"busy_seconds", stage.busy_seconds},
                      {"wait_seconds", stage.wait_seconds},
                      {"items", stage.items},
                      {"bytes", stage.bytes}});
  }
  return stages;
}

Json overlap_json(const Overlap& overlap) {
  Json devices = Json::array();
  for (const DeviceOverlap& device : overlap.devices) {
    devices.push_back({{"device", device.device},
                       {"seconds", device.seconds},
                       {"kernel_seconds", device.kernel_seconds},
                       {"copy_seconds", device.copy_seconds},
                       {"copy_hidden_seconds", device.copy_hidden_seconds},
                       {"copy_covered_seconds", device.copy_covered_seconds},
                       {"longest_gap_seconds", device.longest_gap_seconds},
                       {"longest_gap_waited_for", device.waited_for}});
  }
  const std::optional<double> hidden = overlap.copy_hidden_share();
  const std::optional<double> covered = overlap.copy_covered_share();
  const DeviceOverlap& gap = overlap.longest_gap();
  return {{"copy_hidden_share", hidden ? Json(*hidden) : Json()},
          {"copy_covered_share", covered ? Json(*covered) : Json()},
          {"gpu_busy_share", overlap.busy_share()},
          {"longest_gap_seconds", gap.longest_gap_seconds},
          {"longest_gap_waited_for", gap.waited_for},
          {"devices", std::move(devices)}};
}

/// A path as a key: no two paths have the same.
std::string json_key(const std::string& path, const Json& object) {
  std::string key = json_text(path);
  // A name may hold the very text that stands for another's byte.
  while (object.contains(key)) key += '\'';
  return key;
}

}  // namespace

nlohmann::ordered_json settings_json(const Config& config) {
  Json settings = Json::object();
  for (const ConfigKey& key : config_keys()) {
    std::visit([&](const auto& value) { settings[std::string(key.section)][std::string(key.name)] = value; },
               key.get(config));
  }
  return settings;
}

std::string corpus_json(const Config& config, const RunResult& result, const Corpus& found,
                        const std::string& earlier) {
  Json corpus;
  corpus["settings"] = settings_json(config);
  if (!found.deciding.empty()) corpus["deciding"] = found.deciding;
  corpus["versions"] = versions_json();
  corpus["backend"] = result.backend;
  corpus["threads"] = result.threads;
  corpus["seconds"] = result.seconds;
  corpus["interrupted"] = result.interrupted;
  corpus["gpu_fallback_tiles"] = found.gpu_fallback_tiles;
  corpus["totals"] = totals_json(config, found);
  corpus["stages"] = stages_json(result);
  if (result.overlap) corpus["overlap"] = overlap_json(*result.overlap);
  const Json before = members_of(earlier, {"backend", "threads", "seconds", "stages", "overlap"});
  for (const auto& [key, value] : before.items()) corpus[key] = value;
  if (found.artifacts > 0) corpus["artifacts"] = {{"files", found.artifacts}, {"bytes", found.artifact_bytes}};
  if (config.output.maps != MapFormat::none) {
    Json& maps = corpus["maps"] = Json::object();
    for (const auto& [path, file] : found.maps) maps[json_key(path, maps)] = file;
  }
  if (!config.operators.runs("spectrum")) return dump_json(corpus, 2) + "\n";
  std::vector<std::uint64_t> histogram = found.sums.histogram;
  histogram.resize(static_cast<std::size_t>(config.analysis.bins));
  // On one line each: a person reads the rest, a program this.
  std::string text = dump_json(corpus, 2);
  text.resize(text.rfind('\n'));
  const Json statistics = statistics_json(config.analysis, found.sums);
  for (const auto& [name, statistic] : statistics.items()) {
    text += (name == statistics.begin().key() ? ",\n  \"statistics\": {\n    \"" : ",\n    \"") + name +
            "\": " + dump_json(statistic, -1);
  }
  if (!statistics.empty()) text += "\n  }";
  return text + ",\n  \"histogram\": " + dump_json(Json(histogram), -1) + "\n}\n";
}

}  // namespace slidestream
