#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/trace.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/dump_json.hpp"
#include "output/atomic_file.hpp"

namespace slidestream {

namespace {

/// Rows of the host are threads of this process in the file; GPU n is the process after it plus n.
constexpr int host_process = 1;

/// JSON text of any bytes: those that aren't UTF-8 become U+FFFD.
std::string json_string(const std::string& text) { return dump_json(nlohmann::json(text), -1); }

/// Events as text, handed to the file in pieces: a trace can be larger than what should be held twice.
class EventWriter {
 public:
  explicit EventWriter(AtomicFile& file) : file_(file) { text_.reserve(most_ + 4096); }

  EventWriter& operator<<(std::string_view text) {
    text_ += text;
    if (text_.size() >= most_) flush();
    return *this;
  }
  EventWriter& operator<<(std::integral auto number) {
    std::array<char, 24> digits{};
    return *this << std::string_view(digits.data(),
                                     std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }

  /// Microseconds, which the format counts in, to the nanosecond.
  EventWriter& microseconds(std::int64_t nanoseconds) {
    if (nanoseconds < 0) {
      *this << "-";
      nanoseconds = -nanoseconds;
    }
    const std::string thousandths = std::to_string(1000 + nanoseconds % 1000);
    return *this << nanoseconds / 1000 << "." << std::string_view(thousandths).substr(1);
  }

  /// What stands before every event but the first.
  EventWriter& begin() {
    *this << (first_ ? "\n" : ",\n");
    first_ = false;
    return *this;
  }

  void flush() {
    file_.write(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t most_ = std::size_t{1} << 20;

  AtomicFile& file_;
  std::string text_;
  bool first_ = true;
};

/// Names a row or a group of rows; groups and rows are shown in the order of `place`.
void write_name(EventWriter& out, std::string_view what, int process, std::uint32_t row, const std::string& name,
                std::size_t place) {
  out.begin() << R"({"ph":"M","name":")" << what << R"(_name","pid":)" << process << R"(,"tid":)" << row
              << R"(,"args":{"name":)" << json_string(name) << "}}";
  out.begin() << R"({"ph":"M","name":")" << what << R"(_sort_index","pid":)" << process << R"(,"tid":)" << row
              << R"(,"args":{"sort_index":)" << place << "}}";
}

void write_times(EventWriter& out, std::int64_t start_ns, std::int64_t end_ns) {
  out << R"(,"ts":)";
  out.microseconds(start_ns) << R"(,"dur":)";
  out.microseconds(end_ns - start_ns);
}

/// A thread's row says which stages it works for, those of the same work beside each other.
void write_host_rows(EventWriter& out, const Trace& trace) {
  std::map<std::uint32_t, std::set<std::uint32_t>> stages_of_thread;
  for (const TraceRange& range : trace.ranges) stages_of_thread[range.thread].insert(range.name);
  std::set<std::pair<std::set<std::uint32_t>, std::uint32_t>> rows;
  for (const auto& [thread, stages] : stages_of_thread) rows.emplace(stages, thread);
  write_name(out, "process", host_process, 0, "host", 0);
  std::size_t place = 0;
  for (const auto& [stages, thread] : rows) {
    std::string name = "thread " + std::to_string(thread) + ":";
    for (const std::uint32_t stage : stages) name += " " + trace.names[stage];
    write_name(out, "thread", host_process, thread, name, place++);
  }
}

void write_host_ranges(EventWriter& out, const Trace& trace, const std::vector<std::string>& names) {
  for (const TraceRange& range : trace.ranges) {
    out.begin() << R"({"ph":"X","cat":"stage","name":)" << names[range.name] << R"(,"pid":)" << host_process
                << R"(,"tid":)" << range.thread;
    write_times(out, range.start_ns, range.end_ns);
    out << R"(,"args":{)";
    const char* separator = "";
    const auto argument = [&](std::string_view name, auto value, bool there) {
      if (!there) return;
      out << separator << "\"" << name << "\":" << value;
      separator = ",";
    };
    argument("slide", range.slide, range.slide >= 0);
    argument("batch", range.batch, range.batch >= 0);
    argument("bytes", range.bytes, range.bytes > 0);
    out << "}}";
  }
}

void write_device_rows(EventWriter& out, const Trace& trace) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> streams;
  for (const DeviceRecord& record : trace.device_records) streams.emplace(record.device, record.stream);
  int last_process = 0;
  for (const auto& [device, stream] : streams) {
    const int process = host_process + 1 + static_cast<int>(device);
    if (process != last_process) {
      write_name(out, "process", process, 0, "GPU " + std::to_string(device), device + 1);
      last_process = process;
    }
    write_name(out, "thread", process, stream, "stream " + std::to_string(stream), stream);
  }
}

std::string_view category(DeviceRecord::Kind kind) {
  switch (kind) {
    case DeviceRecord::Kind::kernel:
      return "kernel";
    case DeviceRecord::Kind::upload:
    case DeviceRecord::Kind::download:
    case DeviceRecord::Kind::device_copy:
      return "copy";
    case DeviceRecord::Kind::fill:
      return "fill";
  }
  return "";
}

void write_device_records(EventWriter& out, const Trace& trace, const std::vector<std::string>& names) {
  for (const DeviceRecord& record : trace.device_records) {
    out.begin() << R"({"ph":"X","cat":")" << category(record.kind) << R"(","name":)" << names[record.name]
                << R"(,"pid":)" << host_process + 1 + static_cast<int>(record.device) << R"(,"tid":)" << record.stream;
    write_times(out, record.start_ns, record.end_ns);
    if (record.kind != DeviceRecord::Kind::kernel) out << R"(,"args":{"bytes":)" << record.bytes << "}";
    out << "}";
  }
}

}  // namespace

void check_trace_file(const std::string& file) { AtomicFile::check(file); }

void write_trace(const std::string& file, const Trace& trace, const std::vector<std::string>& slides) {
  std::vector<std::string> names;
  for (const std::string& name : trace.names) names.push_back(json_string(name));
  AtomicFile atomic(file);
  EventWriter out(atomic);
  out << R"({"displayTimeUnit":"ms","otherData":{"dropped_ranges":)" << trace.dropped_ranges
      << R"(,"dropped_device_records":)" << trace.dropped_device_records << R"(,"slides":[)";
  for (std::size_t i = 0; i < slides.size(); ++i) out << (i == 0 ? "" : ",") << json_string(slides[i]);
  out << R"(]},"traceEvents":[)";
  write_host_rows(out, trace);
  write_host_ranges(out, trace, names);
  write_device_rows(out, trace);
  write_device_records(out, trace, names);
  out << "\n]}\n";
  out.flush();
  atomic.commit();
}

}  // namespace slidestream
