#include "output/statistics_json.hpp"

#include <nlohmann/json.hpp>
#include <slidestream/statistic.hpp>

namespace slidestream {

using Json = nlohmann::ordered_json;

Json statistics_json(const AnalysisConfig& config, const SpectrumSums& sums) {
  Json all = Json::object();
  for (const PlacedStatistic& placed : placed_statistics(config)) {
    const Findings findings = findings_of(placed, config, sums);
    Json figures = Json::object();
    for (const Figure& figure : findings.figures) {
      if (!figure.value) {
        figures[figure.name] = nullptr;
      } else if (figure.is_count) {
        figures[figure.name] = static_cast<std::uint64_t>(*figure.value);
      } else {
        figures[figure.name] = *figure.value;
      }
    }
    Json series = Json::object();
    for (const Series& one : findings.series) {
      Json& json = series[one.name];
      json = {{"unit", one.unit}, {"axis", one.axis}, {"first", one.first}, {"step", one.step}};
      if (one.is_counts()) {
        json["counts"] = one.counts;
      } else {
        json["values"] = one.values;
      }
    }
    all[std::string(placed.statistic->name)] = {
        {"title", placed.statistic->title}, {"figures", std::move(figures)}, {"series", std::move(series)}};
  }
  return all;
}

}  // namespace slidestream
