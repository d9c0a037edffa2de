#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace slidestream {

/// One run of a sweep, a row of sweep.csv.
struct SweepRow {
  std::string date;
  std::string version;
  std::string host;
  std::string processor;
  std::string gpu;                    ///< empty on the CPU
  std::string inputs;                 ///< what the slides are, as a hash of their files' paths, sizes and times
  std::string swept;                  ///< the keys that the sweep varies, with blanks between
  std::string cache;                  ///< "warm" or "cold", as was asked for
  std::string phase;                  ///< "grid", or "confirm": the winner and the base once more
  std::string status;                 ///< "done", "refused" (doesn't fit, or can't be run here), "failed"
  std::string reason;                 ///< of those
  std::vector<std::string> settings;  ///< in the order of `sweep_keys`
  std::string base;                   ///< "yes" or "no"
  std::string backend;
  std::string results;  ///< hash of everything that the run found
  double seconds = 0.0;
  std::uint64_t slides = 0;
  std::uint64_t pixels = 0;
  std::uint64_t bytes_read = 0;
  struct Stage {
    std::string name;
    double busy = 0.0;  ///< share of the threads' or GPUs' time
    double wait = 0.0;  ///< share of the batches' time with the stage
  };
  std::vector<Stage> stages;
  std::optional<double> gpu_busy;        ///< of a traced run
  std::optional<double> copies_hidden;   ///< of a traced run
  std::optional<double> copies_covered;  ///< of a traced run
  std::optional<std::uint64_t> peak_host_bytes;
  std::uint64_t gpu_bytes = 0;          ///< of all GPUs together
  std::optional<double> cached_before;  ///< share of the slides' bytes in the page cache when the run began
};

/// sweep.csv: one row a run, each on the disk before the next run begins. Belongs to one process at a time.
class SweepFile {
 public:
  /// Opens or makes `folder`/sweep.csv and reads its rows; a last row that is cut off is taken away.
  /// \throws OutputError when it can't be used, or isn't such a file; ConfigError when another process has it.
  explicit SweepFile(const std::filesystem::path& folder);
  ~SweepFile();
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::vector<SweepRow>& rows() const noexcept { return rows_; }
  /// All of the row, or nothing. \throws OutputError.
  void add(const SweepRow& row);

 private:
  void read();
  void write(const std::string& text);
  void take_back(off_t end) noexcept;
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::vector<SweepRow> rows_;
};

}  // namespace slidestream
