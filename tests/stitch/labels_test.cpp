#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <slidestream/stitch.hpp>
#include <stdexcept>
#include <vector>

#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

// Labels: nothing is blended, the tile whose centre is nearest has the pixel.

namespace {

/// The tile along an axis whose centre is nearest, the earlier of equals. In halves of samples.
std::int64_t plain_nearest(const StitchAxis& axis, std::int64_t x) {
  std::int64_t best = 0;
  std::int64_t least = -1;
  for (std::int64_t i = 0; i < axis.count; ++i) {
    const std::int64_t away = std::abs(2 * axis.begin(i) + axis.tile - (2 * x + 1));
    if (least >= 0 && away >= least) continue;
    least = away;
    best = i;
  }
  return best;
}

NetworkOutput labels_of(SampleType sample) {
  NetworkOutput output;
  output.kind = NetworkOutput::Kind::labels;
  output.sample = sample;
  output.high = sample == SampleType::uint8 ? 255.0F : 65535.0F;
  return output;
}

}  // namespace

TEST_CASE("the tile of a label is the one whose centre is nearest, for every size") {
  for (const StitchEdge edge : {StitchEdge::shift, StitchEdge::mirror}) {
    for (std::int64_t tile = 1; tile <= 9; ++tile) {
      for (std::int64_t overlap = 0; overlap <= tile / 2; ++overlap) {
        for (std::int64_t size = 1; size <= 40; ++size) {
          const StitchAxis axis = stitch_axis(size, tile, overlap, edge, true);
          CAPTURE(tile);
          CAPTURE(overlap);
          CAPTURE(size);
          for (std::int64_t x = 0; x < size; ++x) {
            const std::int64_t i = axis.tile_at(x);
            REQUIRE(i == plain_nearest(axis, x));
            REQUIRE(axis.blend_at(x, i) < 0);
            REQUIRE(x < axis.whole_after(i));
            REQUIRE((i == 0 || x >= axis.whole_after(i - 1)));
            REQUIRE(x < axis.end_of(i));
          }
        }
      }
    }
  }
}

TEST_CASE("labels are those of one tile, and never others") {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t side = 4 + static_cast<std::int64_t>(random() % 9);
    const std::int64_t overlap = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(side / 2 + 1));
    const Size size = {1 + static_cast<std::int64_t>(random() % 50), 1 + static_cast<std::int64_t>(random() % 50)};
    const StitchEdge edge = turn % 2 == 0 ? StitchEdge::shift : StitchEdge::mirror;
    const NetworkOutput output = labels_of(turn % 3 == 0 ? SampleType::uint16 : SampleType::uint8);
    const StitchPlan plan = plan_stitching(size, side, overlap, 1, edge, true);
    StitchBand band(plan, output, StitchWeights::tent);
    PixelImage image(plan.image, StitchBand::format(output));
    const auto label_of_tile = [&](std::int64_t tile) {
      return output.sample == SampleType::uint8 ? tile % 200 : 300 + tile;
    };
    std::int64_t made = 0;
    for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
      const StitchTile at = plan.tile(tile);
      REQUIRE(band.has_room(at.row));
      const std::vector<float> values(static_cast<std::size_t>(side * side), static_cast<float>(label_of_tile(tile)));
      const bool present = tile % 5 != 4;
      if (present) CHECK(band.put(at, values).sound(output));
      band.arrived(at, present);
      if (band.ready() <= made) continue;
      band.gather(part_of(image.view(), {0, made, plan.image.width, band.ready() - made}));
      made = band.ready();
      band.release(made);
    }
    REQUIRE(made == plan.image.height);
    std::int64_t wrong = 0;
    for (std::int64_t y = 0; y < plan.image.height; ++y) {
      for (std::int64_t x = 0; x < plan.image.width; ++x) {
        const std::int64_t tile = plain_nearest(plan.y, y) * plan.x.count + plain_nearest(plan.x, x);
        const std::int64_t expected = tile % 5 == 4 ? output.ignore : label_of_tile(tile);
        wrong += (output.sample == SampleType::uint8 ? image.at<std::uint8_t>(x, y) : image.at<std::uint16_t>(x, y)) !=
                 expected;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("what is no label isn't made one") {
  const StitchPlan plan = plan_stitching({4, 4}, 4, 0, 1, StitchEdge::shift, true);
  for (const float value : {-1.0F, 256.0F, 1.5F}) {
    StitchBand band(plan, labels_of(SampleType::uint8), StitchWeights::tent);
    CHECK_FALSE(band.put({0, 0}, std::vector<float>(16, value)).sound(labels_of(SampleType::uint8)));
  }
  NetworkOutput two = labels_of(SampleType::uint8);
  two.channels = 2;
  CHECK_THROWS_AS(StitchBand(plan, two, StitchWeights::tent), std::invalid_argument);
}

TEST_CASE("pixels of which a sigmoid makes several classes equal are counted") {
  NetworkOutput output;
  output.kind = NetworkOutput::Kind::classes;
  output.channels = 3;
  output.activation = NetworkActivation::sigmoid;
  // More than a block. Of each third pixel two classes are 65,535, of each third one, and of each third three are 0.
  constexpr std::int64_t pixels = 999;
  std::vector<float> scores(3 * pixels);
  for (std::int64_t i = 0; i < pixels; ++i) {
    for (std::int64_t channel = 0; channel < 3; ++channel) {
      const bool large = i % 3 == 0 ? channel > 0 : i % 3 == 1 && channel == 2;
      scores[static_cast<std::size_t>(channel * pixels + i)] = (large ? 12.0F : -20.0F) + static_cast<float>(channel);
    }
  }
  std::vector<std::uint16_t> samples(scores.size());
  CHECK(map_values(samples.data(), scores.data(), pixels, output).saturated == 2 * pixels / 3);
  CHECK(look_at_values(scores.data(), pixels, output).saturated == 2 * pixels / 3);
  CHECK(samples[1] == 65535);
  CHECK(samples[1] == samples[2]);
  // Below the largest sample, of scores that differ little.
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > 0.0F) scores[i] = 8.0F + static_cast<float>(i / pixels) * 0.001F;
  }
  CHECK(map_values(samples.data(), scores.data(), pixels, output).saturated == 2 * pixels / 3);
  CHECK(samples[1] == samples[2]);
  // Scores that are equal are nothing that a sigmoid did: the pixels of which all are 0 remain.
  for (float& score : scores) score = score > 0.0F ? 8.0F : score;
  CHECK(map_values(samples.data(), scores.data(), pixels, output).saturated == pixels / 3);
  CHECK(samples[1] == samples[2]);
  // One that isn't 0 decides.
  for (std::int64_t i = 2; i < pixels; i += 3) scores[static_cast<std::size_t>(pixels + i)] = -11.0F;
  CHECK(map_values(samples.data(), scores.data(), pixels, output).saturated == 0);
  CHECK(samples[static_cast<std::size_t>(3 * 2 + 1)] == 1);
  output.activation = NetworkActivation::softmax;
  CHECK(map_values(samples.data(), scores.data(), pixels, output).saturated == 0);
}

TEST_CASE("labels that mean \"not computed\" are counted") {
  NetworkOutput output;
  output.kind = NetworkOutput::Kind::labels;
  output.high = 255.0F;
  output.ignore = 7;
  std::vector<float> labels(600, 6.0F);
  labels[0] = labels[300] = labels[599] = 7.0F;
  std::vector<std::uint8_t> samples(labels.size());
  const MappedValues seen = map_values(samples.data(), labels.data(), 600, output);
  CHECK(seen.ignored == 3);
  CHECK(seen.sound(output));
  CHECK(samples[300] == 7);
}
