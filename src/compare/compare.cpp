#include "compare/compare.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <slidestream/error.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"
#include "ledger/versions.hpp"
#include "output/text.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

struct ListedSlide {
  std::int64_t id = 0;
  std::string path;
  bool done = false;
  bool matched = false;
};

/// A folder with results: its slides by name, their figures when they are asked for.
class Run {
 public:
  explicit Run(const std::string& folder) : database_(open_to_read(fs::path(folder) / ledger_name)) {
    database_->execute("BEGIN");
    const auto configuration = read_configuration(*database_);
    if (!configuration) throw OutputError(folder + ": its ledger holds no run");
    config_ = parse_config(*configuration, database_->file().string() + ", configuration");
    check_holds_run(*database_);
    check_list(*database_);
    Statement slides(*database_,
                     "SELECT id, path, state FROM slides WHERE position IS NOT NULL AND mine ORDER BY position");
    while (slides.step()) {
      const std::string state = slides.text(2);
      slides_.push_back({slides.integer(0), slides.text(1), state == "done"});
    }
  }

  const Config& config() const noexcept { return config_; }
  std::vector<ListedSlide>& slides() noexcept { return slides_; }

  std::map<std::string, std::string> settings() { return stored_settings(*database_); }

  /// Version of the ledger that the results were written in, wherever they were joined since.
  std::string version() {
    const auto all = settings();
    const auto found = all.find(ledger_version_key);
    return found == all.end() ? "1" : found->second;
  }

  SlideResult result_of(const ListedSlide& slide) {
    Statement select(*database_, "SELECT " + row_columns + " FROM slides WHERE id = ?1");
    select.bind(1, slide.id);
    if (!select.step()) throw OutputError(database_->file().string() + ": damaged: a slide has gone");
    return RowReader(*database_, static_cast<std::size_t>(config_.analysis.bins)).read(select);
  }

 private:
  std::unique_ptr<Database> database_;
  Config config_;
  std::vector<ListedSlide> slides_;
};

/// What a run made of its slides.
struct Made {
  bool spectrum = false;
  bool maps = false;  ///< of a slide's windows, or more
  SpectrumSums corpus;
  std::set<std::string> values;    ///< names of figures
  std::set<std::string> products;  ///< kinds of files: "stain image"
};

std::string product_of(const Artifact& artifact) { return artifact.maker + " " + artifact.product; }

Made made_by(Run& run) {
  Made made;
  made.spectrum = run.config().operators.runs("spectrum");
  made.corpus.histogram.assign(static_cast<std::size_t>(run.config().analysis.bins), 0);
  for (const ListedSlide& slide : run.slides()) {
    if (!slide.done) continue;
    const SlideResult result = run.result_of(slide);
    if (made.spectrum) made.corpus += result.sums;
    made.maps |= !result.map_file.empty();
    for (const NamedValue& value : result.values) made.values.insert(value.name);
    for (const Artifact& artifact : result.artifacts) made.products.insert(product_of(artifact));
  }
  return made;
}

std::vector<std::string> only_in(const Made& one, const Made& other) {
  std::vector<std::string> only;
  if (one.spectrum && !other.spectrum) only.emplace_back("spectrum");
  if (one.maps && !other.maps) only.emplace_back("maps");
  std::ranges::set_difference(one.values, other.values, std::back_inserter(only));
  std::ranges::set_difference(one.products, other.products, std::back_inserter(only));
  return only;
}

std::vector<ValueDifference> value_differences(const Made& first, const SlideResult& one, const Made& second,
                                               const SlideResult& other) {
  using Values = std::unordered_map<std::string_view, double>;
  const auto values_of = [](const SlideResult& slide) {
    Values values;
    for (const NamedValue& value : slide.values) values.emplace(value.name, value.value);
    return values;
  };
  const auto value_of = [](const Values& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  const Values in_one = values_of(one);
  const Values in_other = values_of(other);
  std::vector<ValueDifference> differences;
  for (const std::string& name : first.values) {
    if (second.values.contains(name)) differences.push_back({name, value_of(in_one, name), value_of(in_other, name)});
  }
  return differences;
}

void check_comparable(Run& first, Run& second) {
  for (const char* name : {"bins", "range", "value"}) {
    const ConfigKey& key = *find_key("analysis", name);
    const std::string a = to_toml_value(key.get(first.config()));
    const std::string b = to_toml_value(key.get(second.config()));
    if (a != b) throw ConfigError("the runs can't be compared: " + key.full_name() + " is " + a + " and " + b);
  }
}

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

/// Slides by a name of theirs; those whose name several have are left out.
std::map<std::string, std::size_t> by_name(const std::vector<ListedSlide>& slides,
                                           std::string (*name)(const std::string&)) {
  std::map<std::string, std::size_t> found;
  std::map<std::string, int> uses;
  for (std::size_t i = 0; i < slides.size(); ++i) {
    if (slides[i].matched) continue;
    found[name(slides[i].path)] = i;
    ++uses[name(slides[i].path)];
  }
  std::erase_if(found, [&uses](const auto& entry) { return uses[entry.first] > 1; });
  return found;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

void match(Pairs& pairs, Run& first, Run& second, std::string (*name)(const std::string&)) {
  const auto others = by_name(second.slides(), name);
  for (const auto& [key, i] : by_name(first.slides(), name)) {
    const auto other = others.find(key);
    if (other == others.end()) continue;
    first.slides()[i].matched = second.slides()[other->second].matched = true;
    pairs.emplace_back(i, other->second);
  }
}

std::string whole(const std::string& path) { return path; }

void add_unmatched(Comparison& comparison, Run& run, const std::string& which) {
  for (const ListedSlide& slide : run.slides()) {
    if (!slide.matched) comparison.unmatched.push_back({slide.path, "only in the " + which});
  }
}

/// Why digests of large files don't tell whether these are the same; empty where they do.
std::string other_digests(Run& first, Run& second) {
  const auto in_blocks = [](const std::string& version) {
    std::int64_t number = 0;
    std::from_chars(version.data(), version.data() + version.size(), number);
    return number >= first_version_with_block_digests;
  };
  const std::string a = first.version();
  const std::string b = second.version();
  if (in_blocks(a) == in_blocks(b)) return {};
  return "digests of ledgers of version " + one_line(a) + " and " + one_line(b) + " can't be compared";
}

/// Compares a slide's artifacts of kinds that both runs made: counts them, and lists those that aren't the same bytes.
/// Those of one operator and product are told apart by their order. \param other_digests  as that function gives it.
void compare_artifacts(SlidePair& pair, const std::vector<Artifact>& first, const std::vector<Artifact>& second,
                       const std::string& other_digests) {
  using Key = std::tuple<std::string, std::string, int>;
  const auto by_product = [](const std::vector<Artifact>& artifacts) {
    std::map<Key, const Artifact*> found;
    for (const Artifact& artifact : artifacts) {
      Key key(artifact.maker, artifact.product, 0);
      while (!found.emplace(key, &artifact).second) ++std::get<2>(key);
    }
    return found;
  };
  const auto a = by_product(first);
  const auto b = by_product(second);
  const auto add = [&pair](const Key& key, const std::string& what) {
    pair.artifacts.push_back(std::get<0>(key) + " " + std::get<1>(key) + ": " + what);
  };
  for (const auto& [key, artifact] : a) {
    const auto other = b.find(key);
    if (other == b.end()) {
      add(key, "only in the first");
      continue;
    }
    ++pair.files;
    if (!other_digests.empty() && artifact->bytes == other->second->bytes &&
        artifact->bytes > most_bytes_of_one_digest && artifact->digest != other->second->digest) {
      add(key, other_digests);
    } else if (artifact->bytes != other->second->bytes || artifact->digest != other->second->digest) {
      add(key, to_hexadecimal(artifact->digest) + ", then " + to_hexadecimal(other->second->digest));
    } else {
      ++pair.equal_files;
    }
  }
  for (const auto& [key, artifact] : b) {
    if (!a.contains(key)) add(key, "only in the second");
  }
}

/// Without those of kinds that the other run never made.
std::vector<Artifact> shared_artifacts(std::vector<Artifact> artifacts, const Made& other) {
  std::erase_if(artifacts, [&](const Artifact& artifact) { return !other.products.contains(product_of(artifact)); });
  return artifacts;
}

}  // namespace

bool Comparison::within(double tolerance) const {
  const auto fits = [tolerance](const auto& difference) { return difference.largest() <= tolerance; };
  const auto close = [tolerance](const ValueDifference& value) { return std::abs(value.difference()) <= tolerance; };
  return unmatched.empty() && only_first.empty() && only_second.empty() && !slides.empty() &&
         (corpus ? fits(*corpus) : !counted) && std::ranges::all_of(corpus_statistics, fits) &&
         std::ranges::all_of(slides, [&](const SlidePair& pair) {
           return (!pair.difference || fits(*pair.difference)) && std::ranges::all_of(pair.statistics, fits) &&
                  std::ranges::all_of(pair.values, close) && pair.artifacts.empty();
         });
}

bool SlidePair::equal() const noexcept {
  return (!difference || difference->equal) && artifacts.empty() &&
         std::ranges::all_of(statistics, &StatisticDifference::equal) &&
         std::ranges::all_of(values, [](const ValueDifference& value) { return value.difference() == 0.0; });
}

Comparison compare_runs(const std::string& first_folder, const std::string& second_folder) {
  Run first(first_folder);
  Run second(second_folder);
  const Made a_made = made_by(first);
  const Made b_made = made_by(second);
  Comparison comparison;
  comparison.spectrum = a_made.spectrum && b_made.spectrum;
  if (comparison.spectrum) check_comparable(first, second);
  comparison.only_first = only_in(a_made, b_made);
  comparison.only_second = only_in(b_made, a_made);
  comparison.first = first.config();
  comparison.second = second.config();
  const auto settings = first.settings();
  for (const auto& [name, value] : second.settings()) {
    const auto before = settings.find(name);
    if (before != settings.end() && before->second != value) {
      comparison.settings.push_back(name + ": " + before->second + ", then " + value);
    }
  }

  Pairs pairs;
  match(pairs, first, second, whole);
  match(pairs, first, second, file_name);
  std::ranges::sort(pairs);
  const std::string digests = other_digests(first, second);
  const AnalysisConfig& analysis = first.config().analysis;
  for (const auto& [i, j] : pairs) {
    const ListedSlide& a = first.slides()[i];
    const ListedSlide& b = second.slides()[j];
    if (!a.done || !b.done) {
      comparison.unmatched.push_back({a.path, !a.done && !b.done ? "done in neither"
                                              : !a.done          ? "not done in the first"
                                                                 : "not done in the second"});
      continue;
    }
    const SlideResult one = first.result_of(a);
    const SlideResult other = second.result_of(b);
    if (comparison.spectrum && (one.sums.values == 0) != (other.sums.values == 0)) {
      comparison.unmatched.push_back(
          {a.path, std::string("has no windows in the ") + (one.sums.values == 0 ? "first" : "second")});
      continue;
    }
    SlidePair pair;
    pair.first = a.path;
    pair.second = b.path;
    if (comparison.spectrum && one.sums.values > 0) {
      pair.difference = difference_of(one.sums, other.sums, analysis);
      pair.statistics = statistic_differences(analysis, one.sums, second.config().analysis, other.sums);
    }
    pair.values = value_differences(a_made, one, b_made, other);
    compare_artifacts(pair, shared_artifacts(one.artifacts, b_made), shared_artifacts(other.artifacts, a_made),
                      digests);
    if (a_made.maps && b_made.maps && one.map_file.empty() != other.map_file.empty()) {
      pair.artifacts.push_back(std::string("map: only in the ") + (one.map_file.empty() ? "second" : "first"));
    }
    if (!comparison.spectrum && pair.values.empty() && pair.files == 0 && pair.artifacts.empty()) {
      comparison.unmatched.push_back({a.path, "the runs made nothing of it that both have"});
      continue;
    }
    comparison.slides.push_back(std::move(pair));
  }
  add_unmatched(comparison, first, "first");
  add_unmatched(comparison, second, "second");

  comparison.counted = comparison.spectrum && (a_made.corpus.values > 0 || b_made.corpus.values > 0);
  if (comparison.spectrum && a_made.corpus.values > 0 && b_made.corpus.values > 0) {
    comparison.corpus = difference_of(a_made.corpus, b_made.corpus, analysis);
    comparison.corpus_statistics =
        statistic_differences(analysis, a_made.corpus, second.config().analysis, b_made.corpus);
  }
  return comparison;
}

}  // namespace slidestream
