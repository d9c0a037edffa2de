#include "compare/compare.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <slidestream/error.hpp>
#include <tuple>

#include "config/keys.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
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
    Statement select(*database_, "SELECT value FROM meta WHERE name = 'configuration'");
    if (!select.step()) throw OutputError(folder + ": its ledger holds no run");
    config_ = parse_config(select.text(0), database_->file().string() + ", configuration");
    Statement slides(*database_,
                     "SELECT id, path, state FROM slides WHERE position IS NOT NULL AND mine ORDER BY position");
    while (slides.step()) {
      const std::string state = slides.text(2);
      slides_.push_back({slides.integer(0), slides.text(1), state == "done"});
    }
  }

  const Config& config() const noexcept { return config_; }
  std::vector<ListedSlide>& slides() noexcept { return slides_; }

  std::map<std::string, std::string> settings() {
    std::map<std::string, std::string> settings;
    Statement select(*database_, "SELECT name, value FROM settings");
    while (select.step()) settings.emplace(select.text(0), select.text(1));
    return settings;
  }

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

/// Artifacts that aren't the same bytes. Those of one operator and product are told apart by their order.
/// \param other_digests  as that function gives it.
std::vector<std::string> differing_artifacts(const std::vector<Artifact>& first, const std::vector<Artifact>& second,
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
  std::vector<std::string> differences;
  const auto add = [&differences](const Key& key, const std::string& what) {
    differences.push_back(std::get<0>(key) + " " + std::get<1>(key) + ": " + what);
  };
  for (const auto& [key, artifact] : a) {
    const auto other = b.find(key);
    if (other == b.end()) {
      add(key, "only in the first");
    } else if (!other_digests.empty() && artifact->bytes == other->second->bytes &&
               artifact->bytes > most_bytes_of_one_digest && artifact->digest != other->second->digest) {
      add(key, other_digests);
    } else if (artifact->bytes != other->second->bytes || artifact->digest != other->second->digest) {
      add(key, to_hexadecimal(artifact->digest) + ", then " + to_hexadecimal(other->second->digest));
    }
  }
  for (const auto& [key, artifact] : b) {
    if (!a.contains(key)) add(key, "only in the second");
  }
  return differences;
}

}  // namespace

bool Comparison::within(double tolerance) const {
  const auto fits = [tolerance](const auto& difference) { return difference.largest() <= tolerance; };
  return unmatched.empty() && !slides.empty() && (corpus ? fits(*corpus) : !counted) &&
         std::ranges::all_of(corpus_statistics, fits) && std::ranges::all_of(slides, [&](const SlidePair& pair) {
           return fits(pair.difference) && std::ranges::all_of(pair.statistics, fits) && pair.artifacts.empty();
         });
}

Comparison compare_runs(const std::string& first_folder, const std::string& second_folder) {
  Run first(first_folder);
  Run second(second_folder);
  check_comparable(first, second);
  Comparison comparison;
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
    if ((one.sums.values == 0) != (other.sums.values == 0)) {
      comparison.unmatched.push_back(
          {a.path, std::string("has no windows in the ") + (one.sums.values == 0 ? "first" : "second")});
      continue;
    }
    comparison.slides.push_back({a.path, b.path, difference_of(one.sums, other.sums, analysis),
                                 statistic_differences(analysis, one.sums, second.config().analysis, other.sums),
                                 differing_artifacts(one.artifacts, other.artifacts, digests)});
  }
  add_unmatched(comparison, first, "first");
  add_unmatched(comparison, second, "second");

  const auto corpus_of = [&analysis](Run& run) {
    SpectrumSums corpus;
    corpus.histogram.assign(static_cast<std::size_t>(analysis.bins), 0);
    for (const ListedSlide& slide : run.slides()) {
      if (slide.done) corpus += run.result_of(slide).sums;
    }
    return corpus;
  };
  const SpectrumSums a = corpus_of(first);
  const SpectrumSums b = corpus_of(second);
  comparison.counted = a.values > 0 || b.values > 0;
  if (a.values > 0 && b.values > 0) {
    comparison.corpus = difference_of(a, b, analysis);
    comparison.corpus_statistics = statistic_differences(analysis, a, second.config().analysis, b);
  }
  return comparison;
}

}  // namespace slidestream
