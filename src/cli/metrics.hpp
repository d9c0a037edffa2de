#pragma once

#include <cstdint>
#include <string>

namespace slidestream::cli {

/// A moment of a run over an archive, for Prometheus.
struct Metrics {
  std::string out;  ///< folder for results: the label of every figure
  std::uint64_t slides = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t skipped = 0;
  std::uint64_t bytes = 0;       ///< of the files of all slides
  std::uint64_t bytes_left = 0;  ///< of those to be done
  std::uint64_t pixels = 0;
  std::uint64_t bytes_read = 0;
  double seconds = 0.0;
  double seconds_left = -1.0;  ///< below 0: not known
  std::int64_t time = 0;       ///< seconds since 1970
  bool running = true;
};

/// The text of a file for node_exporter's textfile collector.
std::string metrics_text(const Metrics& metrics);

}  // namespace slidestream::cli
