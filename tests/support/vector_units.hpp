#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// The vector units that this machine has, one by one: the paths that other machines would take.

namespace slidestream::test {

/// Dispatches to one vector unit while it lives.
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

/// Those of this machine that are worth telling apart; 0, the best one, where none has a name here.
inline std::vector<std::int64_t> vector_units() {
  std::vector<std::int64_t> units;
#if HWY_ARCH_X86
  for (const std::int64_t unit : {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_EMU128}) {
    if ((hwy::SupportedTargets() & unit) != 0) units.push_back(unit);
  }
#endif
  if (units.empty()) units.push_back(0);
  return units;
}

}  // namespace slidestream::test
