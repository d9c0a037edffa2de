#include "report/timeline.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
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
    if (!std::isfinite(*start + *length)) return;
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
  TraceReader(Work& work, const std::string& file, const std::function<bool()>& stopped)
      : work_(work), file_(file), stopped_(stopped) {}

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
    if (stopped_ && stopped_()) throw StoppedError(file_ + ": was being read when the report gave it up");
    work_.add(event_);
  }

  Work& work_;
  const std::string& file_;
  const std::function<bool()>& stopped_;
  Member member_ = Member::unknown;
  bool is_trace_ = false;
  bool is_dropped_ = false;
  bool is_event_ = false;
  Event event_;
  std::string* text_ = nullptr;              ///< what of the event the next value is
  std::optional<double>* number_ = nullptr;  ///< the same
};

Work read_work(const std::string& file, const std::function<bool()>& stopped) {
  errno = 0;
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    throw ConfigError(file + ": not a regular file");
  }
  std::ifstream opened(file, std::ios::binary);
  if (!opened) throw ConfigError(file + ": " + std::strerror(errno));
  Work work;
  TraceReader reader(work, file, stopped);
  BoundedJson bounded(*opened.rdbuf());
  std::istream in(&bounded);
  bool is_json = false;
  try {
    is_json = nlohmann::json::sax_parse(in, &reader);
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(file + ": isn't a trace: it " + error.what());
  }
  if (!is_json) throw ConfigError(file + ": isn't a trace: it is no JSON, or broken off");
  if (!reader.is_trace()) throw ConfigError(file + ": isn't a trace");
  if (work.pieces.empty()) throw ConfigError(file + ": isn't a trace: it has no event with a length");
  return work;
}

/// Adds up pieces of work over the steps of the time.
class Load {
 public:
  explicit Load(std::size_t steps) : parts_(steps, 0.0), changes_(steps + 1, 0) {}

  /// \param from  in steps, as `to`
  void add(double from, double to) {
    const auto last = static_cast<double>(parts_.size() - 1);
    if (!(from <= to)) return;
    const double first_step = std::clamp(std::floor(from), 0.0, last);
    const double last_step = std::clamp(std::ceil(to) - 1.0, first_step, last);
    add_part(first_step, from, to);
    if (last_step == first_step) return;
    add_part(last_step, from, to);
    // Those between are filled.
    ++changes_[static_cast<std::size_t>(first_step) + 1];
    --changes_[static_cast<std::size_t>(last_step)];
  }

  std::vector<double> take() {
    std::int64_t filled = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      filled += changes_[i];
      parts_[i] += static_cast<double>(filled);
    }
    return std::move(parts_);
  }

 private:
  void add_part(double step, double from, double to) {
    parts_[static_cast<std::size_t>(step)] += std::max(0.0, std::min(to, step + 1.0) - std::max(from, step));
  }

  std::vector<double> parts_;          ///< of pieces that fill a step in part
  std::vector<std::int64_t> changes_;  ///< of the number of pieces that fill a step, from the one before it
};

/// Walks over all starts and ends in order, and adds up what ran at the same time.
void find_overlap_of_rows(Work& work) {
  struct Change {
    double at;
    std::uint32_t row;
    int by;
  };
  struct Running {
    int pieces = 0;
    double since = 0.0;    ///< it runs
    double several = 0.0;  ///< what `several` was then
  };
  std::vector<Change> changes;
  changes.reserve(work.pieces.size() * 2);
  for (const Piece& piece : work.pieces) {
    changes.push_back({piece.start, piece.row, 1});
    changes.push_back({piece.end, piece.row, -1});
  }
  // Ends before starts of the same moment.
  std::ranges::sort(changes, [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.by < b.by; });
  std::vector<Running> running(work.rows.size());
  int rows_running = 0;
  double several = 0.0;  ///< the time so far in which more than one row ran
  double before = changes.front().at;
  for (const Change& change : changes) {
    if (rows_running > 1) several += change.at - before;
    before = change.at;
    TimelineRow& row = work.rows[change.row];
    Running& now = running[change.row];
    const bool was = now.pieces > 0;
    now.pieces += change.by;
    const bool is = now.pieces > 0;
    if (!was && is) {
      now.since = change.at;
      now.several = several;
    } else if (was && !is) {
      row.busy_seconds += (change.at - now.since) * 1e-6;
      row.overlapped_seconds += (several - now.several) * 1e-6;
    }
    rows_running += static_cast<int>(is) - static_cast<int>(was);
    row.most = std::max(row.most, now.pieces);
  }
}

}  // namespace

Timeline read_timeline(const std::string& file, std::size_t steps, const std::function<bool()>& stopped) {
  Work work = read_work(file, stopped);
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  std::vector<double> first_of_row(work.rows.size(), first);
  for (const Piece& piece : work.pieces) {
    first = std::min(first, piece.start);
    last = std::max(last, piece.end);
    first_of_row[piece.row] = std::min(first_of_row[piece.row], piece.start);
  }
  const double step = std::max((last - first) / static_cast<double>(steps), 1e-3);
  std::vector<Load> loads(work.rows.size(), Load(steps));
  for (const Piece& piece : work.pieces) {
    loads[piece.row].add((piece.start - first) / step, (piece.end - first) / step);
  }
  for (std::size_t row = 0; row < loads.size(); ++row) work.rows[row].load = loads[row].take();
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
