#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slidestream::report {

/// One stage of the host, or one kind of a GPU's work, over the time of a trace.
struct TimelineRow {
  std::string name;
  std::string kind;                 ///< "host", "kernel" or "copy"
  int most = 0;                     ///< pieces of work at a time, at most
  double busy_seconds = 0.0;        ///< in which at least one piece of work ran
  double overlapped_seconds = 0.0;  ///< of them, in which another row worked too
  /// For each of equal steps of the time, pieces of work at a time on average.
  std::vector<double> load;
};

/// A recorded run, drawn together.
struct Timeline {
  double seconds = 0.0;
  std::vector<TimelineRow> rows;
  std::uint64_t dropped = 0;  ///< pieces of work that weren't recorded
};

/// Reads a trace as `write_trace` writes it, and draws it together in `steps` steps of the time. Rows stand in the
/// order of their first work, the host's first. What it takes grows with the pieces of work, however long they are and
/// however many rows there are. \throws ConfigError when the file can't be read or isn't a trace; StoppedError
/// \param stopped  asked at each piece of work: true ends it. May be empty
Timeline read_timeline(const std::string& file, std::size_t steps, const std::function<bool()>& stopped = {});

}  // namespace slidestream::report
