#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// \file
/// When each stage worked, and when each GPU computed and copied: recorded while slides run, to see what overlaps.
/// Times are nanoseconds since the recording began.

namespace slidestream {

/// One piece of a stage's work on one thread of the host.
struct TraceRange {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;   ///< that it read or made; 0 where that isn't counted
  std::int32_t slide = -1;   ///< position in the input; -1: none
  std::int32_t batch = -1;   ///< number of the batch within its slide, from 0; -1: none
  std::uint32_t name = 0;    ///< index into `Trace::names`: the stage
  std::uint32_t thread = 0;  ///< from 0, in the order of their first ranges
};

/// One piece of a GPU's work.
struct DeviceRecord {
  /// Copies that cross the bus are `upload` and `download`; those that stay on a GPU or go between two are
  /// `device_copy`; a `fill` is a memset.
  enum class Kind : std::uint8_t { kernel, upload, download, device_copy, fill };

  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;   ///< copied or filled
  std::uint32_t name = 0;    ///< index into `Trace::names`: the kernel; of the others what they are
  std::uint32_t device = 0;  ///< as CUDA numbers them
  std::uint32_t stream = 0;
  Kind kind = Kind::kernel;
};

/// What was recorded. Ranges of one thread follow each other in the order in which they ended.
struct Trace {
  std::vector<std::string> names;
  std::vector<TraceRange> ranges;
  std::vector<DeviceRecord> device_records;
  std::uint64_t dropped_ranges = 0;          ///< that found no room any more
  std::uint64_t dropped_device_records = 0;  ///< likewise
  std::string device_warning;                ///< one line: why there are no GPU records although they were asked for
};

/// Records everything that this process does from construction to `finish`, in memory. One at a time.
class TraceRecording {
 public:
  struct Options {
    bool devices = true;                              ///< GPUs too; without CUDA in this build it means nothing
    std::size_t most_ranges = std::size_t{1} << 21;   ///< room for ranges: 40 bytes each, taken as they come
    std::size_t most_records = std::size_t{1} << 21;  ///< the same for GPU records
  };

  /// \throws Error while another one records.
  explicit TraceRecording(const Options& options);
  TraceRecording() : TraceRecording(Options{}) {}
  ~TraceRecording();
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  /// Ends the recording and gives what it holds; ranges that haven't ended are not among it. Once.
  Trace finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How well one GPU was kept busy, from its first kernel to its last. "Copies" are those that cross the bus.
struct DeviceOverlap {
  std::uint32_t device = 0;
  double seconds = 0.0;               ///< from the start of its first kernel to the end of its last
  double kernel_seconds = 0.0;        ///< in which at least one kernel ran
  double copy_seconds = 0.0;          ///< in which at least one copy ran
  double copy_hidden_seconds = 0.0;   ///< in which a copy and a kernel ran
  double copy_covered_seconds = 0.0;  ///< in which a copy ran, and a kernel or a stage of the host worked as well
  double longest_gap_start = 0.0;     ///< seconds since the recording began
  double longest_gap_seconds = 0.0;   ///< longest time between two kernels
  /// What filled most of that gap: a stage of the host, or "upload" or "download"; empty when nothing did.
  std::string waited_for;
};

/// The overlap of a run.
struct Overlap {
  std::vector<DeviceOverlap> devices;  ///< by number

  /// Share of the copies' time in which a kernel of the same GPU ran; nothing without copies.
  std::optional<double> copy_hidden_share() const;
  /// The same with work on the host, which hides copies where the GPU has time to spare.
  std::optional<double> copy_covered_share() const;
  /// Share of the GPUs' time in which they computed.
  double busy_share() const;
  /// The device with the longest gap. There is at least one device.
  const DeviceOverlap& longest_gap() const;
};

/// Works the overlap out; nothing when the trace has no kernel and no copy.
std::optional<Overlap> find_overlap(const Trace& trace);

/// Checks that `write_trace` can make the file: to be called before a run. \throws OutputError naming what is in the
/// way.
void check_trace_file(const std::string& file);

/// Writes the trace as JSON in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing show: a row a
/// thread of the host, a row a stream of each GPU. `slides` are the paths in input order. The file appears whole or not
/// at all. \throws OutputError.
void write_trace(const std::string& file, const Trace& trace, const std::vector<std::string>& slides);

}  // namespace slidestream
