#include "volume/axis_runs.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slidestream::volume {
namespace {

void check_run(const AxisRun& run, const AxisRun& expected) {
  CHECK(run.begin == expected.begin);
  CHECK(run.end == expected.end);
  CHECK(run.first == expected.first);
  CHECK(run.last == expected.last);
}

void check_runs(const std::vector<AxisRun>& runs, const std::vector<AxisRun>& expected) {
  REQUIRE(runs.size() == expected.size());
  for (std::size_t i = 0; i < runs.size(); ++i) check_run(runs[i], expected[i]);
}

TEST_CASE("a run begins where a fragment begins or ends") {
  // Fragments begin at 0, 3 and 6.
  check_runs(runs_of(FragmentAxis{16, 10, 3}),
             {{0, 3, 0, 1}, {3, 6, 0, 2}, {6, 10, 0, 3}, {10, 13, 1, 3}, {13, 16, 2, 3}});
  CHECK(runs_of(FragmentAxis{16, 10, 3})[2].fragments() == 3);
  // One ends where the next one begins.
  check_runs(runs_of(FragmentAxis{8, 4, 2}), {{0, 4, 0, 1}, {4, 8, 1, 2}});
}

TEST_CASE("all fragments of a padded axis are in its one run") {
  check_runs(runs_of(FragmentAxis{5, 8, 3}), {{0, 5, 0, 3}});
  check_runs(runs_of(FragmentAxis{4, 4, 1}), {{0, 4, 0, 1}});
}

TEST_CASE("samples that no fragment has are a run without fragments") {
  check_runs(runs_of(FragmentAxis{10, 4, 2}), {{0, 4, 0, 1}, {4, 6, 1, 1}, {6, 10, 1, 2}});
  check_runs(runs_of(FragmentAxis{9, 4, 1}), {{0, 4, 0, 1}, {4, 9, 1, 1}});
  CHECK(runs_of(FragmentAxis{9, 4, 1})[1].fragments() == 0);
}

TEST_CASE("runs have each sample once, with the fragments that it lies in") {
  for (std::int64_t size = 1; size < 24; ++size) {
    for (std::int64_t fragment = 1; fragment < 28; ++fragment) {
      for (std::int64_t count = 1; count < 9; ++count) {
        const FragmentAxis axis = {size, fragment, count};
        const std::vector<AxisRun> runs = runs_of(axis);
        REQUIRE(runs.front().begin == 0);
        REQUIRE(runs.back().end == size);
        REQUIRE(runs.size() <= static_cast<std::size_t>(2 * count));
        for (std::size_t i = 0; i < runs.size(); ++i) {
          REQUIRE(runs[i].begin < runs[i].end);
          if (i == 0) continue;
          REQUIRE(runs[i].begin == runs[i - 1].end);
          // Else they were one.
          REQUIRE((runs[i].first != runs[i - 1].first || runs[i].last != runs[i - 1].last));
        }
        for (std::int64_t sample = 0; sample < size; ++sample) {
          const AxisRun& run = run_at(runs, sample);
          bool is_right = run.begin <= sample && sample < run.end;
          for (std::int64_t i = 0; i < count; ++i) {
            const bool is_in = axis.begin(i) <= sample && sample < axis.begin(i) + fragment;
            is_right = is_right && is_in == (run.first <= i && i < run.last);
          }
          REQUIRE(is_right);
        }
      }
    }
  }
}

TEST_CASE("a long axis has few runs, found without a look at each sample") {
  constexpr std::int64_t size = std::int64_t{1} << 50;
  const std::vector<AxisRun> runs = runs_of(FragmentAxis{size, size / 2, 3});
  check_runs(
      runs,
      {{0, size / 4, 0, 1}, {size / 4, size / 2, 0, 2}, {size / 2, size / 4 * 3, 1, 3}, {size / 4 * 3, size, 2, 3}});
  check_run(run_at(runs, size / 2 - 1), runs[1]);
  check_run(run_at(runs, size / 2), runs[2]);
  check_run(run_at(runs, size - 1), runs[3]);
}

TEST_CASE("a grid has the runs of its axes, z first") {
  const FragmentGrid grid({16, 8, 5}, {10, 4, 8}, {3, 2, 3});
  const GridRuns runs = runs_of(grid);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(i);
    check_runs(runs[i], runs_of(grid.axis(i)));
  }
}

}  // namespace
}  // namespace slidestream::volume
