#pragma once

#include <cstdint>

namespace slidestream {

/// Pixels of a larger level along one of a smaller, along an axis: a whole number where the smaller size is the larger
/// one divided by it and rounded up or down, else what the sizes give.
inline double level_factor(std::int64_t larger, std::int64_t smaller) noexcept {
  const std::int64_t whole = (larger + smaller / 2) / smaller;
  const std::int64_t rest = larger - whole * smaller;
  if (-whole < rest && rest < whole) return static_cast<double>(whole);
  return static_cast<double>(larger) / static_cast<double>(smaller);
}

}  // namespace slidestream
