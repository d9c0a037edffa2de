#include "sweep/statistics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace slidestream;

namespace {

/// U of the first, counted pair by pair.
double u_of(const std::vector<double>& a, const std::vector<double>& b) {
  double u = 0.0;
  for (const double x : a) {
    for (const double y : b) u += x > y ? 1.0 : x == y ? 0.5 : 0.0;
  }
  return u;
}

/// The definition: the share of all ways to divide the times that are as low.
double by_enumeration(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  const double seen = u_of(a, b);
  double low = 0.0;
  double every = 0.0;
  for (unsigned mask = 0; mask < 1U << all.size(); ++mask) {
    std::vector<double> chosen;
    std::vector<double> rest;
    for (std::size_t i = 0; i < all.size(); ++i) (mask >> i & 1U ? chosen : rest).push_back(all[i]);
    if (chosen.size() != a.size()) continue;
    every += 1;
    low += u_of(chosen, rest) <= seen + 1e-9 ? 1 : 0;
  }
  return low / every;
}

}  // namespace

TEST_CASE("a difference is significant where the latest runs say so, and only towards the faster") {
  const std::vector<double> fast = {1.0, 1.1, 1.2, 1.3};
  const std::vector<double> slow = {2.0, 2.1, 2.2, 2.3};
  CHECK(compare_times(fast, slow).significant);
  CHECK(compare_times(fast, slow).probability == doctest::Approx(1.0 / 70));
  CHECK_FALSE(compare_times(slow, fast).significant);
  CHECK_FALSE(compare_times(fast, fast).significant);
  CHECK_FALSE(compare_times(fast, {}).significant);
  std::vector<double> many(100, 9.0);
  many.insert(many.end(), 25, 1.0);
  CHECK(compare_times(many, slow).winner.runs == 25);
  CHECK(compare_times(many, slow).winner.most == 1.0);
}

TEST_CASE("summaries") {
  CHECK(summarise({}).runs == 0);
  const TimeSummary odd = summarise({3, 1, 2});
  CHECK(odd.least == 1);
  CHECK(odd.median == 2);
  CHECK(odd.spread() == 2);
  CHECK(summarise({4, 1, 2, 3}).median == 2.5);
}

TEST_CASE("who can't win") {
  const TimeSummary best = summarise({1.0, 1.1, 1.2});
  CHECK(cannot_win(summarise({1.5, 1.6}), best));
  CHECK_FALSE(cannot_win(summarise({1.25, 1.3}), best));  // within the best's spread
  CHECK_FALSE(cannot_win(summarise({1.5, 3.0}), best));   // its own spread is larger
  CHECK_FALSE(cannot_win(summarise({9.0}), best));        // one run says nothing
  CHECK_FALSE(cannot_win(summarise({9.0, 9.0}), summarise({1.0})));
}

TEST_CASE("the rank-sum test is the enumeration of its definition") {
  CHECK(rank_sum_probability({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}) == doctest::Approx(1.0 / 252));
  CHECK(rank_sum_probability({6, 7}, {1, 2}) == doctest::Approx(1));
  CHECK(rank_sum_probability({}, {1, 2}) == 1);
  CHECK(rank_sum_probability({1, 1}, {1, 1}) == 1);
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> a(1 + random() % 5);
    std::vector<double> b(1 + random() % 5);
    for (double& time : a) time = static_cast<double>(random() % 6);
    for (double& time : b) time = static_cast<double>(random() % 6);
    CHECK(rank_sum_probability(a, b) == doctest::Approx(by_enumeration(a, b)));
  }
}
