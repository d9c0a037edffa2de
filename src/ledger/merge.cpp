#include "ledger/merge.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/ledger_view.hpp"
#include "ledger/map_files.hpp"
#include "ledger/merge_places.hpp"
#include "ledger/merged_files.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/shard.hpp"
#include "ledger/shard_lists.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"
#include "ledger/stored_map.hpp"
#include "output/atomic_file.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// One of the ledgers that are joined.
struct Part {
  std::string folder;
  std::unique_ptr<Database> database;
  Config config;
  std::string configuration;
  bool is_joined = false;
  bool is_shard = false;
};

Part open_part(const std::string& folder) {
  Part part;
  part.folder = folder;
  part.database = open_to_read(fs::path(folder) / ledger_name);
  check_table(*part.database, "slides");
  const auto configuration = read_configuration(*part.database);
  if (!configuration) throw OutputError(folder + ": its ledger holds no run");
  // Nobody knows which slides it was to do, also where it may still live.
  if (!holds_run(*part.database)) {
    throw OutputError(folder +
                      ": its ledger holds no run: its start ended, or hasn't come to its first slide yet; the same "
                      "command starts it again");
  }
  check_list(*part.database);
  // A shard that goes on from joined results was started after they were joined.
  part.is_shard = stored_shards(*part.database) > 0;
  Statement joined(*part.database, "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'joined')");
  part.is_joined = !part.is_shard && joined.step() && joined.integer(0) != 0;
  part.configuration = *configuration;
  part.config = parse_config(part.configuration, part.database->file().string() + ", configuration");
  return part;
}

/// The settings that all parts were made with, versions first. Ledgers alone say so: files that a run read besides its
/// slides may have changed since, or be on another machine. \throws ConfigError.
std::vector<std::pair<std::string, std::string>> check_settings(std::vector<Part>& parts) {
  Part& front = parts.front();
  const auto is_version = [](const std::string& key) {
    return key == program_version_key || key == ledger_version_key;
  };
  const auto in_front = stored_settings(*front.database);
  std::vector<std::pair<std::string, std::string>> wanted(in_front.begin(), in_front.end());
  std::stable_partition(wanted.begin(), wanted.end(), [&](const auto& setting) { return is_version(setting.first); });
  for (Part& part : parts) {
    const auto difference = first_difference(wanted, stored_settings(*part.database));
    if (!difference) continue;
    throw ConfigError(part.folder + ": " + difference->key + " is " + difference->before + " there, and " +
                      difference->now + " in " + front.folder +
                      (is_version(difference->key) ? "; join the folders of each version by themselves" : ""));
  }
  return wanted;
}

/// What is left of a run of more shards has an earlier list's slides. \throws ConfigError.
void check_shards(const std::vector<Part>& parts) {
  const Part* first = nullptr;
  std::int64_t of_first = 0;
  for (const Part& part : parts) {
    const std::int64_t shards = stored_shards(*part.database);
    if (shards == 0 || shards == of_first) continue;
    if (first != nullptr) {
      throw ConfigError(part.folder + ": has a shard of " + std::to_string(shards) + ", and " + first->folder +
                        " one of " + std::to_string(of_first) +
                        "; leave out the folders of one of these numbers, or start their shards again");
    }
    first = &part;
    of_first = shards;
  }
}

/// Says which parts know another list of slides than the shards among them.
void tell_lists(const std::vector<Part>& parts, const Places& places, MergeResult& result) {
  const auto shards = static_cast<std::size_t>(std::ranges::count(parts, true, &Part::is_shard));
  if (shards == 0) return;
  std::vector<ListHolder> holders;
  for (const Part& part : parts) {
    if (part.is_shard || part.is_joined) holders.push_back({part.folder, *part.database, part.is_shard});
  }
  std::vector<std::pair<std::string, std::string>> slides;
  for (const auto& [canonical, place] : places) {
    if (place.shards < shards) slides.emplace_back(canonical, place.path);
  }
  for (std::string& line : lines_of_lists(holders, slides)) result.warnings.push_back(std::move(line));
}

/// Adds the canonical paths of slides that ended, and that the part's last start didn't name.
void add_former(Part& part, std::unordered_set<std::string>& former) {
  Statement select(*part.database,
                   "SELECT canonical FROM slides WHERE position IS NULL AND state IN ('done', 'failed')");
  while (select.step()) former.insert(select.text(0));
}

/// Ends a merge that was told to stop.
struct Stopped {};

class Joiner {
 public:
  Joiner(Ledger& ledger, const Places& places, const std::vector<ManifestEntry>& manifest, std::size_t bins,
         const MergeOptions& options)
      : ledger_(ledger),
        places_(places),
        manifest_(manifest),
        bins_(bins),
        options_(options),
        totals_(bins),
        has_(manifest.size()) {
    for (std::size_t i = 0; i < manifest.size(); ++i) by_canonical_.emplace(manifest[i].canonical, i);
  }

  void add(Part& part) {
    const std::string file = part.database->file().string();
    Statement select(
        *part.database,
        "SELECT " + row_columns +
            ", canonical, id, size, modified, hash, side, attempts, ended_at, image_name, mine FROM slides WHERE "
            "position IS NOT NULL AND state IN ('done', 'failed')");
    constexpr int more = row_column_count;
    RowReader rows(*part.database, bins_);
    while (select.step()) {
      if (options_.stopped && options_.stopped()) throw Stopped();
      const auto found = by_canonical_.find(select.text(more));
      if (found == by_canonical_.end()) throw OutputError(file + ": changes while it is read");
      const std::size_t place = found->second;
      const Place& listed = places_.at(found->first);
      const SlideClaim claim = SlideClaim::of(select.integer(more + 9), part.is_shard);
      const bool counts = claim.standing == listed.standing;
      if ((!counts || listed.is_undone) && select.bytes(1) == "done") not_counted_.emplace(place, part.folder);
      if (!counts) continue;
      // What one has done may be of an earlier file than what another has to do.
      if (listed.is_undone) {
        (listed.is_unsettled() ? unsettled_ : undone_).insert(place);
        continue;
      }
      const bool is_leftover = claim.standing == Standing::leftover;
      if (is_leftover) leftovers_.insert(place);
      if (listed.is_unsettled()) unsettled_.insert(place);
      if (!is_leftover && !listed.is_own && listed.shards > 0) ++stand_ins_[part.folder];
      Ledger::Imported slide;
      slide.map_digest = unsigned_or_null(select, map_digest_column);
      slide.result = rows.read(select);
      slide.identity = identity_in(select, more + 2);
      slide.attempts = select.integer(more + 6);
      slide.ended_at = select.integer(more + 7);
      slide.image_name = select.text(more + 8);
      slide.is_joined = part.is_joined;
      for (Artifact& artifact : slide.result.artifacts) {
        artifact.file = artifact_elsewhere(part.folder, artifact.file, ledger_.file().parent_path());
      }
      slide.map = parts_of(*part.database, select.integer(more + 1));
      const Ledger::Import outcome = ledger_.import(place, slide);
      if (outcome == Ledger::Import::damaged) {
        const std::string& map = slide.result.map_file;
        throw OutputError(damaged_map_text(file, slide.result.path) +
                          "; the command that made it does the slide again" +
                          (map.empty() ? "" : ", once " + map_path(map) + " of its folder is deleted"));
      }
      if (outcome == Ledger::Import::different) {
        throw ConfigError(
            one_line(manifest_[place].path) + ": has another result in " + part.folder + " than in " +
            seen_[place].back().folder +
            (listed.is_joined ? "; leave joined results out, and name the folders that they joined" : ""));
      }
      if (outcome == Ledger::Import::added) totals_.add(slide.result);
      seen_[place].push_back({slide.result.done, slide.identity, slide.ended_at, part.folder});
      // Joined results have what their folders have.
      if (part.is_joined && listed.is_own) continue;
      const bool is_again = outcome == Ledger::Import::known && !has_[place].empty() && has_[place] != part.folder;
      if (is_again && slide.result.done) ++twice_;
      has_[place] = part.folder;
    }
  }
  /// For after `add` of all: finds what runs without shards ended later than a slide's shard, and otherwise, or are to
  /// repeat.
  void doubt(Part& part) {
    Statement select(*part.database,
                     "SELECT " + row_columns +
                         ", canonical, size, modified, hash, side, ended_at, mine, state IN ('done', 'failed') FROM "
                         "slides WHERE position IS NOT NULL AND ended_at IS NOT NULL");
    constexpr int more = row_column_count;
    RowReader rows(*part.database, bins_);
    while (select.step()) {
      const auto found = by_canonical_.find(select.text(more));
      if (found == by_canonical_.end()) continue;
      const auto [canonical, place] = *found;
      const Place& listed = places_.at(canonical);
      const SlideClaim run = SlideClaim::of(select.integer(more + 6), part.is_shard);
      const bool is_later = select.integer(more + 5) > listed.ended_at;
      if (run.standing != Standing::result || listed.standing != Standing::shard || listed.is_undone ||
          listed.is_unsettled() || !is_later) {
        continue;
      }
      if (select.integer(more + 7) != 0 && agrees(place, rows.read(select), select)) continue;
      if (!doubted_.insert(place).second) continue;
      SlideClaim claim = SlideClaim::of(manifest_[place].kept, false);
      claim.is_doubted = true;
      ledger_.set_kept(place, claim.mine());
    }
  }
  /// Of the same file a result goes before a failure. A failure of another file under that name, later than every
  /// result, says that these are no longer the slide's. \throws ConfigError.
  void check_failures() const {
    for (const auto& [place, seen] : seen_) {
      if (unsettled_.contains(place)) continue;
      for (const Seen& failure : seen) {
        if (failure.done || !failure.file) continue;
        const auto stands = [&failure](const Seen& one) {
          return one.done && (!one.file || one.file->same_state(*failure.file) || one.ended_at > failure.ended_at);
        };
        const auto done = std::ranges::find_if(seen, &Seen::done);
        if (done == seen.end() || std::ranges::any_of(seen, stands)) continue;
        throw ConfigError(one_line(manifest_[place].path) + ": is done in " + done->folder + ", and failed in " +
                          failure.folder + " later, as another file");
      }
    }
  }
  /// Says of missing slides whether a folder did them all the same, or once.
  void tell_not_counted(MergeResult& result) const {
    const std::set<std::string> missing(result.missing.begin(), result.missing.end());
    for (const auto& [canonical, place] : places_) {
      if (place.has_ended && missing.contains(place.path)) result.repeats.insert(place.path);
    }
    for (const auto& [place, folder] : not_counted_) {
      const std::string& path = manifest_[place].path;
      if (missing.contains(path)) result.not_counted.emplace(path, folder);
    }
  }
  /// Slides that several parts have, with the same result.
  std::size_t twice() const noexcept { return twice_; }
  /// What the ledgers don't tell for sure. Only earlier runs in other shards' folders have some slides.
  void tell_uncertain(MergeResult& result) const {
    for (const auto& [folder, count] : stand_ins_) {
      result.warnings.push_back(folder + ": " + std::to_string(count) + (count == 1 ? " slide comes" : " slides come") +
                                " from here, as no named folder's shard has " + (count == 1 ? "it" : "them") +
                                " to do; name all shards' folders, if any is newer");
    }
    result.uncertain += leftovers_.size() + doubted_.size() + unsettled_.size();
    const auto add = [&](const std::set<std::size_t>& slides, const std::string& rest) {
      if (slides.empty()) return;
      const bool is_one = slides.size() == 1;
      result.warnings.push_back(std::to_string(slides.size()) + (is_one ? " slide: " : " slides, the first: ") +
                                one_line(manifest_[*slides.begin()].path) + rest);
    };
    add(leftovers_, ": no folder's shard has this to do, so what an earlier run left counts; name all shards' folders");
    add(doubted_,
        ": a run without shards ended this later than its shard, and with another result or to repeat it; give the "
        "shard's command again, with --retry-failed if it failed, or leave that run out");
    add(unsettled_,
        ": joined results were in doubt, or don't say the same as another folder; leave them out, and name the folders "
        "that they joined");
    add(undone_,
        ": ended in one folder, and still to do in another that has it as its own; give the other's command again, or "
        "leave it out");
  }

 private:
  /// That a part has a slide.
  struct Seen {
    bool done = false;
    std::optional<SlideIdentity> file;
    std::int64_t ended_at = 0;
    std::string folder;
  };

  /// Whether what was imported of a slide says the same as a row of `doubt`, or more.
  bool agrees(std::size_t place, const SlideResult& result, const Statement& row) {
    if (result.done) return ledger_.has_imported(place, result, unsigned_or_null(row, map_digest_column));
    const std::optional<SlideIdentity> file = identity_in(row, row_column_count + 1);
    return !file || std::ranges::any_of(seen_.at(place), [&](const Seen& one) {
      return !one.done || !one.file || one.file->same_state(*file);
    });
  }

  Ledger& ledger_;
  const Places& places_;
  const std::vector<ManifestEntry>& manifest_;
  std::size_t bins_;
  const MergeOptions& options_;
  Corpus totals_;  ///< so that what can't be added up is found before anything stays
  std::size_t twice_ = 0;
  std::set<std::size_t> leftovers_;
  std::map<std::size_t, std::string> not_counted_;  ///< the first folder that did a slide and doesn't count
  std::map<std::string, std::size_t> stand_ins_;    ///< by folder: slides of shards that aren't named
  std::set<std::size_t> doubted_;    ///< ended by a run without shards later than by a shard, and otherwise
  std::set<std::size_t> unsettled_;  ///< `Place::is_unsettled`
  std::set<std::size_t> undone_;     ///< ended in one folder, and to do in another of that standing
  std::unordered_map<std::string, std::size_t> by_canonical_;
  std::vector<std::string> has_;  ///< the folder that a slide was in
  std::map<std::size_t, std::vector<Seen>> seen_;
};

Ledger::Options ledger_options_of(const MergeOptions& options) {
  Ledger::Options ledger_options;
  ledger_options.watch.on_watch = options.on_watch;
  ledger_options.watch.is_stopped = options.stopped;
  return ledger_options;
}

/// Brings the parts into the ledger, and writes the files of results. `result` has the configuration. \param is_new set
/// while the ledger is this process's, holds nothing, and wasn't there before
void join(std::vector<Part>& parts, const std::vector<std::pair<std::string, std::string>>& settings,
          const Places& places, const std::vector<ManifestEntry>& manifest, const MergeOptions& options,
          MergeResult& result, bool& is_new) {
  Ledger::Options ledger_options = ledger_options_of(options);
  ledger_options.settings = settings;
  Ledger ledger(result.config, ledger_options);
  is_new = ledger.is_new();
  for (const char* folder : {"", "maps"}) remove_leftovers(fs::path(result.config.output.dir) / folder);
  const auto bins = static_cast<std::size_t>(result.config.analysis.bins);
  Joiner joiner(ledger, places, manifest, bins, options);
  const Ledger::ListedMaps listed = ledger.listed_maps();
  const std::vector<std::string> foreign = foreign_maps(result.config, listed);
  std::unordered_set<std::string> former;
  for (Part& part : parts) add_former(part, former);
  const auto import_all = [&] {
    for (Part& part : parts) {
      // No longer than it takes: where the part's own run goes on, its writes may have to wait.
      part.database->execute("BEGIN");
      joiner.add(part);
      part.database->execute("COMMIT");
    }
    joiner.check_failures();
    for (Part& part : parts) {
      if (!part.is_shard) joiner.doubt(part);
    }
  };
  const auto check_names = [&](const std::vector<std::string>& names, const Ledger::ListedMaps& now) {
    const std::vector<std::string> files = map_files(result.config, manifest, names);
    check_maps(result.config, manifest, files, listed);
    // Before the ledger has other maps: a merge that is killed here has them written by the next.
    remove_changed_maps(result.config, listed, now, manifest, files);
  };
  ledger.join(manifest, import_all, check_names, former);
  is_new = false;
  result.twice = joiner.twice();
  joiner.tell_uncertain(result);
  // From here on the results are kept; only their files may be missing.
  try {
    for (std::string& line : spare_maps(result.config, foreign)) result.warnings.push_back(std::move(line));
    // All of them were read and found whole a moment ago.
    if (!write_missing_maps(result.config, ledger, map_files(result.config, ledger, manifest)).empty()) {
      throw OutputError(ledger.file().string() + ": damaged: a map isn't what was written");
    }
    LedgerView view(ledger, bins);
    result.missing = view.missing();
    joiner.tell_not_counted(result);
    tell_absent(view, result.config.output.dir, result);
    StoppableSlides slides(view, options.stopped);
    RunResult run = run_of(slides);
    run.interrupted = !result.missing.empty();
    result.corpus = Corpus(bins);
    write_views(result.config, run, slides, result.corpus, [&ledger] { ledger.check_place(); });
    if (options.write) options.write(result.config);
  } catch (const OutputError& error) {
    result.not_written = error.what();
  }
}

}  // namespace

MergeResult merge_ledgers(const std::vector<std::string>& folders, const std::string& out,
                          const MergeOptions& options) {
  std::vector<Part> parts;
  MergeResult result;
  for (const std::string& folder : folders) {
    std::error_code code;
    if (fs::equivalent(folder, out, code)) throw ConfigError(folder + ": is the folder for the joined results, too");
    parts.push_back(open_part(folder));
    if (const auto owner = read_owner(*parts.back().database); owner && is_alive(owner->process).value_or(true)) {
      ++result.uncertain;
      result.warnings.push_back(folder + ": its run on " + owner->process.name() + " hasn't ended");
    }
    std::string left_out = line_of_left_out(folder, *parts.back().database);
    if (!left_out.empty()) result.warnings.push_back(std::move(left_out));
  }
  const auto settings = check_settings(parts);
  check_shards(parts);
  // What doesn't decide results may differ between parts; which is kept mustn't depend on their order.
  result.config = std::ranges::min_element(parts, {}, &Part::configuration)->config;
  result.config.output.dir = out;
  Places places;
  for (Part& part : parts) add_places(*part.database, part.is_shard, part.is_joined, places);
  const std::vector<ManifestEntry> manifest = make_manifest(places);
  tell_lists(parts, places, result);
  if (manifest.empty()) result.warnings.push_back("none of the folders has a slide");

  if (options.fresh) {
    Ledger::Options ledger_options = ledger_options_of(options);
    ledger_options.on_passed_over = [&result](const std::string& line) { result.warnings.push_back(line); };
    try {
      result.aside = Ledger::move_aside(result.config, ledger_options);
    } catch (const WatchStopped&) {
      result.stopped = true;
      return result;
    }
  }
  Ledger::check_folder(result.config);
  prepare_output(result.config);
  bool is_new = false;
  try {
    join(parts, settings, places, manifest, options, result, is_new);
  } catch (const Stopped&) {
    result.stopped = true;
  } catch (const WatchStopped&) {
    result.stopped = true;
  } catch (...) {
    // What wasn't there before isn't left behind.
    std::error_code code;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      if (is_new) fs::remove((fs::path(out) / ledger_name).string() + suffix, code);
    }
    throw;
  }
  return result;
}

}  // namespace slidestream
