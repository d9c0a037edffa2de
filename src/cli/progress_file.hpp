#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include <slidestream/pipeline.hpp>

#include "cli/progress.hpp"
#include "ledger/owner.hpp"

namespace slidestream::cli {

/// Where a run tells how far it is: progress.json in its folder; beside an image that is written alone
/// NAME.partial.progress.json.
std::filesystem::path progress_file_of(const std::filesystem::path& folder_or_image);

/// The second of these, whatever the image is called.
std::filesystem::path progress_file_beside(const std::filesystem::path& image);

/// What such a file says; docs/images.md lists the members.
nlohmann::ordered_json progress_json(const Progress& progress, const Share& share, const ProcessIdentity& process);

/// What was read of such a file.
struct ToldProgress {
  nlohmann::ordered_json json;  ///< all of it
  ProcessIdentity process;      ///< that wrote it
  Progress progress;            ///< of images, and seconds
  double share = 0.0;           ///< of everything, done
  std::optional<double> seconds_left;
  std::int64_t updated = 0;  ///< seconds since 1970
};

/// Nothing where there is none, or something else.
std::optional<ToldProgress> read_progress(const std::filesystem::path& file);

/// Whether another process says there how far it is, and lives. One on another machine counts as living for a minute.
bool is_of_another(const std::filesystem::path& file);

/// Keeps such a file up to date while a run works, from a thread of its own, at most once a second; a run that takes
/// less than that has none. It goes with the run, and stays where a process dies. What can't be written is told once.
class ProgressFile {
 public:
  /// Removes an earlier file or link; anything else stays. \param ours  whether it may be written and removed; asked
  /// before each time.
  ProgressFile(std::filesystem::path file, std::function<bool()> ours);
  /// Ours where it isn't another's (`is_of_another`).
  explicit ProgressFile(const std::filesystem::path& file)
      : ProgressFile(file, [file] { return !is_of_another(file); }) {}
  ~ProgressFile() { end(); }
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;

  /// Takes note; never waits for storage. Any thread.
  void update(const Progress& progress, const Share& share);
  /// Removes the file.
  void end() noexcept;

 private:
  void loop();
  void write(const Progress& progress, const Share& share);
  void remove() const noexcept;

  std::filesystem::path file_;
  std::function<bool()> ours_;
  ProcessIdentity process_ = this_process();
  bool told_ = false;  ///< of a failure; the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;      // guarded by mutex_
  Share share_;            // guarded by mutex_
  bool is_there_ = false;  // guarded by mutex_
  bool ended_ = false;     // guarded by mutex_
  std::thread thread_;
};

}  // namespace slidestream::cli
