#include <doctest/doctest.h>

#include "stages/spectrum_digests.hpp"
#include "support/forced_target.hpp"

using namespace slidestream;

namespace {

[[maybe_unused]] void check_vector_unit(std::int64_t target, const std::string& name) {
  if ((hwy::SupportedTargets() & target) == 0) return test::report_skipped("this machine has no " + name);
  const test::ForcedTarget forced(target);
  test::check_unit(name, Backend::cpu);
}

}  // namespace

#if HWY_ARCH_X86
TEST_CASE("results are what they were, to the bit: AVX-512") { check_vector_unit(HWY_AVX3, "AVX3"); }
TEST_CASE("results are what they were, to the bit: AVX2") { check_vector_unit(HWY_AVX2, "AVX2"); }
TEST_CASE("results are what they were, to the bit: SSE4") { check_vector_unit(HWY_SSE4, "SSE4"); }
#endif
