#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>
#include <slidestream/trace.hpp>
#include <string>
#include <vector>

#include "report/cohorts.hpp"
#include "report/sweep_table.hpp"
#include "report/timeline.hpp"
#include "runtime/machine.hpp"

using namespace slidestream;
using namespace slidestream::report;

namespace {

namespace fs = std::filesystem;

/// A folder that goes away again.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "report-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = fs::canonical(name);
  }
  ~Folder() {
    std::error_code code;
    fs::remove_all(path_, code);
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("cohorts come from a manifest's column, by the file behind the path") {
  const Folder folder;
  const std::string manifest =
      folder.file("m.csv", "stain,path\r\nH&E,a.svs\r\n\"I,HC\",./sub/../b.svs\r\n,c.svs\r\nx\r\n");
  const Cohorts cohorts(manifest, "stain");
  CHECK(cohorts.of(folder.path("a.svs")) == "H&E");
  CHECK(cohorts.of(folder.path("b.svs")) == "I,HC");
  CHECK(cohorts.of(folder.path("c.svs")) == "");
  CHECK(cohorts.of(folder.path("d.svs")) == "");
  const std::string marked = folder.file("marked.csv", "\xef\xbb\xbfsep=;\r\nstain;path\r\nH&E;a.svs\r\n");
  CHECK(Cohorts(marked, "stain").of(folder.path("a.svs")) == "H&E");
  CHECK_THROWS_WITH_AS(Cohorts(manifest, "stains"), doctest::Contains("did you mean 'stain'"), ConfigError);
  // A decimal comma would shift what follows it.
  CHECK_THROWS_WITH_AS(Cohorts(folder.file("wide.csv", "path,mpp,stain\na.svs,1,25,H&E\n"), "stain"),
                       doctest::Contains("wide.csv:2: 4 fields, but the header has 3;"), ConfigError);
  CHECK_THROWS_AS(Cohorts(folder.path("none.csv"), "stain"), ConfigError);
  CHECK_THROWS_AS(Cohorts(folder.file("empty.csv", ""), "stain"), ConfigError);
}

TEST_CASE("a sweep's combinations, their medians and what didn't run") {
  const SweepTable table = read_sweep(
      "swept,phase,base,status,reason,pipeline.threads,pipeline.queue_depth,seconds\r\n"
      "pipeline.queue_depth,grid,no,done,,2,1,3.0\r\n"
      "pipeline.queue_depth,grid,no,done,,2,1,1.0\r\n"
      "pipeline.queue_depth,grid,no,done,,2,1,2.5\r\n"
      "pipeline.queue_depth,grid,no,refused,doesn't fit,2,64,\r\n"
      "pipeline.queue_depth,confirm,no,done,,2,1,99\r\n"
      "pipeline.queue_depth,grid,yes,done,,2,4,2\r\n",
      "sweep.csv");
  REQUIRE(table.keys == std::vector<std::string>{"pipeline.queue_depth"});
  REQUIRE(table.points.size() == 3);
  CHECK(table.points[0].median() == 2.5);
  CHECK(table.points[0].seconds.size() == 3);
  CHECK(table.points[1].seconds.empty());
  CHECK(table.points[1].note == "doesn't fit");
  CHECK(table.points[2].base);
  CHECK(table.points[0].again == std::vector<double>{99});
  CHECK_FALSE(verdict_of(table).has_value());
}

TEST_CASE("runs after the choice alone decide whether the winner is faster than the base") {
  const std::string header = "swept,phase,base,a.x,seconds\n";
  const std::string grid = "a.x,grid,no,1,1.0\na.x,grid,no,2,2.0\na.x,grid,yes,3,3.0\n";
  std::string again;
  for (const char* seconds : {"1.1", "1.2", "1.3", "1.4"}) again += std::string("a.x,confirm,no,1,") + seconds + "\n";
  CHECK_FALSE(verdict_of(read_sweep(header + grid + again, "sweep.csv")).has_value());
  std::string slower;
  for (const char* seconds : {"1.5", "1.6", "1.7", "1.9"}) slower += std::string("a.x,confirm,yes,3,") + seconds + "\n";
  const auto faster = verdict_of(read_sweep(header + grid + again + slower, "sweep.csv"));
  REQUIRE(faster.has_value());
  CHECK(faster->winner == 0);
  CHECK(faster->times.winner.median == doctest::Approx(1.25));
  CHECK(faster->times.base.median == doctest::Approx(1.65));
  CHECK(faster->times.base.runs == 4);
  CHECK(faster->times.probability == doctest::Approx(1.0 / 70));
  CHECK(faster->times.significant);
  // An earlier start may have chosen another one, slower in the grid.
  const auto chosen = verdict_of(read_sweep(header + grid + "a.x,confirm,no,2,0.1\n" + again + slower, "sweep.csv"));
  REQUIRE(chosen.has_value());
  CHECK(chosen->winner == 0);
}

TEST_CASE("of a sweep that doesn't say what it varied, the keys that vary count") {
  const SweepTable table = read_sweep("a.x,a.y,seconds\n1,2,3\n1,4,5\n", "sweep.csv");
  CHECK(table.keys == std::vector<std::string>{"a.y"});
  CHECK(read_sweep("a.x,seconds\n1,2\n", "sweep.csv").keys == std::vector<std::string>{"a.x"});
  CHECK_THROWS_AS(read_sweep("a,b\n1,2\n", "sweep.csv"), ConfigError);
  CHECK_THROWS_AS(read_sweep("", "sweep.csv"), ConfigError);
}

TEST_CASE("a damaged sweep is refused by its line, and a last row that is cut off is passed over") {
  const std::string whole = "status,a.x,a.y,seconds\r\ndone,1,2,3\r\nrefused,1,4,\r\n";
  const auto fault = [&whole](const std::string& more) -> std::string {
    try {
      read_sweep(whole + more, "sweep.csv");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(fault("").empty());
  const std::string control = "sweep.csv:4: a control character; this program's sweeps have none";
  CHECK(fault(std::string("done,1,\0,5\r\n", 12)) == control);
  CHECK(fault("done,1,\x1b[2J,5\r\n") == control);
  CHECK(fault("done,1,\x7f,5\r\n") == control);
  for (const char* seconds : {"", "nan", "inf", "-1", "0", "1e9", "3 s"}) {
    CAPTURE(seconds);
    CHECK(fault(std::string("done,1,6,") + seconds + "\r\n") == "sweep.csv:4: has no time");
  }
  CHECK(fault("refused,1,6,nan\r\n") == "sweep.csv:4: has no time");
  CHECK(fault("done,1,6\r\n") == "sweep.csv:4: has 3 fields, not 4");
  CHECK(fault("done,1,6,7,8\r\n") == "sweep.csv:4: has 5 fields, not 4");
  CHECK(fault(std::string(1 << 20, 'x')) == "sweep.csv:4: has 1 fields, not 4");
  CHECK(fault("done,1").empty());
  CHECK(read_sweep(whole + "done,1", "sweep.csv").points.size() == 2);
}

TEST_CASE("what no sweep wrote is refused without reading its rows, and so are more combinations than one has") {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      read_sweep(text, "sweep.csv");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  // A fault in a row that isn't reached.
  CHECK(fault("a\na\n\"never closed") ==
        "sweep.csv: isn't a sweep's: expected columns named after settings, and seconds");
  std::string many = "a.x,seconds\n";
  for (int i = 0; i <= 20'000; ++i) many += std::to_string(i) + ",1\n";
  CHECK(fault(many) == "sweep.csv: has more combinations than a sweep: 20001 of 1 settings");
  std::string header;
  for (int i = 0; i < 256; ++i) header += "a." + std::to_string(i) + ",";
  std::string row(255, ',');
  CHECK(fault(header + "seconds\n" + row + ",1\n").empty());
  CHECK(fault(header + "a.256,seconds\n\"never closed") ==
        "sweep.csv: isn't a sweep's: has more than 256 columns named after settings");
  std::string wide = header + "seconds\n";
  for (int i = 0; i <= 500'000 / 256; ++i) wide += std::to_string(i) + row + ",1\n";
  CHECK(fault(wide).empty());
  for (int i = 0; i < 256; ++i) row.insert(static_cast<std::size_t>(2 * i), "1");
  wide += row + ",1\n";
  CHECK(fault(wide) == "sweep.csv: has more combinations than a sweep: 1954 of 256 settings");
  const std::string names = "a.x,swept,seconds\n1,";
  CHECK(fault(names + std::string(65'536, 'x') + ",1\n").empty());
  CHECK(fault(names + std::string(65'537, 'x') + ",1\n") == "sweep.csv:2: swept names more than a sweep can vary");
}

TEST_CASE("a timeline has the stages of a trace, what was busy and what overlapped") {
  Trace trace;
  trace.names = {"read", "decode", "fused", "upload"};
  // Milliseconds: read 0-4 and, on another thread, 2-6; decode 5-10; a kernel 20-30 with an upload 25-30.
  trace.ranges = {{.start_ns = 0, .end_ns = 4'000'000, .name = 0, .thread = 0},
                  {.start_ns = 2'000'000, .end_ns = 6'000'000, .name = 0, .thread = 1},
                  {.start_ns = 5'000'000, .end_ns = 10'000'000, .name = 1, .thread = 0}};
  trace.device_records = {
      {.start_ns = 20'000'000, .end_ns = 30'000'000, .name = 2, .stream = 7},
      {.start_ns = 25'000'000, .end_ns = 30'000'000, .name = 3, .kind = DeviceRecord::Kind::upload}};
  trace.dropped_ranges = 5;
  const Folder folder;
  write_trace(folder.path("trace.json"), trace, {"slide.svs"});
  const Timeline timeline = read_timeline(folder.path("trace.json"), 30);
  CHECK(timeline.seconds == doctest::Approx(0.030));
  CHECK(timeline.dropped == 5);
  REQUIRE(timeline.rows.size() == 4);
  const TimelineRow& read = timeline.rows[0];
  CHECK(read.name == "read");
  CHECK(read.kind == "host");
  CHECK(read.most == 2);
  CHECK(read.busy_seconds == doctest::Approx(0.006));
  CHECK(read.overlapped_seconds == doctest::Approx(0.001));
  CHECK(read.load[0] == doctest::Approx(1.0));
  CHECK(read.load[3] == doctest::Approx(2.0));
  CHECK(read.load[6] == doctest::Approx(0.0));
  CHECK(timeline.rows[2].name == "GPU 0 kernels");
  CHECK(timeline.rows[2].overlapped_seconds == doctest::Approx(0.005));
  CHECK(timeline.rows[3].name == "GPU 0 upload");
  CHECK(timeline.rows[3].kind == "copy");
}

TEST_CASE("what isn't a trace is refused") {
  const Folder folder;
  CHECK_THROWS_AS(read_timeline(folder.path("none"), 10), ConfigError);
  for (const char* text : {"", "[]", "{}", "{\"traceEvents\":[", "{\"traceEvents\":[]}", "{\"traceEvents\":[1,{}]}",
                           "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":\"1\",\"dur\":2,\"pid\":1}]}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_timeline(folder.file("t.json", text), 10), ConfigError);
  }
}

TEST_CASE("a trace's other members and nested ones are passed over") {
  const Folder folder;
  const Timeline timeline = read_timeline(
      folder.file("t.json", R"({"more":{"dropped_ranges":7,"traceEvents":[{"ph":"X","ts":0,"dur":9,"pid":1}]},)"
                            R"("otherData":{"dropped_ranges":2,"slides":["dropped_ranges",8]},"traceEvents":[1,)"
                            R"([{"ph":"X","ts":0,"dur":9,"pid":1,"name":"no"}],{"name":"read","ph":"X","ts":1,)"
                            R"("args":{"name":"no","dur":100},"dur":2,"pid":1}]})"),
      10);
  REQUIRE(timeline.rows.size() == 1);
  CHECK(timeline.rows[0].name == "read");
  CHECK(timeline.seconds == doctest::Approx(2e-6));
  CHECK(timeline.dropped == 2);
}

TEST_CASE("what a trace takes grows with its pieces of work, not with how long they are") {
  const Folder folder;
  std::string text = "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":250000,\"dur\":500000,\"pid\":1,\"name\":\"b\"}";
  constexpr int pieces = 20'000;
  for (int i = 0; i < pieces; ++i) text += R"(,{"ph":"X","ts":0,"dur":1000000,"pid":1,"name":"a"})";
  const std::string file = folder.file("long.json", text + "]}");
  // Piece by piece and step by step these are 2 x 10^10 additions.
  const Timeline fine = read_timeline(file, 1'000'000);
  CHECK(fine.rows[0].load[500'000] == doctest::Approx(pieces));
  const Timeline timeline = read_timeline(file, 10);
  REQUIRE(timeline.rows.size() == 2);
  CHECK(timeline.rows[0].load == std::vector<double>(10, pieces));
  CHECK(timeline.rows[1].load == std::vector<double>{0, 0, 0.5, 1, 1, 1, 1, 0.5, 0, 0});
  CHECK(timeline.rows[0].most == pieces);
  CHECK(timeline.rows[0].busy_seconds == doctest::Approx(1.0));
  CHECK(timeline.rows[0].overlapped_seconds == doctest::Approx(0.5));
  CHECK(timeline.rows[1].busy_seconds == doctest::Approx(0.5));
  CHECK(timeline.rows[1].overlapped_seconds == doctest::Approx(0.5));
  CHECK_THROWS_AS(read_timeline(file, 10, [] { return true; }), StoppedError);
}

TEST_CASE("a trace that would take much memory is refused, or read without it") {
  const Folder folder;
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"a\":";
  const std::string nested = folder.file("nested.json", deep);
  const bool is_counted = runtime::reset_peak_memory();
  const std::uint64_t before = runtime::peak_memory().value_or(0);
  CHECK_THROWS_WITH_AS(read_timeline(nested, 10), doctest::Contains("it is no JSON, or broken off"), ConfigError);
  if (is_counted) CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{16} << 20));

  const std::string text = folder.file("text.json", "{\"a\":\"" + std::string(std::size_t{2} << 20, 'a') + "\"}");
  CHECK_THROWS_WITH_AS(
      read_timeline(text, 10),
      (text + ": isn't a trace: it has a text, a number or a gap of more than 1 MiB at byte 6").c_str(), ConfigError);

  std::string kinds = "{\"traceEvents\":[{}";
  for (int i = 0; i < 1025; ++i) {
    kinds += R"(,{"ph":"X","ts":0,"dur":1,"pid":1,"name":")" + std::to_string(i) + "\"}";
  }
  const std::string many = folder.file("kinds.json", kinds + "]}");
  CHECK_THROWS_WITH_AS(read_timeline(many, 10), (many + ": isn't a trace: it has more than 1024 kinds of work").c_str(),
                       ConfigError);
}
