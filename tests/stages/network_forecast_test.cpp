// Memory of a run's networks, as it is forecast.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "planning/network_plan.hpp"
#include "stages/forecast.hpp"
#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;

TEST_CASE("two rows of tiles of a wide slide take no more than they must, and more channels are forecast") {
  NetworkOutput output;
  output.channels = 3;
  const StitchPlan plan = plan_stitching({65664, 43264}, 512, 64, 1, StitchEdge::shift);
  CHECK(StitchBand::bytes(plan, output) == 2 * 147 * std::uint64_t{512} * 512 * 3);
  CHECK(StitchBand::bytes(plan, output) <= 235'000'000);
  output.sample = SampleType::uint16;
  CHECK(StitchBand::bytes(plan, output) <= 470'000'000);
  MadeUp network;
  network.cut = {512, 64, 16, std::nullopt, false};
  network.given = output;
  CHECK(plan_network(network, {65664, 43264}, {}, {}, 256).bytes < 1'000'000'000);
  network.given.channels = 16;
  CHECK_THROWS_WITH_AS(plan_network(network, {65664, 43264}, {}, {}, 256),
                       doctest::Contains("stitch.memory_mib is 2048"), Error);
}

TEST_CASE("a forecast has what networks keep in it, and says which slides would be too large") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 4);
  const auto network = std::make_shared<MadeUp>();
  network->count = 3;
  Config config = config_of_network(folder, "forecast");
  config.pipeline.backend = Backend::cpu;
  const Operators operators = with(network).operators;
  const RunForecast forecast = forecast_operators(config, operators, slides, {});
  for (const SlideForecast& slide : forecast.slides) CHECK_MESSAGE(slide.error.empty(), slide.error);
  const NetworkPlan plan = plan_network(*network, {400, 700}, {}, config.stitch, 64);
  // Two slides at a time: rows, two rows of six tiles, three rows of the image's tiles; five batches.
  CHECK(plan.bytes == 96 * 400 * 3 + 2 * 6 * 96 * 96 * 3 + 3 * 64 * 1216);
  const std::uint64_t batches = 5 * 3 * (96 * 96 * 3 + 96 * 96 * 3 * 4);
  CHECK(forecast.networks_bytes > 2 * plan.bytes + batches);
  CHECK(forecast.networks_bytes < 2 * (plan.bytes + 4'000'000) + batches);
  CHECK(forecast.network.bands_bytes + forecast.network.batches_bytes == forecast.networks_bytes);
  CHECK(forecast.network.batches_bytes == batches);
  for (const SlideForecast& slide : forecast.slides) {
    CHECK(slide.network_tiles == 66);
    CHECK(slide.network_batches == 22);
  }
  network->own = {1000, 70, 12345};
  const RunForecast with_own = forecast_operators(config, operators, slides, {});
  CHECK(with_own.network.sessions == 3);
  CHECK(with_own.network.device_bytes == 12345);
  CHECK(forecast.network.device_bytes == 0);
  CHECK(with_own.networks_bytes == forecast.networks_bytes + 1000 + 3 * 70);
  CHECK(forecast.host_bytes() > forecast.networks_bytes);
  CHECK(forecast.touched_bytes() > forecast.networks_bytes);
  config.stitch.memory_mib = 1;
  config.image.tile = 256;
  const RunForecast refused = forecast_operators(config, operators, slides, {});
  CHECK(refused.slides[0].error ==
        "stitching it takes 2 MiB, and stitch.memory_mib is 1; raise it or lower image.tile");
}
