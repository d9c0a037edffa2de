#include "report/timeline.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>

#include "config/bounded_json.hpp"

namespace slidestream::report {

namespace {

/// Where the host's threads are in a trace; GPU n is the process after it plus n.
constexpr int host_process = 1;

/// As many as a run records of the host and of GPUs.
constexpr std::size_t most_pieces = std::size_t{1} << 22;
constexpr std::size_t most_rows = 1024;
constexpr std::size_t most_name_bytes = 256;

/// A piece of work, in microseconds.
struct Piece {
  double start = 0.0;
  double end = 0.0;
  std::uint32_t row = 0;
};

/// What is told of a piece of work.
struct Event {
  std::string phase;
  std::string category;
  std::string name;
  std::optional<double> start;
  std::optional<double> length;
  std::optional<double> process;
};

struct Work {
  std::vector<TimelineRow> rows;
  std::vector<Piece> pieces;
  std::map<std::pair<int, std::string>, std::uint32_t> places;  ///< of rows by process and name
  std::uint64_t dropped = 0;

  void add(const Event& event) {
    const auto& [phase, category, event_name, start, length, process] = event;
    if (phase != "X") return;
    if (!start || !length || !process || !(*length >= 0) || !(*process >= 0) || *process > 1000) return;
    if (pieces.size() == most_pieces) throw Error("has more than " + std::to_string(most_pieces) + " pieces of work");
    const int pid = static_cast<int>(*process);
    const bool kernel = category == "kernel";
    const std::string name = kernel && pid != host_process ? "kernels" : event_name;
    const auto [place, is_new] = places.try_emplace({pid, name}, static_cast<std::uint32_t>(rows.size()));
    if (is_new) {
      if (rows.size() == most_rows) throw Error("has more than " + std::to_string(most_rows) + " kinds of work");
      if (name.size() > most_name_bytes) {
        throw Error("has a name of more than " + std::to_string(most_name_bytes) + " bytes");
      }
      TimelineRow row;
      row.name = pid == host_process ? name : "GPU " + std::to_string(pid - host_process - 1) + " " + name;
      row.kind = pid == host_process ? "host" : kernel ? "kernel" : "copy";
      rows.push_back(std::move(row));
    }
    pieces.push_back({*start, *start + *length, place->second});
  }
};

/// A trace may be larger than memory should hold as JSON: each event is looked at and forgotten.
class TraceReader final : public JsonWalker {
 public:
  explicit TraceReader(Work& work) : work_(work) {}

  bool is_trace() const { return is_trace_; }

 private:
  enum class Member { events, other_data, unknown };

  void on_key(const std::string& name) override {
    if (depth() == 1) {
      member_ = name == "traceEvents" ? Member::events : name == "otherData" ? Member::other_data : Member::unknown;
      if (member_ == Member::events) is_trace_ = true;
      is_dropped_ = false;
    } else if (depth() == 2) {
      is_dropped_ = name == "dropped_ranges" || name == "dropped_device_records";
    } else if (depth() == 3 && is_event_) {
      text_ = name == "ph" ? &event_.phase : name == "cat" ? &event_.category : name == "name" ? &event_.name : nullptr;
      number_ = name == "ts"    ? &event_.start
                : name == "dur" ? &event_.length
                : name == "pid" ? &event_.process
                                : nullptr;
    }
  }

  void on_value(const nlohmann::json& value) override {
    if (depth() == 2 && member_ == Member::other_data && is_dropped_ && value.is_number_unsigned()) {
      work_.dropped += value.get<std::uint64_t>();
    }
    if (depth() != 3 || !is_event_) return;
    if (text_ != nullptr) *text_ = value.is_string() ? value.get_ref<const std::string&>() : std::string();
    if (number_ != nullptr) *number_ = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }

  void on_start(bool is_object) override {
    if (depth() != 2) return;
    is_event_ = is_object && member_ == Member::events;
    event_ = {};
  }

  void on_end() override {
    if (depth() != 2 || !is_event_) return;
    is_event_ = false;
    work_.add(event_);
  }

  Work& work_;
  Member member_ = Member::unknown;
  bool is_trace_ = false;
  bool is_dropped_ = false;
  bool is_event_ = false;
  Event event_;
  std::string* text_ = nullptr;              ///< what of the event the next value is
  std::optional<double>* number_ = nullptr;  ///< the same
};

Work read_work(const std::string& file) {
  errno = 0;
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    throw ConfigError(file + ": not a regular file");
  }
  std::ifstream opened(file, std::ios::binary);
  if (!opened) throw ConfigError(file + ": " + std::strerror(errno));
  Work work;
  TraceReader reader(work);
  BoundedJson bounded(*opened.rdbuf());
  std::istream in(&bounded);
  bool is_json = false;
  try {
    is_json = nlohmann::json::sax_parse(in, &reader);
  } catch (const Error& error) {
    throw ConfigError(file + ": isn't a trace: it " + error.what());
  }
  if (!is_json) throw ConfigError(file + ": isn't a trace: it is no JSON, or broken off");
  if (!reader.is_trace()) throw ConfigError(file + ": isn't a trace");
  if (work.pieces.empty()) throw ConfigError(file + ": isn't a trace: it has no event with a length");
  return work;
}

void add_load(std::vector<double>& load, double from, double to) {
  const auto last = static_cast<double>(load.size() - 1);
  for (double step = std::clamp(std::floor(from), 0.0, last); step <= last && step < to; step += 1.0) {
    load[static_cast<std::size_t>(step)] += std::max(0.0, std::min(to, step + 1.0) - std::max(from, step));
  }
}

/// Walks over all starts and ends in order, and adds up what ran at the same time.
void find_overlap_of_rows(Work& work) {
  struct Change {
    double at;
    std::uint32_t row;
    int by;
  };
  std::vector<Change> changes;
  changes.reserve(work.pieces.size() * 2);
  for (const Piece& piece : work.pieces) {
    changes.push_back({piece.start, piece.row, 1});
    changes.push_back({piece.end, piece.row, -1});
  }
  // Ends before starts of the same moment.
  std::ranges::sort(changes, [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.by < b.by; });
  std::vector<int> running(work.rows.size(), 0);
  int rows_running = 0;
  double before = changes.front().at;
  for (const Change& change : changes) {
    const double seconds = (change.at - before) * 1e-6;
    if (seconds > 0 && rows_running > 0) {
      for (std::size_t row = 0; row < running.size(); ++row) {
        if (running[row] <= 0) continue;
        work.rows[row].busy_seconds += seconds;
        if (rows_running > 1) work.rows[row].overlapped_seconds += seconds;
      }
    }
    before = change.at;
    int& count = running[change.row];
    const bool was = count > 0;
    count += change.by;
    rows_running += static_cast<int>(count > 0) - static_cast<int>(was);
    work.rows[change.row].most = std::max(work.rows[change.row].most, count);
  }
}

}  // namespace

Timeline read_timeline(const std::string& file, std::size_t steps) {
  Work work = read_work(file);
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  std::vector<double> first_of_row(work.rows.size(), first);
  for (const Piece& piece : work.pieces) {
    first = std::min(first, piece.start);
    last = std::max(last, piece.end);
    first_of_row[piece.row] = std::min(first_of_row[piece.row], piece.start);
  }
  const double step = std::max((last - first) / static_cast<double>(steps), 1e-3);
  for (TimelineRow& row : work.rows) row.load.assign(steps, 0.0);
  for (const Piece& piece : work.pieces) {
    add_load(work.rows[piece.row].load, (piece.start - first) / step, (piece.end - first) / step);
  }
  find_overlap_of_rows(work);

  std::vector<std::size_t> order(work.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(work.rows[i].kind != "host", first_of_row[i]); });
  Timeline timeline;
  timeline.seconds = (last - first) * 1e-6;
  timeline.dropped = work.dropped;
  for (const std::size_t i : order) timeline.rows.push_back(std::move(work.rows[i]));
  return timeline;
}

}  // namespace slidestream::report
