#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <slidestream/trace.hpp>

#include "support/temporary_folder.hpp"

using namespace slidestream;
using slidestream::test::TemporaryFolder;
using Json = nlohmann::json;

namespace {

Json written(const Trace& trace, const std::vector<std::string>& slides) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "trace.json";
  write_trace(file.string(), trace, slides);
  std::ifstream stream(file);
  Json json = Json::parse(stream);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  return json;
}

std::vector<Json> events(const Json& json, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("an empty trace is valid") {
  const Json json = written({}, {});
  CHECK(events(json, "X").empty());
  CHECK(json["otherData"]["slides"].empty());
}

TEST_CASE("ranges and GPU records as complete events, in named rows") {
  Trace trace;
  trace.names = {"read", "decode", "odd \"name\"\\\n\x01", "upload"};
  trace.ranges = {{1'234'567, 2'000'001, 42, 0, 7, 0, 5}, {5, 6, 0, -1, -1, 1, 2}, {7, 8, 0, 1, -1, 0, 2}};
  trace.device_records = {{1000, 3000, 0, 2, 1, 14, DeviceRecord::Kind::kernel},
                          {-500, 2500, 99, 3, 1, 13, DeviceRecord::Kind::upload}};
  trace.dropped_ranges = 3;
  trace.dropped_device_records = 4;
  const Json json = written(trace, {"a.svs", "b\xff.svs"});
  CHECK(json["otherData"]["slides"] == Json({"a.svs", "b\uFFFD.svs"}));
  CHECK(json["otherData"]["dropped_ranges"] == 3);
  CHECK(json["otherData"]["dropped_device_records"] == 4);

  const std::vector<Json> complete = events(json, "X");
  REQUIRE(complete.size() == 5);
  CHECK(complete[0]["name"] == "read");
  CHECK(complete[0]["ts"].get<double>() == doctest::Approx(1234.567));
  CHECK(complete[0]["dur"].get<double>() == doctest::Approx(765.434));
  CHECK(complete[0]["args"] == Json({{"slide", 0}, {"batch", 7}, {"bytes", 42}}));
  CHECK(complete[1]["ts"].get<double>() == doctest::Approx(0.005));
  CHECK(complete[1]["args"] == Json::object());
  CHECK(complete[2]["args"] == Json({{"slide", 1}}));
  CHECK(complete[3]["name"] == trace.names[2]);
  CHECK(complete[3]["pid"] == 3);
  CHECK(complete[3]["tid"] == 14);
  CHECK(complete[4]["ts"].get<double>() == doctest::Approx(-0.5));
  CHECK(complete[4]["dur"].get<double>() == doctest::Approx(3.0));
  CHECK(complete[4]["args"]["bytes"] == 99);

  std::map<std::pair<int, int>, std::string> rows;
  std::map<int, std::string> processes;
  for (const Json& event : events(json, "M")) {
    if (event["name"] == "thread_name") rows[{event["pid"], event["tid"]}] = event["args"]["name"];
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  }
  CHECK(processes == std::map<int, std::string>{{1, "host"}, {3, "GPU 1"}});
  CHECK(rows == std::map<std::pair<int, int>, std::string>{{{1, 2}, "thread 2: read decode"},
                                                           {{1, 5}, "thread 5: read"},
                                                           {{3, 13}, "stream 13"},
                                                           {{3, 14}, "stream 14"}});
}

TEST_CASE("a trace larger than the writer's buffer (long)") {
  Trace trace;
  trace.names = {"decode"};
  for (std::int64_t i = 0; i < 50'000; ++i) trace.ranges.push_back({i, i + 1, 1, 0, 0, 0, 0});
  const std::vector<Json> complete = events(written(trace, {}), "X");
  REQUIRE(complete.size() == 50'000);
  CHECK(complete.back()["ts"].get<double>() == doctest::Approx(49.999));
}

TEST_CASE("what is in the way of a trace is told before and after") {
  const TemporaryFolder folder;
  for (const std::filesystem::path& file : {folder / "none/trace.json", folder.path()}) {
    CHECK_THROWS_AS(check_trace_file(file.string()), OutputError);
    CHECK_THROWS_AS(write_trace(file.string(), {}, {}), OutputError);
  }
  CHECK_NOTHROW(check_trace_file((folder / "trace.json").string()));
  CHECK(std::filesystem::is_empty(folder.path()));
}
