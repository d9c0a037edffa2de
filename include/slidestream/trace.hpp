#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// @file
/// Recordings of a run: when each stage worked, and when each GPU computed and copied. All times are nanoseconds since
/// the recording began. All data is in host memory.

namespace slidestream {

/// One piece of a stage's work on one host thread.
struct TraceRange {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;   ///< bytes read or made; 0: not counted
  std::int32_t slide = -1;   ///< position in the input; -1: none
  std::int32_t batch = -1;   ///< number of the batch within its slide, from 0; -1: none
  std::uint32_t name = 0;    ///< index into `Trace::names`: the stage
  std::uint32_t thread = 0;  ///< from 0, in the order in which threads recorded their first ranges
};

/// One piece of a GPU's work.
struct DeviceRecord {
  /// `upload` and `download` are copies over the bus. `device_copy` is a copy within a GPU or between two GPUs. `fill`
  /// is a memset.
  enum class Kind : std::uint8_t { kernel, upload, download, device_copy, fill };

  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;   ///< copied or filled
  std::uint32_t name = 0;    ///< index into `Trace::names`: the kernel, or the kind of copy
  std::uint32_t device = 0;  ///< CUDA's number of the device
  std::uint32_t stream = 0;
  Kind kind = Kind::kernel;
};

/// A finished recording. The ranges of a thread are in the order in which they ended.
struct Trace {
  std::vector<std::string> names;
  std::vector<TraceRange> ranges;
  std::vector<DeviceRecord> device_records;
  std::uint64_t dropped_ranges = 0;          ///< ranges that found no room
  std::uint64_t dropped_device_records = 0;  ///< GPU records that found no room
  std::string device_warning;                ///< one line that says why GPU records are missing; else empty
};

/// Records the stages of this process from construction to `finish`, in host memory. Only one recording can exist at a
/// time. Other threads may work meanwhile; the object itself belongs to one thread.
class TraceRecording {
 public:
  /// What a recording holds.
  struct Options {
    bool devices = true;                              ///< records GPUs, too; ignored in a build without CUDA
    std::size_t most_ranges = std::size_t{1} << 21;   ///< room for ranges: 40 bytes each, allocated as they come
    std::size_t most_records = std::size_t{1} << 21;  ///< the same for GPU records
  };

  /// Begins a recording.
  /// @param options  Devices and room.
  /// @throws Error  Another recording exists.
  explicit TraceRecording(const Options& options);
  /// Begins a recording with the default options.
  TraceRecording() : TraceRecording(Options{}) {}
  ~TraceRecording();
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  /// Ends the recording. Ranges that haven't ended yet are left out.
  /// @return The recorded ranges and GPU records.
  /// @throws std::logic_error  The recording has been finished before.
  Trace finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How well one GPU was kept busy. Here, "copies" are the copies over the bus.
struct DeviceOverlap {
  std::uint32_t device = 0;
  double seconds = 0.0;               ///< from the start of its first kernel to the end of its last
  double kernel_seconds = 0.0;        ///< time in which at least one kernel ran
  double copy_seconds = 0.0;          ///< time in which at least one copy ran
  double copy_hidden_seconds = 0.0;   ///< time in which a copy and a kernel ran
  double copy_covered_seconds = 0.0;  ///< time in which a copy ran, and a kernel or a host stage worked
  double longest_gap_start = 0.0;     ///< seconds since the recording began
  double longest_gap_seconds = 0.0;   ///< longest time between two kernels
  /// The host stage, "upload" or "download" that filled most of that gap; empty if nothing did.
  std::string waited_for;
};

/// The overlap of a run.
struct Overlap {
  std::vector<DeviceOverlap> devices;  ///< by number

  /// Share of the copies' time in which a kernel of the same GPU ran.
  /// @return 0 to 1; nothing without copies.
  std::optional<double> copy_hidden_share() const;
  /// Share of the copies' time in which a kernel of the same GPU ran or a host stage worked.
  /// @return 0 to 1; nothing without copies.
  std::optional<double> copy_covered_share() const;
  /// Share of the GPUs' time, `DeviceOverlap::seconds`, in which they computed.
  /// @return 0 to 1; 0 without kernels.
  double busy_share() const;
  /// Finds the device with the longest gap. `devices` must not be empty.
  /// @return One of `devices`.
  const DeviceOverlap& longest_gap() const;
};

/// Computes the overlap of a trace. Thread-safe.
/// @param trace  A finished recording.
/// @return Nothing if the trace has neither a kernel nor a copy over the bus.
std::optional<Overlap> find_overlap(const Trace& trace);

/// Checks that `write_trace` can make a file. Call it before a run.
/// @param file  Path of the file.
/// @throws OutputError  The file can't be made. The message names what is in the way.
void check_trace_file(const std::string& file);

/// Writes a trace as JSON in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing show. Each host
/// thread and each stream of a GPU is a row. The file appears whole or not at all.
/// @param file  Path of the file.
/// @param trace  A finished recording.
/// @param slides  Paths of the slides in input order.
/// @throws OutputError  The file can't be written.
void write_trace(const std::string& file, const Trace& trace, const std::vector<std::string>& slides);

}  // namespace slidestream
