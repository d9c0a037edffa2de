#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <vector>

#include "support/forced_target.hpp"

/// \file
/// The vector units that this machine has, one by one.

namespace slidestream::test {

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
