#pragma once

#include <hwy/highway.h>

#include <cstdint>

namespace slidestream::test {

/// Dispatches to one of Highway's targets while it lives: the path that another machine would take.
class ForcedTarget {
 public:
  explicit ForcedTarget(std::int64_t target) { choose(target); }
  ~ForcedTarget() { choose(0); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace slidestream::test
