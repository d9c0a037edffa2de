#include <doctest/doctest.h>
#include <slidestream/forecast.hpp>

#include "stages/spectrum_digests.hpp"
#include "support/gpu.hpp"

using namespace slidestream;

TEST_CASE("results are what they were, to the bit: GPU (large)") {
  if (test::gpus_or_skip() == 0) return;
  test::check_unit(forecast_run(test::config_for(Backend::cuda), {}).gpu, Backend::cuda);
}
