#pragma once

#include <algorithm>
#include <cmath>

namespace slidestream {

/// How values of one level go with those of another, added pair by pair.
class Correlation {
 public:
  void add(double a, double b) {
    if (count_ == 0.0) {
      first_a_ = a;
      first_b_ = b;
    }
    // Less the first pair: sums of what doesn't vary are exactly 0.
    a -= first_a_;
    b -= first_b_;
    count_ += 1.0;
    a_ += a;
    b_ += b;
    aa_ += a * a;
    bb_ += b * b;
    ab_ += a * b;
  }

  /// Whether Pearson's coefficient is positive, and that or more. It isn't where a level doesn't vary.
  bool is_at_least(double least) const {
    if (count_ == 0.0) return false;
    const double both = of_both();
    return both > 0.0 && both >= least * std::sqrt(variances());
  }

  /// Pearson's coefficient; 0 where a level doesn't vary.
  double coefficient() const {
    if (count_ == 0.0 || variances() <= 0.0) return 0.0;
    return of_both() / std::sqrt(variances());
  }

 private:
  double of_both() const { return ab_ - a_ * b_ / count_; }
  double variances() const { return std::max(0.0, aa_ - a_ * a_ / count_) * std::max(0.0, bb_ - b_ * b_ / count_); }

  double count_ = 0.0;
  double first_a_ = 0.0;
  double first_b_ = 0.0;
  double a_ = 0.0;
  double b_ = 0.0;
  double aa_ = 0.0;
  double bb_ = 0.0;
  double ab_ = 0.0;
};

}  // namespace slidestream
