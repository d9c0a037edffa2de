#include "volume/blend_weights.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <slidestream/config.hpp>
#include <vector>

#include "volume/plain_weights.hpp"

namespace slidestream::volume {
namespace {

using Shares = std::map<std::int64_t, std::uint64_t>;

/// Weights by fragment.
Shares shares_of(const AxisWeights& at) {
  Shares shares;
  for (int i = 0; i < at.count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    shares[at.fragment[place]] = at.weight[place];
  }
  return shares;
}

TEST_CASE("weights along an axis are as they are defined, of fragments that have the sample") {
  for (const StitchWeights weights : {StitchWeights::tent, StitchWeights::cosine, StitchWeights::none}) {
    for (std::int64_t size = 1; size < 18; ++size) {
      for (std::int64_t fragment = 1; fragment < 20; ++fragment) {
        for (std::int64_t count = 1; count < 7; ++count) {
          const FragmentAxis axis = {size, fragment, count};
          if (!axis.covers()) continue;
          const std::vector<AxisWeights> at = weights_at(axis, weights);
          const std::vector<Shares> expected = plain_weights(axis, weights);
          REQUIRE(at.size() == expected.size());
          for (std::size_t sample = 0; sample < at.size(); ++sample) {
            const Shares shares = shares_of(at[sample]);
            REQUIRE(shares == expected[sample]);
            std::uint64_t sum = 0;
            bool have_it = true;
            for (const auto& [i, weight] : shares) {
              const std::int64_t inner = static_cast<std::int64_t>(sample) - axis.begin(i);
              have_it = have_it && i >= 0 && i < count && inner >= 0 && inner < fragment;
              sum += weight;
            }
            REQUIRE(have_it);
            REQUIRE(sum == std::uint64_t{whole_weight});
          }
        }
      }
    }
  }
}

TEST_CASE("fragments that only touch aren't blended") {
  const std::vector<AxisWeights> at = weights_at({8, 4, 2}, StitchWeights::tent);
  REQUIRE(at.size() == 8);
  CHECK(shares_of(at[3]) == Shares{{0, 256}});
  CHECK(shares_of(at[4]) == Shares{{1, 256}});
}

TEST_CASE("blends of neighbours share by halves what three fragments have") {
  // Fragments begin at 0, 3 and 6. The first two are blended from 3 to 7, the last two from 8 to 12.
  const std::vector<AxisWeights> at = weights_at({16, 10, 3}, StitchWeights::tent);
  REQUIRE(at.size() == 16);
  CHECK(shares_of(at[2]) == Shares{{0, 256}});
  CHECK(shares_of(at[3]) == Shares{{0, 230}, {1, 26}});
  CHECK(shares_of(at[7]) == Shares{{0, 26}, {1, 230}});
  CHECK(shares_of(at[8]) == Shares{{1, 230}, {2, 26}});
  CHECK(shares_of(at[12]) == Shares{{1, 26}, {2, 230}});
  CHECK(shares_of(at[13]) == Shares{{2, 256}});
}

}  // namespace
}  // namespace slidestream::volume
