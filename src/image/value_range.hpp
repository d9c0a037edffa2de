#pragma once

/// \file
/// Between which values the samples of a channel lie.

namespace slidestream {

struct ValueRange {
  double least = 0;
  double greatest = 0;

  friend constexpr bool operator==(const ValueRange&, const ValueRange&) = default;
};

}  // namespace slidestream
