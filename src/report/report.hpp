#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slidestream::report {

/// What is to be shown, and where.
struct ReportOptions {
  std::vector<std::string> folders;  ///< results of runs, or of sweeps
  std::string html;                  ///< the file to be written
  std::string manifest;              ///< CSV with a column `cohort`; empty: none
  std::string cohort;
  std::string trace;                      ///< empty: none
  std::uint64_t most_bytes = 20'000'000;  ///< that thumbnails and maps may fill the file up to
  int threads = 1;                        ///< that decode thumbnails
  std::function<bool()> stopped;          ///< asked by any thread: true ends it, without a file. May be empty
  std::function<void(std::size_t done, std::size_t all)> on_thumbnail;  ///< from the calling thread, now and then
};

/// What was shown.
struct ReportResult {
  std::size_t slides = 0;  ///< done, failed or unfinished, of the runs' own shards
  std::size_t failed = 0;
  std::size_t unfinished = 0;
  std::size_t thumbnails = 0;
  std::size_t maps = 0;
  std::size_t sweeps = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> warnings;  ///< one line each
};

/// Writes one HTML file that shows runs and sweeps and needs nothing else. It appears whole or not at all.
/// \throws ConfigError when what is to be shown doesn't fit together or isn't what it should be; OutputError when a
/// ledger can't be read or the file can't be written; StoppedError when `ReportOptions::stopped` says so.
ReportResult write_report(const ReportOptions& options);

}  // namespace slidestream::report
