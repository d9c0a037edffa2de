#include "report/timeline.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>

namespace slidestream::report {

namespace {

using Json = nlohmann::json;

/// Where the host's threads are in a trace; GPU n is the process after it plus n.
constexpr int host_process = 1;

/// A piece of work, in microseconds.
struct Piece {
  double start = 0.0;
  double end = 0.0;
  std::uint32_t row = 0;
};

struct Work {
  std::vector<TimelineRow> rows;
  std::vector<Piece> pieces;
  std::map<std::pair<int, std::string>, std::uint32_t> places;  ///< of rows by process and name
  std::uint64_t dropped = 0;

  void add(const Json& event) {
    const auto text = [&](const char* key) {
      const auto found = event.find(key);
      return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto real = [&](const char* key) -> std::optional<double> {
      const auto found = event.find(key);
      if (found == event.end() || !found->is_number()) return std::nullopt;
      return found->get<double>();
    };
    if (text("ph") != "X") return;
    const auto start = real("ts");
    const auto length = real("dur");
    const auto process = real("pid");
    if (!start || !length || !process || !(*length >= 0) || !(*process >= 0) || *process > 1000) return;
    const int pid = static_cast<int>(*process);
    const std::string category = text("cat");
    const bool kernel = category == "kernel";
    const std::string name = pid == host_process ? text("name") : kernel ? "kernels" : text("name");
    const auto [place, is_new] = places.try_emplace({pid, name}, static_cast<std::uint32_t>(rows.size()));
    if (is_new) {
      TimelineRow row;
      row.name = pid == host_process ? name : "GPU " + std::to_string(pid - host_process - 1) + " " + name;
      row.kind = pid == host_process ? "host" : kernel ? "kernel" : "copy";
      rows.push_back(std::move(row));
    }
    pieces.push_back({*start, *start + *length, place->second});
  }
};

/// A trace may be larger than memory should hold as JSON: each event is looked at and forgotten.
Work read_work(const std::string& file) {
  errno = 0;
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    throw ConfigError(file + ": not a regular file");
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError(file + ": " + std::strerror(errno));
  Work work;
  bool in_events = false;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) in_events = parsed == "traceEvents";
    if (depth == 2 && in_events && event == Json::parse_event_t::object_end) {
      work.add(parsed);
      return false;
    }
    return true;
  };
  try {
    const Json rest = Json::parse(in, look);
    const Json other = rest.is_object() ? rest.value("otherData", Json::object()) : Json();
    if (!rest.is_object() || !rest.contains("traceEvents")) throw ConfigError(file + ": isn't a trace");
    for (const char* key : {"dropped_ranges", "dropped_device_records"}) {
      if (other.is_object() && other.contains(key) && other[key].is_number_unsigned()) {
        work.dropped += other[key].get<std::uint64_t>();
      }
    }
  } catch (const Json::exception&) {
    throw ConfigError(file + ": isn't a trace: it is no JSON, or broken off");
  }
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
