#include "runtime/overlap.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace slidestream {
namespace runtime {

IntervalSet united(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& interval) { return interval.end <= interval.start; });
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  IntervalSet set;
  for (const Interval& interval : intervals) {
    if (set.empty() || interval.start > set.back().end) {
      set.push_back(interval);
    } else {
      set.back().end = std::max(set.back().end, interval.end);
    }
  }
  return set;
}

std::int64_t measure(const IntervalSet& set) {
  std::int64_t sum = 0;
  for (const Interval& interval : set) sum += interval.end - interval.start;
  return sum;
}

std::int64_t common_measure(const IntervalSet& a, const IntervalSet& b) {
  std::int64_t sum = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    sum += std::max<std::int64_t>(0, std::min(i->end, j->end) - std::max(i->start, j->start));
    (i->end < j->end ? i : j)++;
  }
  return sum;
}

Interval longest_gap(const IntervalSet& set) {
  Interval longest;
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Interval gap{set[i - 1].end, set[i].start};
    if (gap.end - gap.start > longest.end - longest.start) longest = gap;
  }
  return longest;
}

}  // namespace runtime

namespace {

using runtime::Interval;

constexpr double seconds_of(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

bool crosses_the_bus(const DeviceRecord& record) {
  return record.kind == DeviceRecord::Kind::upload || record.kind == DeviceRecord::Kind::download;
}

/// What fills a gap, by name.
class Fillers {
 public:
  explicit Fillers(const Interval& gap) : gap_(gap) {}

  void add(const std::string& name, std::int64_t start_ns, std::int64_t end_ns) {
    const Interval part{std::max(start_ns, gap_.start), std::min(end_ns, gap_.end)};
    if (part.end > part.start) parts_[name].push_back(part);
  }

  /// The one that is there for most of the gap; among equals the one with more threads at it. Stages beside the one
  /// that is waited for are there as well, but now and then.
  std::string largest() const {
    std::string name;
    std::int64_t most_there = 0;
    std::int64_t most_work = 0;
    for (const auto& [candidate, parts] : parts_) {
      const std::int64_t there = measure(runtime::united(parts));
      std::int64_t work = 0;
      for (const Interval& part : parts) work += part.end - part.start;
      if (there > most_there || (there == most_there && work > most_work)) {
        name = candidate;
        most_there = there;
        most_work = work;
      }
    }
    return name;
  }

 private:
  Interval gap_;
  std::map<std::string, std::vector<Interval>> parts_;
};

std::string filler_of(const Interval& gap, const Trace& trace, std::uint32_t device) {
  Fillers fillers(gap);
  for (const TraceRange& range : trace.ranges) fillers.add(trace.names[range.name], range.start_ns, range.end_ns);
  for (const DeviceRecord& record : trace.device_records) {
    if (record.device == device && crosses_the_bus(record)) {
      fillers.add(record.kind == DeviceRecord::Kind::upload ? "upload" : "download", record.start_ns, record.end_ns);
    }
  }
  return fillers.largest();
}

/// One device's kernels and copies.
struct DeviceIntervals {
  std::vector<Interval> kernels;
  std::vector<Interval> copies;
};

DeviceOverlap overlap_of(std::uint32_t device, const DeviceIntervals& intervals, const runtime::IntervalSet& host,
                         const Trace& trace) {
  const runtime::IntervalSet kernels = runtime::united(intervals.kernels);
  const runtime::IntervalSet copies = runtime::united(intervals.copies);
  std::vector<Interval> all = kernels;
  all.insert(all.end(), host.begin(), host.end());
  const runtime::IntervalSet work = runtime::united(std::move(all));

  DeviceOverlap overlap;
  overlap.device = device;
  // Not from the first copy: tables go up long before the first slide.
  if (!kernels.empty()) overlap.seconds = seconds_of(kernels.back().end - kernels.front().start);
  overlap.kernel_seconds = seconds_of(measure(kernels));
  overlap.copy_seconds = seconds_of(measure(copies));
  overlap.copy_hidden_seconds = seconds_of(common_measure(copies, kernels));
  overlap.copy_covered_seconds = seconds_of(common_measure(copies, work));
  const Interval gap = runtime::longest_gap(kernels);
  if (gap.end > gap.start) {
    overlap.longest_gap_start = seconds_of(gap.start);
    overlap.longest_gap_seconds = seconds_of(gap.end - gap.start);
    overlap.waited_for = filler_of(gap, trace, device);
  }
  return overlap;
}

std::optional<double> share_of_copies(const std::vector<DeviceOverlap>& devices, double DeviceOverlap::*seconds) {
  double copies = 0.0;
  double part = 0.0;
  for (const DeviceOverlap& device : devices) {
    copies += device.copy_seconds;
    part += device.*seconds;
  }
  if (copies <= 0.0) return std::nullopt;
  return part / copies;
}

}  // namespace

std::optional<double> Overlap::copy_hidden_share() const {
  return share_of_copies(devices, &DeviceOverlap::copy_hidden_seconds);
}

std::optional<double> Overlap::copy_covered_share() const {
  return share_of_copies(devices, &DeviceOverlap::copy_covered_seconds);
}

double Overlap::busy_share() const {
  double seconds = 0.0;
  double busy = 0.0;
  for (const DeviceOverlap& device : devices) {
    seconds += device.seconds;
    busy += device.kernel_seconds;
  }
  return seconds > 0.0 ? busy / seconds : 0.0;
}

const DeviceOverlap& Overlap::longest_gap() const {
  return *std::max_element(devices.begin(), devices.end(), [](const DeviceOverlap& a, const DeviceOverlap& b) {
    return a.longest_gap_seconds < b.longest_gap_seconds;
  });
}

std::optional<Overlap> find_overlap(const Trace& trace) {
  std::map<std::uint32_t, DeviceIntervals> devices;
  for (const DeviceRecord& record : trace.device_records) {
    const Interval interval{record.start_ns, record.end_ns};
    if (record.kind == DeviceRecord::Kind::kernel) devices[record.device].kernels.push_back(interval);
    if (crosses_the_bus(record)) devices[record.device].copies.push_back(interval);
  }
  if (devices.empty()) return std::nullopt;
  std::vector<Interval> ranges;
  ranges.reserve(trace.ranges.size());
  for (const TraceRange& range : trace.ranges) ranges.push_back({range.start_ns, range.end_ns});
  const runtime::IntervalSet host = runtime::united(std::move(ranges));
  Overlap overlap;
  for (const auto& [device, intervals] : devices) overlap.devices.push_back(overlap_of(device, intervals, host, trace));
  return overlap;
}

}  // namespace slidestream
