#include "output/slides_csv.hpp"

#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include <slidestream/statistic.hpp>

#include "output/text.hpp"

namespace slidestream {

namespace {

class Record {
 public:
  explicit Record(CsvCells cells) : cells_(cells) {}

  Record& operator<<(std::string_view field) {
    text_ += (first_ ? "" : ",") + csv_field(cells_ == CsvCells::plain ? std::string(field) : spreadsheet_text(field));
    first_ = false;
    return *this;
  }
  Record& operator<<(std::int64_t value) { return *this << std::string_view(std::to_string(value)); }
  Record& operator<<(std::uint64_t value) { return *this << std::string_view(std::to_string(value)); }
  /// Nothing for what isn't a number.
  Record& operator<<(double value) { return *this << std::string_view(std::isnan(value) ? "" : to_decimal(value)); }

  std::string line() const { return text_ + "\r\n"; }

 private:
  CsvCells cells_;
  std::string text_;
  bool first_ = true;
};

/// Names of the mean and the deviation: with their unit where that is dB.
std::string columns_of(const AnalysisConfig& config) {
  return config.value == ValueKind::linear ? "mean,std" : "mean_db,std_db";
}

/// Those that the run has.
std::vector<PlacedStatistic> statistics_of(const Config& config) {
  if (!config.operators.runs("spectrum")) return {};
  return placed_statistics(config.analysis);
}

}  // namespace

std::string slides_csv_header(const Config& config, const std::vector<std::string>& value_names) {
  const bool spectrum = config.operators.runs("spectrum");
  std::string columns = std::string("path,status,error,width,height,codec,colour,level,mpp,") +
                        (spectrum ? "windows," + columns_of(config.analysis) + ",p05,p50,p95," : "") +
                        "missing_tiles,bad_tiles," + (spectrum ? "clipped," : "") + "backend,seconds";
  for (const PlacedStatistic& placed : statistics_of(config)) {
    for (const Figure& figure : findings_of(placed, config.analysis, {}).figures)
      columns += "," + csv_field(figure.name);
  }
  for (const std::string& name : value_names) columns += "," + csv_field(name);
  if (config.output.maps != MapFormat::none) columns += ",map";
  return columns + "\r\n";
}

std::string slides_csv_record(const Config& config, const SlideResult& slide,
                              const std::vector<std::string>& value_names) {
  const SpectrumSums& sums = slide.sums;
  Record record(config.output.csv);
  record << slide.path << (slide.done ? "done" : "failed") << slide.error;
  if (slide.width > 0) {
    record << slide.width << slide.height << slide.codec << slide.colour << std::int64_t{slide.level};
  } else {
    record << ""
           << ""
           << ""
           << ""
           << "";
  }
  record << (slide.mpp ? to_decimal(*slide.mpp) : "");
  const bool spectrum = config.operators.runs("spectrum");
  if (slide.done) {
    if (spectrum && sums.values == 0) {
      record << sums.windows;
      for (int i = 0; i < 5; ++i) record << "";
    } else if (spectrum) {
      record << sums.windows << sums.mean() << sums.standard_deviation() << sums.percentile(0.05, config.analysis)
             << sums.percentile(0.5, config.analysis) << sums.percentile(0.95, config.analysis);
    }
    record << slide.missing_tiles << slide.bad_tiles;
    if (spectrum) record << sums.clipped;
    record << slide.backend << slide.seconds;
  } else {
    for (int i = 0; i < (spectrum ? 11 : 4); ++i) record << "";
  }
  for (const PlacedStatistic& placed : statistics_of(config)) {
    for (const Figure& figure : findings_of(placed, config.analysis, sums).figures) {
      const bool known = slide.done && figure.value;
      record << (known ? to_decimal(*figure.value) : "");
    }
  }
  std::unordered_map<std::string_view, double> value_of;
  if (slide.done) {
    for (const NamedValue& value : slide.values) value_of.emplace(value.name, value.value);
  }
  for (const std::string& name : value_names) {
    const auto found = value_of.find(name);
    record << (found != value_of.end() ? found->second : std::numeric_limits<double>::quiet_NaN());
  }
  if (config.output.maps != MapFormat::none) record << slide.map_file;
  return record.line();
}

std::string failures_csv_header() { return "path,stage,tile,cause\r\n"; }

std::string failures_csv_record(const SlideResult& slide, CsvCells cells) {
  const SlideFailure& failure = slide.failure;
  Record record(cells);
  record << slide.path << failure.stage << (failure.tile ? std::to_string(*failure.tile) : "") << failure.cause;
  return record.line();
}

std::string artifacts_csv_header() { return "path,operator,product,file,bytes,digest\r\n"; }

std::string artifacts_csv_records(const SlideResult& slide, CsvCells cells) {
  std::string text;
  for (const Artifact& artifact : slide.artifacts) {
    Record record(cells);
    record << slide.path << artifact.maker << artifact.product << artifact.file << artifact.bytes
           << to_hexadecimal(artifact.digest);
    text += record.line();
  }
  return text;
}

}  // namespace slidestream
