#include "runtime/trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>

#include "runtime/stage_meter.hpp"

using namespace slidestream;
using namespace slidestream::runtime;

namespace {

constexpr TraceRecording::Options host_only{.devices = false};

std::vector<TraceRange> ranges_named(const Trace& trace, const std::string& name) {
  std::vector<TraceRange> ranges;
  for (const TraceRange& range : trace.ranges) {
    if (trace.names.at(range.name) == name) ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

TEST_CASE("a range has its stage, batch, slide, bytes and times") {
  StageMeter meter("trace test: one");
  TraceRecording recording(host_only);
  {
    StageMeter::Busy busy(meter, {3, 14});
    busy.add(2, 100);
    busy.add(1, 50);
  }
  { const StageMeter::Busy busy(meter); }
  const Trace trace = recording.finish();
  const std::vector<TraceRange> ranges = ranges_named(trace, "trace test: one");
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].slide == 3);
  CHECK(ranges[0].batch == 14);
  CHECK(ranges[0].bytes == 150);
  CHECK(ranges[0].start_ns >= 0);
  CHECK(ranges[0].end_ns >= ranges[0].start_ns);
  CHECK(ranges[1].slide == -1);
  CHECK(ranges[1].batch == -1);
  CHECK(ranges[1].start_ns >= ranges[0].end_ns);
  CHECK(trace.dropped_ranges == 0);
  CHECK(trace.device_records.empty());
  CHECK(trace.device_warning.empty());
  CHECK(meter.items() == 3);
  CHECK(meter.bytes() == 150);
}

TEST_CASE("nothing is recorded while nobody asks") {
  StageMeter meter("trace test: off");
  { const StageMeter::Busy busy(meter); }
  Trace trace = TraceRecording(host_only).finish();
  CHECK(trace.ranges.empty());
  { const StageMeter::Busy busy(meter); }
  TraceRecording recording(host_only);
  trace = recording.finish();
  CHECK(trace.ranges.empty());
  CHECK(meter.busy_seconds() > 0);
}

TEST_CASE("ranges that began before a recording or end after it are not in it") {
  StageMeter meter("trace test: across");
  auto before = std::make_unique<StageMeter::Busy>(meter);
  TraceRecording recording(host_only);
  before.reset();
  auto after = std::make_unique<StageMeter::Busy>(meter);
  const Trace trace = recording.finish();
  after.reset();
  CHECK(ranges_named(trace, "trace test: across").empty());
}

TEST_CASE("there is one recording at a time, and the next begins empty") {
  StageMeter meter("trace test: next");
  {
    const TraceRecording first(host_only);
    CHECK_THROWS_AS(TraceRecording second(host_only), Error);
    const StageMeter::Busy busy(meter);
  }
  TraceRecording third(host_only);
  { const StageMeter::Busy busy(meter, {1, 1}); }
  CHECK(third.finish().ranges.size() == 1);
}

TEST_CASE("ranges of many threads are all there, each thread's in order, and nest") {
  constexpr int threads = 8;
  constexpr int rounds = 2000;
  StageMeter outer("trace test: outer");
  StageMeter inner("trace test: inner");
  TraceRecording recording(host_only);
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        const StageMeter::Busy out(outer, {t, i});
        const StageMeter::Busy in(inner, {t, i});
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const Trace trace = recording.finish();
  CHECK(trace.ranges.size() == 2 * threads * rounds);
  std::map<std::uint32_t, std::vector<TraceRange>> of_thread;
  for (const TraceRange& range : trace.ranges) of_thread[range.thread].push_back(range);
  CHECK(of_thread.size() == threads);
  for (const auto& [thread, ranges] : of_thread) {
    REQUIRE(ranges.size() == 2 * rounds);
    bool good = true;
    for (std::size_t i = 0; i < ranges.size(); i += 2) {
      const TraceRange& in = ranges[i];
      const TraceRange& out = ranges[i + 1];
      good = good && trace.names[in.name] == "trace test: inner" && trace.names[out.name] == "trace test: outer" &&
             in.batch == static_cast<std::int32_t>(i / 2) && out.batch == in.batch && out.slide == in.slide &&
             out.start_ns <= in.start_ns && in.end_ns <= out.end_ns && (i == 0 || ranges[i - 1].end_ns <= out.start_ns);
    }
    CHECK(good);
  }
}

TEST_CASE("what finds no room is counted") {
  StageMeter meter("trace test: full");
  constexpr std::size_t room = 4096;
  TraceRecording recording(TraceRecording::Options{.devices = false, .most_ranges = room});
  constexpr int threads = 4;
  constexpr std::size_t rounds = 3000;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (std::size_t i = 0; i < rounds; ++i) const StageMeter::Busy busy(meter);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const Trace trace = recording.finish();
  CHECK(trace.ranges.size() <= room);
  CHECK(trace.ranges.size() > 0);
  CHECK(trace.ranges.size() + trace.dropped_ranges == threads * rounds);
}

TEST_CASE("a recording may end while threads work") {
  StageMeter meter("trace test: busy");
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  std::barrier start(4);
  for (int t = 0; t < 3; ++t) {
    workers.emplace_back([&] {
      start.arrive_and_wait();
      while (!stop.load()) const StageMeter::Busy busy(meter);
    });
  }
  start.arrive_and_wait();
  for (int i = 0; i < 20; ++i) {
    TraceRecording recording(host_only);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Trace trace = recording.finish();
    CHECK(std::ranges::all_of(trace.ranges, [](const TraceRange& range) { return range.end_ns >= range.start_ns; }));
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
}

#ifdef SLIDESTREAM_HAVE_CUDA
TEST_CASE("without a GPU the warning says in one line what is missing") {
  TraceRecording recording;
  const Trace trace = recording.finish();
  CHECK(trace.device_records.empty());
  CHECK(trace.device_warning.find('\n') == std::string::npos);
  MESSAGE(trace.device_warning);
}
#endif
