#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>

namespace slidestream {

/// Pixels of a larger level along one of a smaller, along an axis: a whole number where the smaller size is the larger
/// one divided by it and rounded up or down, else what the sizes give.
inline double level_factor(std::int64_t larger, std::int64_t smaller) noexcept {
  const std::int64_t whole = (larger + smaller / 2) / smaller;
  const std::int64_t rest = larger - whole * smaller;
  if (-whole < rest && rest < whole) return static_cast<double>(whole);
  return static_cast<double>(larger) / static_cast<double>(smaller);
}

/// Pixels of one level along one of another, along both axes.
struct LevelFactors {
  double x = 1.0;
  double y = 1.0;
};

/// Of level 0 along one of a level, both as the file has them.
inline LevelFactors factors_of(const Level& base, const Level& level) noexcept {
  if (level.cut_factor > 0) return {static_cast<double>(level.cut_factor), static_cast<double>(level.cut_factor)};
  return {level_factor(base.width, level.width), level_factor(base.height, level.height)};
}

/// Of a larger level along one of a smaller. Where either is cut, their sizes say nothing of each other.
inline LevelFactors factors_between(const Level& base, const Level& larger, const Level& smaller) noexcept {
  if (larger.cut_factor == 0 && smaller.cut_factor == 0) return factors_of(larger, smaller);
  const LevelFactors of_larger = factors_of(base, larger);
  const LevelFactors of_smaller = factors_of(base, smaller);
  return {of_smaller.x / of_larger.x, of_smaller.y / of_larger.y};
}

}  // namespace slidestream
