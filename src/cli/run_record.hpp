#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/results.hpp>

#include "cli/failure_limit.hpp"
#include "cli/run_options.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/ledger.hpp"
#include "output/views.hpp"

namespace slidestream::cli {

/// The ledger of a run and the files that are written from it, kept up to date while slides end.
class RunRecord {
 public:
  /// Opens the ledger and finds what is to be done. \throws ConfigError, OutputError: nothing was started.
  RunRecord(const Config& config, const ExpandedInputs& inputs, const RunOptions& options);
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  const LedgerStart& start() const noexcept { return start_; }
  /// Paths of the slides that are to be done. Those that a process died at, or a
  /// start ended at without memory or threads, come last.
  std::vector<std::string> todo() const;
  /// Paths of slides that are to be done behind all others, each alone: two processes died or ended without memory or
  /// threads while they worked on it, or a run ended as a file of it couldn't be written.
  std::vector<std::string> suspects() const;

  /// Connects with the run, and keeps the ledger alive and the files up to date from now on.
  void watch(RunControl& control);
  /// Before a slide is opened; any thread. Returns where its map will lie; empty without maps.
  std::filesystem::path slide_started(const std::string& path) noexcept;
  /// What is there under the names of a slide's files was checked; any thread.
  void files_begun(const std::string& path) noexcept;
  /// The run ends as a file of the slide can't be written; any thread.
  void slide_unwritten(const std::string& path) noexcept;
  /// What the names of a slide's images begin with; any thread. \throws OutputError where the ledger can't keep it: the
  /// run ends, and the slide stays to be done.
  std::string image_name(const std::string& path);
  /// Takes over a slide that ended, with its large parts. It doesn't if the run failed, or if the slide failed after
  /// --max-failures stopped the run. One call at a time, of this and of `keep_slides`.
  void slide_ended(SlideResult& slide) noexcept;
  /// Keeps the slides that ended since the last call, in one commit, and writes their maps. \returns those that are
  /// kept, without their large parts
  std::vector<SlideResult> keep_slides() noexcept;
  /// Takes note of how far the run is; any thread.
  void progressed(const Progress& progress);
  /// Results can't be written: the run ends, and the first such line is what it failed by. Any thread.
  void fail(const std::string& what);
  /// The same with what failed. \param subject  a file that it was for
  void fail(const std::exception& error, const std::string& subject);
  /// The run ends as memory or threads lack: that counts of the slides that are under way, unless it was stopped
  /// before. Any thread.
  void note_shortage() noexcept;
  bool has_shortage() const noexcept { return has_shortage_; }
  /// Bytes of a slide's file, as they were at the start.
  std::uint64_t bytes_of(const std::string& path) const;

  /// Whether the folder is still this run's; any thread.
  bool owns_folder() const noexcept { return ledger_->is_in_place(); }
  /// As `Ledger::check_place`; any thread.
  void check_place() const { ledger_->check_place(); }

  /// As `Ledger::stop_descriptor`.
  int stop_descriptor() const noexcept { return ledger_->stop_descriptor(); }

  /// Ends the watching, behind the run. Until then `failure` may be set by another thread. If the network has changed,
  /// what slides without a kept result left unfinished is removed.
  void end_watch();
  /// Writes the files for the last time; none where the folder isn't this run's any more. \throws OutputError.
  void write_files(const RunResult& run);

  /// What went wrong with the ledger or a map, which ended the run; empty: nothing.
  std::string failure() const;
  /// Why the run was stopped early on purpose; empty: it wasn't.
  std::string stopped() const;

  // What `write_files` found, also when it failed to write.
  const Corpus& corpus() const noexcept { return corpus_; }
  /// The first slides in order, for the summary.
  const std::vector<SlideResult>& first_slides() const noexcept { return first_slides_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Ended {
    std::size_t place = 0;  ///< in the manifest
    SlideResult result;
  };

  static void tell_earlier(const std::vector<Ledger::EarlierFiles>& files);
  void give_up_deadly_slides();
  std::int64_t deaths_of(std::size_t place) const;
  std::int64_t shortages_of(std::size_t place) const;
  bool is_suspect(std::size_t place) const;
  std::string reason_of_suspicion(std::size_t place) const;
  void tell_deadly_slides() const;
  void place_maps();
  void remove_maps_of(const std::vector<Ended>& slides) const;
  bool is_unnamed(const std::string& path) const;
  bool network_is_as_it_was() noexcept;
  void remove_unkept() noexcept;
  void check_failures();
  void keep_watch();
  void checkpoint();
  void note_stop();
  void write_metrics(bool running);

  const Config& config_;
  std::string metrics_file_;
  bool overwrite_;
  FailureLimit limit_;
  std::vector<std::string> map_files_;  ///< by place in the manifest; empty without maps
  std::vector<ManifestEntry> manifest_;
  NetworkGuard network_guard_;  ///< made before the ledger looks at the networks
  std::unique_ptr<Ledger> ledger_;
  LedgerStart start_;
  std::unordered_map<std::string, std::size_t> places_;   ///< in the manifest, by path, of what is to be done
  std::unordered_map<std::string, std::uint64_t> bytes_;  ///< by path, of what is to be done
  std::vector<SlideResult> given_up_;                     ///< slides that failed before anything was started
  std::vector<Ended> ended_slides_;                       ///< that aren't kept yet; the thread's that slides end on
  RunControl* control_ = nullptr;
  Clock::time_point began_ = Clock::now();
  bool noted_stop_ = false;  ///< the watcher's
  std::atomic<bool> has_shortage_ = false;
  Corpus corpus_;
  std::vector<SlideResult> first_slides_;

  mutable std::mutex mutex_;         ///< of what follows
  std::set<std::size_t> unwritten_;  ///< places of slides that the run ended at
  std::set<std::size_t> unkept_;     ///< places of slides that were started and have no result yet
  std::condition_variable changed_;
  bool ended_ = false;
  std::size_t failed_ = 0;  ///< slides, before this process too
  std::size_t failed_now_ = 0;
  std::size_t done_ = 0;  ///< the same
  std::uint64_t bytes_left_ = 0;
  Progress progress_;
  bool told_of_metrics_ = false;
  bool network_changed_ = false;
  std::unordered_set<std::string> unnamed_;  ///< paths of slides that got no name
  std::string failure_;
  std::string stopped_;
  std::thread watcher_;
};

}  // namespace slidestream::cli
