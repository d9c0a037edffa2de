#include "cli/run_record.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "cli/left_images.hpp"
#include "cli/metrics.hpp"
#include "cli/own_files.hpp"
#include "cli/run_record_start.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/under_way.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/identity.hpp"
#include "ledger/ledger_view.hpp"
#include "ledger/map_files.hpp"
#include "ledger/owner.hpp"
#include "ledger/shard.hpp"
#include "ledger/stored_map.hpp"
#include "output/atomic_file.hpp"
#include "output/folders.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;

constexpr auto time_between_beats = std::chrono::seconds(10);
constexpr auto time_between_metrics = std::chrono::seconds(5);
/// Slides that the summary shows.
constexpr std::size_t most_in_summary = 20;
/// A checkpoint takes no more than about this share of a run.
constexpr int rest_per_work = 20;

}  // namespace

RunRecord::RunRecord(const Config& config, const ExpandedInputs& inputs, const RunOptions& options)
    : config_(config),
      metrics_file_(options.metrics),
      overwrite_(options.overwrite),
      limit_(FailureLimit::parse(options.max_failures)),
      manifest_(make_manifest(inputs, options)),
      network_guard_(config),
      corpus_(static_cast<std::size_t>(config.analysis.bins)) {
  slides_under_way().reset();
  Ledger::Options ledger_options;
  ledger_options.watch = owner_watch(options);
  ledger_options.on_passed_over = [](const std::string& line) { spdlog::warn("{}", line); };
  if (options.fresh) {
    if (const std::string aside = Ledger::move_aside(config, ledger_options); !aside.empty()) {
      prepare_output(config);
      spdlog::info("{}: the earlier run is there now", aside);
    }
  }
  ledger_ = std::make_unique<Ledger>(config, ledger_options);
  if (config.output.maps != MapFormat::none) make_folder(fs::path(config.output.dir) / "maps");
  for (const char* folder : {"", "maps", "images", "features", "coords"}) {
    remove_leftovers(fs::path(config.output.dir) / folder);
  }
  start_ = ledger_->begin(manifest_, options.retry_failed, options.overwrite ? offer_to_overwrite : "",
                          options.shard.empty() ? 0 : parse_shard(options.shard).count);
  map_files_ = map_files(config, *ledger_, manifest_);
  check_map_places(config.output.dir, map_files_);
  place_maps();
  if (!options.retry_failed) give_up_deadly_slides();
  remove_left_images(config, ledger_->left_slides());
  failed_ = start_.failed;
  done_ = start_.done;
  bytes_left_ = start_.bytes_left;
  for (std::size_t i = 0; i < start_.todo.size(); ++i) {
    const std::string& path = manifest_[start_.todo[i]].path;
    places_.emplace(path, start_.todo[i]);
    bytes_.emplace(path, start_.todo_bytes[i]);
  }
  log_skipped(config, start_, manifest_.size(), ledger_->failed_by(offer_to_overwrite));
  tell_deadly_slides();
  log_other_results(config, start_);
  failed_ += given_up_.size();
  start_.failed += given_up_.size();
}

RunRecord::~RunRecord() {
  end_watch();
  slides_under_way().end_all();
}

/// Brings the folder of maps to what the ledger says.
void RunRecord::place_maps() {
  if (map_files_.empty()) return;
  if (!overwrite_) {
    const std::vector<std::string> foreign = foreign_maps(config_, ledger_->listed_maps());
    for (const std::string& line : spare_maps(config_, foreign)) spdlog::warn("{}", line);
  }
  for (const std::size_t place : write_missing_maps(config_, *ledger_, map_files_)) {
    const std::string& path = manifest_[place].path;
    start_.damaged.push_back(damaged_map_text(ledger_->file(), path));
    ledger_->redo(place);
    const auto found = look_at(path);
    const std::uint64_t bytes = found ? found->size : 0;
    const auto at = std::ranges::lower_bound(start_.todo, place) - start_.todo.begin();
    start_.todo.insert(start_.todo.begin() + at, place);
    start_.todo_bytes.insert(start_.todo_bytes.begin() + at, bytes);
    start_.bytes_left += bytes;
    --start_.done;
  }
}

void RunRecord::watch(RunControl& control) {
  control_ = &control;
  began_ = Clock::now();
  watcher_ = std::thread([this] { keep_watch(); });
}

void RunRecord::end_watch() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  remove_unkept();
  write_metrics(false);
}

/// Images with holes, or of slides that failed or were under way, and their lists: some may be the changed network's.
void RunRecord::remove_unkept() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!network_changed_ || !owns_folder()) return;
    Ledger::LeftSlides left;
    for (const std::size_t place : unkept_) left.names.insert(ledger_->image_name(place));
    remove_left_images(config_, left);
  } catch (const std::exception& error) {
    spdlog::warn("{}: unfinished files are left: {}", config_.output.dir, error.what());
  }
}

fs::path RunRecord::slide_started(const std::string& path) noexcept {
  slide_was_begun = true;
  slides_under_way().begin(path);
  try {
    const std::size_t place = places_.at(path);
    {
      const std::lock_guard lock(mutex_);
      unkept_.insert(place);
    }
    ledger_->started(place);
    if (!map_files_.empty()) return fs::path(config_.output.dir) / map_path(map_files_.at(place));
  } catch (const std::exception& error) {
    fail(error, path);
  }
  return {};
}

void RunRecord::files_begun(const std::string& path) noexcept {
  try {
    ledger_->files_begun(places_.at(path));
  } catch (const std::exception& error) {
    fail(error, path);
  }
}

void RunRecord::slide_unwritten(const std::string& path) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    unwritten_.insert(places_.at(path));
  } catch (const std::exception&) {
    // Then it is tried among the others again.
  }
}

std::string RunRecord::image_name(const std::string& path) {
  try {
    return ledger_->image_name(places_.at(path));
  } catch (const std::exception& error) {
    fail(error, path);
    const std::lock_guard lock(mutex_);
    unnamed_.insert(path);
    throw;
  }
}

bool RunRecord::is_unnamed(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return unnamed_.contains(path);
}

/// Else the run ends: what was computed may be of either network.
bool RunRecord::network_is_as_it_was() noexcept {
  try {
    if (network_guard_.is_as_it_was(ledger_->settings())) return true;
    fail(network_setting(config_) +
         ": the network's files have changed while the run was under way; what was computed " +
         "since the last slide isn't kept");
    const std::lock_guard lock(mutex_);
    network_changed_ = true;
  } catch (const std::exception& error) {
    fail(error, config_.output.dir);
  }
  return false;
}

void RunRecord::slide_ended(SlideResult& slide) noexcept {
  slides_under_way().end(slide.path);
  // It didn't fail: the run did.
  if (is_unnamed(slide.path)) return;
  // What fails behind the limit, being under way, isn't recorded: the next start tries it.
  if (!slide.done && !stopped().empty()) return;
  if (!network_is_as_it_was()) {
    if (owns_folder()) remove_artifacts(config_.output.dir, slide.artifacts);
    return;
  }
  try {
    const std::size_t place = places_.at(slide.path);
    ledger_->check_unchanged(place, slide);
    if (slide.done && !map_files_.empty()) slide.map_file = map_files_[place];
    WindowMap map = std::exchange(slide.map, {});
    SpectrumSums sums = std::exchange(slide.sums, {});
    ended_slides_.push_back({place, slide});
    ended_slides_.back().result.map = std::move(map);
    ended_slides_.back().result.sums = std::move(sums);
    const std::lock_guard lock(mutex_);
    unkept_.erase(place);
  } catch (const std::exception& error) {
    return fail(error, slide.path);
  }
  if (slide.complete()) return;
  {
    const std::lock_guard lock(mutex_);
    ++failed_now_;
  }
  check_failures();
}

void RunRecord::tell_earlier(const std::vector<Ledger::EarlierFiles>& files) {
  for (const auto& [path, where] : files) {
    if (!where.folder.empty()) spdlog::warn("{}: files of its earlier result are in {}", path, where.folder.string());
    if (!where.refusal.empty()) spdlog::warn("{}: no table lists its earlier result: {}", path, where.refusal);
  }
}

std::vector<SlideResult> RunRecord::keep_slides() noexcept {
  std::vector<SlideResult> kept;
  const std::vector<Ended> slides = std::exchange(ended_slides_, {});
  const std::string* subject = &config_.output.dir;
  try {
    std::vector<Ledger::Ended> ended;
    ended.reserve(slides.size());
    for (const Ended& slide : slides) ended.push_back({slide.place, &slide.result});
    remove_maps_of(slides);
    tell_earlier(ledger_->keep(ended));
    for (const auto& [place, slide] : slides) {
      SlideResult& told = kept.emplace_back(slide);
      // The ledger has them; a long run mustn't.
      told.map = {};
      told.sums = {};
      const std::lock_guard lock(mutex_);
      ++(slide.done ? done_ : failed_);
      bytes_left_ -= bytes_of(slide.path);
    }
    for (const auto& [place, slide] : slides) {
      if (!slide.done || map_files_.empty()) continue;
      subject = &slide.path;
      const std::string& name = map_files_[place];
      write_map(config_, slide, name.substr(0, name.rfind('.')));
    }
  } catch (const std::exception& error) {
    fail(error, *subject);
  }
  return kept;
}

/// A map is written behind its row. One of before would pass for it where the process dies in between.
void RunRecord::remove_maps_of(const std::vector<Ended>& slides) const {
  for (const auto& [place, slide] : slides) {
    if (!slide.done || map_files_.empty()) continue;
    const fs::path file = fs::path(config_.output.dir) / map_path(map_files_[place]);
    std::error_code code;
    if (fs::is_regular_file(fs::symlink_status(file, code))) fs::remove(file, code);
  }
}

void RunRecord::progressed(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}

std::uint64_t RunRecord::bytes_of(const std::string& path) const {
  const auto found = bytes_.find(path);
  return found == bytes_.end() ? 0 : found->second;
}

void RunRecord::fail(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = what;
  if (control_ != nullptr) control_->request_stop();
}

void RunRecord::fail(const std::exception& error, const std::string& subject) {
  if (is_shortage(error)) note_shortage();
  fail(cause_of(error, subject));
}

void RunRecord::note_shortage() noexcept {
  // What a stop leaves is no slide's fault.
  if (SignalScope::received() != 0 || has_shortage_.exchange(true)) return;
  has_ended_in_shortage = true;
  ledger_->note_shortage();
  slides_under_way().note();
}

void RunRecord::check_failures() {
  const std::lock_guard lock(mutex_);
  if (!stopped_.empty() || !limit_.reached(failed_now_, start_.mine)) return;
  stopped_ = "stopped by --max-failures " + limit_.text();
  if (control_ != nullptr) control_->request_stop();
}

std::string RunRecord::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string RunRecord::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void RunRecord::keep_watch() {
  const auto pause = std::chrono::seconds(config_.output.checkpoint_seconds);
  auto next_beat = Clock::now() + time_between_beats;
  auto next_metrics = Clock::now();
  auto next_checkpoint = Clock::now() + pause;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return ended_; })) return;
    }
    note_stop();
    try {
      if (Clock::now() >= next_beat) {
        next_beat = Clock::now() + time_between_beats;
        ledger_->beat();
      }
      ledger_->enter_starts();
    } catch (const std::exception& error) {
      fail(error, config_.output.dir);
    }
    if (Clock::now() >= next_metrics) {
      next_metrics = Clock::now() + time_between_metrics;
      write_metrics(true);
    }
    if (pause.count() > 0 && Clock::now() >= next_checkpoint) {
      const auto begin = Clock::now();
      checkpoint();
      next_checkpoint = Clock::now() + std::max<Clock::duration>(pause, (Clock::now() - begin) * rest_per_work);
    }
  }
}

/// A run of a program is stopped without a signal of ours. One that ends by itself goes on to judge its slides.
void RunRecord::note_stop() {
  if (noted_stop_ || control_ == nullptr || !control_->stop_requested()) return;
  if (!failure().empty() || !stopped().empty()) return;
  ledger_->note_stop();
  noted_stop_ = true;
}

void RunRecord::write_metrics(bool running) {
  if (metrics_file_.empty()) return;
  Metrics metrics;
  {
    const std::lock_guard lock(mutex_);
    metrics.done = done_;
    metrics.failed = failed_;
    metrics.bytes_left = bytes_left_;
    metrics.pixels = progress_.pixels;
    metrics.bytes_read = progress_.bytes_read;
  }
  metrics.out = config_.output.dir;
  metrics.slides = start_.mine;
  metrics.skipped = start_.done;
  metrics.bytes = start_.bytes;
  metrics.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const std::uint64_t bytes_done = start_.bytes_left - metrics.bytes_left;
  // What has ended early comes to no end.
  if (bytes_done > 0 && (running || metrics.bytes_left == 0)) {
    metrics.seconds_left = metrics.seconds * static_cast<double>(metrics.bytes_left) / static_cast<double>(bytes_done);
  }
  metrics.time = unix_now();
  metrics.running = running;
  try {
    AtomicFile file(metrics_file_);
    file.write(metrics_text(metrics));
    file.commit();
  } catch (const OutputError& error) {
    // Once: nobody's results depend on it.
    if (!std::exchange(told_of_metrics_, true)) spdlog::warn("{}", error.what());
  }
}

void RunRecord::checkpoint() {
  try {
    // The folder may be another's by now.
    ledger_->beat();
  } catch (const std::exception& error) {
    return fail(error, config_.output.dir);
  }
  try {
    RunResult run;
    run.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    run.interrupted = true;
    LedgerView view(*ledger_, static_cast<std::size_t>(config_.analysis.bins));
    Corpus corpus(static_cast<std::size_t>(config_.analysis.bins));
    write_views(config_, run, view, corpus, [this] { ledger_->check_place(); });
  } catch (const std::exception& error) {
    // The ledger has everything; the files are written again.
    spdlog::warn("{}", cause_of(error, config_.output.dir));
  }
}

namespace {

/// Passes slides on and keeps the first.
class FirstKept final : public SlideSource {
 public:
  FirstKept(SlideSource& slides, std::vector<SlideResult>& first) : slides_(slides), first_(first) {}

  void for_each(const std::function<void(const SlideResult&)>& visit) override {
    const bool keep = std::exchange(keep_, false);
    slides_.for_each([&](const SlideResult& slide) {
      if (keep && first_.size() < most_in_summary) first_.push_back(slide);
      visit(slide);
    });
  }
  std::map<std::string, std::string> deciding() override { return slides_.deciding(); }

 private:
  SlideSource& slides_;
  std::vector<SlideResult>& first_;
  bool keep_ = true;
};

}  // namespace

void RunRecord::write_files(const RunResult& run) {
  if (ledger_->is_lost()) return;
  std::string first_failure;
  try {
    if (!unwritten_.empty()) ledger_->note_unwritten(unwritten_);
    if (failure().empty() && !write_missing_maps(config_, *ledger_, map_files_).empty()) {
      first_failure =
          ledger_->file().string() + ": damaged: a map isn't what was written; the same command does it again";
    }
  } catch (const OutputError& error) {
    first_failure = error.what();
  }
  LedgerView view(*ledger_, static_cast<std::size_t>(config_.analysis.bins));
  FirstKept slides(view, first_slides_);
  write_views(config_, run, slides, corpus_, [this] { ledger_->check_place(); });
  if (!first_failure.empty()) throw OutputError(first_failure);
}

}  // namespace slidestream::cli
