#include "runtime/overlap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <latch>
#include <random>
#include <thread>

#include "runtime/stage_meter.hpp"

using namespace slidestream;
using namespace slidestream::runtime;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// A trace written by hand, times in milliseconds.
struct TraceMaker {
  Trace trace;

  std::uint32_t name(const char* text) {
    const auto known = std::find(trace.names.begin(), trace.names.end(), text);
    const auto index = static_cast<std::uint32_t>(known - trace.names.begin());
    if (known == trace.names.end()) trace.names.emplace_back(text);
    return index;
  }
  void stage(const char* text, std::int64_t start, std::int64_t end, std::uint32_t thread = 0) {
    TraceRange range;
    range.start_ns = start * ms;
    range.end_ns = end * ms;
    range.name = name(text);
    range.thread = thread;
    trace.ranges.push_back(range);
  }
  void device(DeviceRecord::Kind kind, std::int64_t start, std::int64_t end, std::uint32_t number = 0,
              std::uint32_t stream = 0) {
    DeviceRecord record;
    record.start_ns = start * ms;
    record.end_ns = end * ms;
    record.kind = kind;
    record.name = name(kind == DeviceRecord::Kind::kernel ? "transform" : "copy");
    record.device = number;
    record.stream = stream;
    trace.device_records.push_back(record);
  }
  void kernel(std::int64_t start, std::int64_t end, std::uint32_t number = 0) {
    device(DeviceRecord::Kind::kernel, start, end, number, 1);
  }
  void upload(std::int64_t start, std::int64_t end, std::uint32_t number = 0) {
    device(DeviceRecord::Kind::upload, start, end, number, 2);
  }
};

double in_ms(double seconds) { return seconds * 1e3; }

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// A piece of work: the moments around it, and those that certainly lie within.
struct Span {
  Interval outer, inner;
};

/// Does some work of a stage.
template <class Body>
void measured(StageMeter& meter, Span& span, const Body& body) {
  span.outer.start = now_ns();
  {
    const StageMeter::Busy busy(meter);
    span.inner.start = now_ns();
    body();
    span.inner.end = now_ns();
  }
  span.outer.end = now_ns();
}

/// Nanoseconds: seconds are rounded.
void check_between(double seconds, std::int64_t least, std::int64_t most) {
  CHECK(seconds >= 1e-9 * static_cast<double>(least - 1));
  CHECK(seconds <= 1e-9 * static_cast<double>(most + 1));
}

std::int64_t length(const Interval& interval) { return interval.end - interval.start; }

}  // namespace

TEST_CASE("a union of intervals is disjoint and in order, whatever came in") {
  CHECK(united({}).empty());
  CHECK(united({{5, 5}, {7, 3}}).empty());
  CHECK(united({{0, 10}, {10, 20}}) == IntervalSet{{0, 20}});              // touching
  CHECK(united({{0, 100}, {10, 20}, {30, 40}}) == IntervalSet{{0, 100}});  // nested
  CHECK(united({{30, 40}, {0, 10}, {5, 12}}) == IntervalSet{{0, 12}, {30, 40}});
  CHECK(united({{-5, 1}, {0, 2}}) == IntervalSet{{-5, 2}});
  CHECK(measure({}) == 0);
  CHECK(measure({{-5, 2}, {10, 11}}) == 8);
}

TEST_CASE("what two sets share") {
  CHECK(common_measure({}, {{0, 10}}) == 0);
  CHECK(common_measure({{0, 10}}, {{10, 20}}) == 0);
  CHECK(common_measure({{0, 10}}, {{2, 4}, {6, 20}}) == 6);
  CHECK(common_measure({{0, 10}, {20, 30}}, {{0, 10}, {20, 30}}) == 20);
  CHECK(common_measure({{0, 1}, {2, 3}, {4, 100}}, {{0, 50}}) == 48);
}

TEST_CASE("the longest gap is between neighbours, and the first of equals") {
  CHECK(longest_gap({}) == Interval{});
  CHECK(longest_gap({{3, 9}}) == Interval{});
  CHECK(longest_gap({{0, 1}, {3, 4}, {6, 7}, {8, 9}}) == Interval{1, 3});
}

TEST_CASE("sets agree with counting moment by moment") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    constexpr std::int64_t moments = 64;
    std::vector<Interval> intervals[2];
    std::vector<bool> there[2] = {std::vector<bool>(moments), std::vector<bool>(moments)};
    for (int set = 0; set < 2; ++set) {
      for (int i = static_cast<int>(random() % 8); i > 0; --i) {
        const auto start = static_cast<std::int64_t>(random() % moments);
        const auto end = static_cast<std::int64_t>(random() % moments);
        intervals[set].push_back({start, end});
        for (std::int64_t t = start; t < end; ++t) there[set][static_cast<std::size_t>(t)] = true;
      }
    }
    std::int64_t common = 0;
    for (std::size_t t = 0; t < moments; ++t) common += there[0][t] && there[1][t] ? 1 : 0;
    const IntervalSet a = united(intervals[0]);
    const IntervalSet b = united(intervals[1]);
    CHECK(measure(a) == std::count(there[0].begin(), there[0].end(), true));
    CHECK(common_measure(a, b) == common);
    CHECK(common_measure(b, a) == common);
  }
}

TEST_CASE("a trace without GPU records has no overlap") {
  TraceMaker maker;
  CHECK_FALSE(find_overlap(maker.trace).has_value());
  maker.stage("decode", 0, 10);
  maker.device(DeviceRecord::Kind::fill, 0, 10);
  maker.device(DeviceRecord::Kind::device_copy, 0, 10);
  CHECK_FALSE(find_overlap(maker.trace).has_value());
}

TEST_CASE("copies that hide, hide in part and don't hide") {
  TraceMaker maker;
  maker.upload(0, 10);  // nothing computes yet
  maker.kernel(10, 50);
  maker.upload(20, 40);  // hidden
  maker.upload(45, 55);  // half of it hidden
  maker.kernel(60, 100);
  maker.device(DeviceRecord::Kind::download, 90, 100, 0, 3);
  maker.device(DeviceRecord::Kind::download, 95, 110, 0, 4);  // at the same time as the one before: counts once
  const Overlap overlap = find_overlap(maker.trace).value();
  REQUIRE(overlap.devices.size() == 1);
  const DeviceOverlap& device = overlap.devices[0];
  CHECK(in_ms(device.seconds) == doctest::Approx(90));
  CHECK(in_ms(device.kernel_seconds) == doctest::Approx(80));
  CHECK(in_ms(device.copy_seconds) == doctest::Approx(60));
  CHECK(in_ms(device.copy_hidden_seconds) == doctest::Approx(35));
  CHECK(overlap.copy_hidden_share().value() == doctest::Approx(35.0 / 60));
  CHECK(overlap.busy_share() == doctest::Approx(80.0 / 90));
  CHECK(overlap.copy_covered_share() == overlap.copy_hidden_share());
  CHECK(in_ms(device.longest_gap_start) == doctest::Approx(50));
  CHECK(in_ms(device.longest_gap_seconds) == doctest::Approx(10));
  CHECK(device.waited_for == "upload");
}

TEST_CASE("work on the host covers copies while the GPU waits") {
  TraceMaker maker;
  maker.upload(0, 10);
  maker.kernel(10, 20);
  maker.upload(15, 35);  // 5 behind the kernel
  maker.kernel(40, 50);
  maker.stage("decode", 5, 12, 0);
  maker.stage("decode", 18, 25, 1);  // 5 of it after the kernel's end
  const Overlap overlap = find_overlap(maker.trace).value();
  CHECK(overlap.copy_hidden_share().value() == doctest::Approx(5.0 / 30));
  CHECK(overlap.copy_covered_share().value() == doctest::Approx(15.0 / 30));
}

TEST_CASE("the order of records doesn't matter") {
  TraceMaker maker;
  for (std::int64_t i = 0; i < 50; ++i) {
    maker.upload(10 * i, 10 * i + 4);
    maker.kernel(10 * i + 3, 10 * i + 9);
    maker.stage("decode", 10 * i + 8, 10 * i + 12);
  }
  const Overlap before = find_overlap(maker.trace).value();
  std::mt19937 random(1);
  std::shuffle(maker.trace.device_records.begin(), maker.trace.device_records.end(), random);
  std::shuffle(maker.trace.ranges.begin(), maker.trace.ranges.end(), random);
  const Overlap after = find_overlap(maker.trace).value();
  CHECK(after.copy_hidden_share() == before.copy_hidden_share());
  CHECK(after.busy_share() == before.busy_share());
  CHECK(after.longest_gap().waited_for == before.longest_gap().waited_for);
  CHECK(before.copy_hidden_share().value() == doctest::Approx(0.25));
}

TEST_CASE("kernels without copies, copies without kernels") {
  TraceMaker kernels;
  kernels.kernel(0, 10);
  const Overlap only_kernels = find_overlap(kernels.trace).value();
  CHECK_FALSE(only_kernels.copy_hidden_share().has_value());
  CHECK(only_kernels.busy_share() == 1.0);
  CHECK(only_kernels.longest_gap().longest_gap_seconds == 0.0);
  CHECK(only_kernels.longest_gap().waited_for.empty());

  TraceMaker copies;
  copies.upload(0, 10);
  const Overlap only_copies = find_overlap(copies.trace).value();
  CHECK(only_copies.copy_hidden_share().value() == 0.0);
  CHECK(only_copies.busy_share() == 0.0);
  CHECK(only_copies.devices[0].seconds == 0.0);
}

TEST_CASE("each GPU has figures of its own, and a copy hides behind its own kernels only") {
  TraceMaker maker;
  maker.upload(0, 10, 0);
  maker.kernel(10, 20, 0);
  maker.kernel(60, 100, 0);
  maker.upload(10, 20, 3);  // device 0 computes then, device 3 doesn't
  maker.kernel(20, 40, 3);
  maker.kernel(45, 60, 3);
  maker.stage("decode", 20, 60);
  const Overlap overlap = find_overlap(maker.trace).value();
  REQUIRE(overlap.devices.size() == 2);
  CHECK(overlap.devices[0].device == 0);
  CHECK(overlap.devices[1].device == 3);
  CHECK(overlap.copy_hidden_share().value() == 0.0);
  CHECK(in_ms(overlap.devices[1].seconds) == doctest::Approx(40));
  CHECK(overlap.busy_share() == doctest::Approx((50.0 + 35.0) / (90.0 + 40.0)));
  CHECK(overlap.longest_gap().device == 0);
  CHECK(overlap.longest_gap().waited_for == "decode");
}

TEST_CASE("a gap waited for the stage that was there for most of it") {
  TraceMaker maker;
  maker.kernel(0, 10);
  maker.kernel(110, 120);
  SUBCASE("nothing was recorded there") {
    maker.stage("decode", 0, 10);
    maker.stage("decode", 110, 200);
    CHECK(find_overlap(maker.trace).value().longest_gap().waited_for.empty());
  }
  SUBCASE("one thread all the time beats many now and then") {
    maker.stage("carry", 10, 105);
    for (std::uint32_t thread = 1; thread < 9; ++thread) maker.stage("decode", 10, 60, thread);
    CHECK(find_overlap(maker.trace).value().longest_gap().waited_for == "carry");
  }
  SUBCASE("parts outside the gap don't count") {
    maker.stage("compute", -500, 30);
    maker.stage("read", 70, 111);
    CHECK(find_overlap(maker.trace).value().longest_gap().waited_for == "read");
  }
  SUBCASE("of two that were always there, the one with more threads") {
    maker.stage("compute", 0, 120, 0);
    maker.stage("decode", 0, 120, 1);
    maker.stage("decode", 0, 120, 2);
    CHECK(find_overlap(maker.trace).value().longest_gap().waited_for == "decode");
  }
  SUBCASE("parts of one stage that overlap count once") {
    for (std::uint32_t thread = 0; thread < 4; ++thread) maker.stage("decode", 10, 50, thread);
    maker.stage("read", 50, 110);
    CHECK(find_overlap(maker.trace).value().longest_gap().waited_for == "read");
  }
}

// Two stages, each on a thread of its own, taken for a copy engine and a GPU. Each "copy" but the first begins while
// the "kernel" of the batch before it runs, and ends after it.
TEST_CASE("two artificial stages have the overlap of their times") {
  constexpr std::size_t batches = 5;
  constexpr std::chrono::milliseconds some{5};
  struct Batch {
    std::latch copy_begun{1}, copy_ended{1}, kernel_begun{1}, kernel_ended{1};
    Span copy, kernel;
  };
  std::array<Batch, batches> all;
  TraceRecording recording(TraceRecording::Options{.devices = false});
  StageMeter copy("artificial copy");
  StageMeter compute("artificial compute");
  std::thread copier([&] {
    for (std::size_t n = 0; n < batches; ++n) {
      if (n > 0) all[n - 1].kernel_begun.wait();
      measured(copy, all[n].copy, [&] {
        all[n].copy_begun.count_down();
        if (n > 0) all[n - 1].kernel_ended.wait();
        std::this_thread::sleep_for(some);
      });
      all[n].copy_ended.count_down();
    }
  });
  std::thread computer([&] {
    for (std::size_t n = 0; n < batches; ++n) {
      all[n].copy_ended.wait();
      measured(compute, all[n].kernel, [&] {
        all[n].kernel_begun.count_down();
        if (n + 1 < batches) all[n + 1].copy_begun.wait();
        std::this_thread::sleep_for(some);
      });
      all[n].kernel_ended.count_down();
    }
  });
  copier.join();
  computer.join();
  Trace trace = recording.finish();

  for (const TraceRange& range : trace.ranges) {
    DeviceRecord record;
    record.start_ns = range.start_ns;
    record.end_ns = range.end_ns;
    record.kind =
        trace.names[range.name] == "artificial copy" ? DeviceRecord::Kind::upload : DeviceRecord::Kind::kernel;
    trace.device_records.push_back(record);
  }
  REQUIRE(trace.device_records.size() == 2 * batches);
  IntervalSet least_copies, most_copies, least_kernels, most_kernels;
  for (const Batch& batch : all) {
    least_copies.push_back(batch.copy.inner);
    most_copies.push_back(batch.copy.outer);
    least_kernels.push_back(batch.kernel.inner);
    most_kernels.push_back(batch.kernel.outer);
  }
  // However late threads were, the figures lie between those of the moments within and around.
  const Overlap overlap = find_overlap(trace).value();
  REQUIRE(overlap.devices.size() == 1);
  const DeviceOverlap& device = overlap.devices[0];
  check_between(device.copy_seconds, measure(least_copies), measure(most_copies));
  check_between(device.kernel_seconds, measure(least_kernels), measure(most_kernels));
  check_between(device.copy_hidden_seconds, common_measure(least_copies, least_kernels),
                common_measure(most_copies, most_kernels));
  check_between(device.seconds, length({least_kernels.front().start, least_kernels.back().end}),
                length({most_kernels.front().start, most_kernels.back().end}));
  check_between(device.longest_gap_seconds, length(longest_gap(most_kernels)), length(longest_gap(least_kernels)));
  check_between(copy.busy_seconds(), measure(least_copies), measure(most_copies));
  check_between(compute.busy_seconds(), measure(least_kernels), measure(most_kernels));
  // Of each copy but the first some is hidden, and some isn't.
  CHECK(in_ms(device.copy_hidden_seconds) >= 5.0 * (batches - 1));
  CHECK(in_ms(device.copy_seconds - device.copy_hidden_seconds) >= 5.0 * batches);
  CHECK(overlap.copy_hidden_share().value() == doctest::Approx(device.copy_hidden_seconds / device.copy_seconds));
  CHECK(overlap.busy_share() == doctest::Approx(device.kernel_seconds / device.seconds));
  CHECK(overlap.longest_gap().waited_for == "artificial copy");
}
