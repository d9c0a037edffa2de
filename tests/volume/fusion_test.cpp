#include "volume/fusion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "volume/plain_weights.hpp"

namespace slidestream::volume {
namespace {

using Values = std::vector<std::vector<float>>;

struct Case {
  Extent volume;
  Extent fragment;
  Extent grid;
};
const std::vector<Case> cases = {{{9, 11, 7}, {5, 6, 4}, {3, 3, 3}},     {{8, 8, 8}, {4, 4, 4}, {2, 2, 2}},
                                 {{3, 9, 5}, {4, 5, 5}, {2, 2, 1}},      {{6, 5, 10}, {5, 5, 6}, {5, 3, 2}},
                                 {{16, 13, 20}, {10, 9, 12}, {3, 4, 5}}, {{5, 4, 7}, {5, 5, 6}, {4, 5, 6}}};

Values random_values(const FragmentGrid& grid, int channels, const std::vector<float>& choices, unsigned seed) {
  std::mt19937 random(seed);
  Values values(grid.count());
  for (auto& of_fragment : values) {
    of_fragment.resize(static_cast<std::size_t>(count_of(grid.fragment()) * channels));
    for (float& value : of_fragment) value = choices[random() % choices.size()];
  }
  return values;
}

/// Puts fragments in an order of their own, by several threads.
void put_all(Fusion& fusion, const Values& values, unsigned seed) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, std::mt19937(seed));
  const auto work = [&](std::size_t first) {
    for (std::size_t i = first; i < order.size(); i += 2) fusion.put(order[i], values[order[i]]);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

template <class Sample>
std::vector<Sample> all_planes(const Fusion& fusion, const Extent& volume) {
  std::vector<Sample> samples(static_cast<std::size_t>(count_of(volume)));
  const auto plane = static_cast<std::size_t>(volume[1] * volume[2]);
  // Two at a time.
  for (std::size_t z = 0; z < static_cast<std::size_t>(volume[0]); z += 2) {
    const std::span<Sample> rest = std::span(samples).subspan(z * plane);
    fusion.planes(static_cast<std::int64_t>(z), rest.first(std::min(rest.size(), 2 * plane)));
  }
  return samples;
}

/// Calls `use(fragment, sample of the fragment)` for each fragment that a voxel lies in.
template <class Use>
void for_fragments(const FragmentGrid& grid, const Extent& voxel, const Use& use) {
  for (std::size_t i = 0; i < grid.count(); ++i) {
    const Extent from = grid.begin(i);
    std::int64_t at = 0;
    bool is_in = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t inner = voxel[axis] - from[axis];
      is_in = is_in && inner >= 0 && inner < grid.fragment()[axis];
      at = at * grid.fragment()[axis] + inner;
    }
    if (is_in) use(i, static_cast<std::size_t>(at));
  }
}

template <class Expect>
void for_voxels(const Extent& volume, const Expect& expect) {
  std::size_t at = 0;
  for (std::int64_t z = 0; z < volume[0]; ++z) {
    for (std::int64_t y = 0; y < volume[1]; ++y) {
      for (std::int64_t x = 0; x < volume[2]; ++x) expect(Extent{z, y, x}, at++);
    }
  }
}

TEST_CASE("the label of most fragments wins, the lowest of equals") {
  std::vector<float> choices;
  SUBCASE("of many") { choices = {0, 1, 2, 3, 3, 200}; }
  SUBCASE("of few, on which fragments often agree, also on the one that doesn't vote") { choices = {3, 3, 7}; }
  for (const Case& one : cases) {
    const FragmentGrid grid(one.volume, one.fragment, one.grid);
    FragmentOutput output;
    output.labels = true;
    output.ignore = 3;
    const Values values = random_values(grid, 1, choices, 1);
    const auto fusion = make_vote(grid, output);
    put_all(*fusion, values, 2);
    const auto labels = all_planes<std::uint16_t>(*fusion, one.volume);
    for_voxels(one.volume, [&](const Extent& voxel, std::size_t at) {
      std::map<int, int> votes;
      for_fragments(grid, voxel, [&](std::size_t i, std::size_t inner) {
        if (values[i][inner] != 3.0F) ++votes[static_cast<int>(values[i][inner])];
      });
      int winner = 3;
      int most = 0;
      for (const auto& [label, count] : votes) {
        if (count > most) winner = label;
        most = std::max(most, count);
      }
      REQUIRE(labels[at] == winner);
    });
  }
}

TEST_CASE("a fragment votes for the channel with the largest value, the lowest of equals") {
  const FragmentGrid grid({2, 3, 4}, {2, 3, 4}, {1, 1, 1});
  FragmentOutput output;
  output.channels = 5;
  const Values values = random_values(grid, 5, {-1, 0, 0.5, 2}, 3);
  const auto fusion = make_vote(grid, output);
  put_all(*fusion, values, 1);
  const auto labels = all_planes<std::uint16_t>(*fusion, grid.volume());
  for (std::size_t i = 0; i < 24; ++i) {
    std::size_t largest = 0;
    for (std::size_t channel = 1; channel < 5; ++channel) {
      if (values[0][channel * 24 + i] > values[0][largest * 24 + i]) largest = channel;
    }
    CHECK(labels[i] == largest);
  }
}

TEST_CASE("labels of a fragment vote as the scores that they were chosen from") {
  const Case& one = cases.front();
  const FragmentGrid grid(one.volume, one.fragment, one.grid);
  FragmentOutput output;
  output.channels = 3;
  output.ignore = 255;
  const Values values = random_values(grid, 3, {-1, 0, 0.5, 2}, 4);
  const auto by_scores = make_vote(grid, output);
  const auto by_labels = make_vote(grid, output);
  const auto voxels = static_cast<std::size_t>(count_of(grid.fragment()));
  for (std::size_t i = 0; i < grid.count(); ++i) {
    by_scores->put(i, values[i]);
    std::vector<std::uint16_t> labels(voxels);
    for (std::size_t voxel = 0; voxel < voxels; ++voxel) {
      for (std::size_t channel = 1; channel < 3; ++channel) {
        if (values[i][channel * voxels + voxel] > values[i][labels[voxel] * voxels + voxel]) {
          labels[voxel] = static_cast<std::uint16_t>(channel);
        }
      }
    }
    by_labels->put_labels(i, labels);
  }
  CHECK(all_planes<std::uint16_t>(*by_labels, one.volume) == all_planes<std::uint16_t>(*by_scores, one.volume));
  const std::vector<std::uint16_t> few(voxels - 1);
  CHECK_THROWS_AS(by_labels->put_labels(0, few), std::invalid_argument);
  CHECK_THROWS_AS(make_mean(grid, output)->put_labels(0, few), std::logic_error);
}

TEST_CASE("values that can't be labels are refused with their place") {
  const FragmentGrid grid({2, 3, 4}, {2, 3, 4}, {1, 1, 1});
  FragmentOutput output;
  output.labels = true;
  const auto refused = [&](float value) {
    std::vector<float> values(24);
    values[17] = value;
    try {
      make_vote(grid, output)->put(0, values);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(255.0F).empty());
  CHECK(refused(0.5F) ==
        "the network gives the label 0.5 at z, y, x = 1, 1, 1 of the fragment; expected a whole number from 0 to 255");
  CHECK_FALSE(refused(256.0F).empty());
  CHECK_FALSE(refused(-1.0F).empty());
  CHECK_FALSE(refused(std::numeric_limits<float>::quiet_NaN()).empty());
  output.labels = false;
  output.channels = 1;
  CHECK_FALSE(refused(std::numeric_limits<float>::infinity()).empty());
}

TEST_CASE("classes are averaged over the fragments of a voxel") {
  for (const Case& one : cases) {
    const FragmentGrid grid(one.volume, one.fragment, one.grid);
    FragmentOutput output;
    output.channels = 3;
    const Values values = random_values(grid, 3, {0, 0.25, 0.3F, 0.30001F, 1}, 4);
    const auto fusion = make_mean(grid, output);
    put_all(*fusion, values, 5);
    const auto labels = all_planes<std::uint16_t>(*fusion, one.volume);
    const auto samples = static_cast<std::size_t>(count_of(grid.fragment()));
    for_voxels(one.volume, [&](const Extent& voxel, std::size_t at) {
      std::array<std::uint64_t, 3> sums{};
      std::uint64_t n = 0;
      for_fragments(grid, voxel, [&](std::size_t i, std::size_t inner) {
        ++n;
        for (std::size_t channel = 0; channel < 3; ++channel) {
          sums[channel] += static_cast<std::uint64_t>(std::rint(values[i][channel * samples + inner] * 65535.0F));
        }
      });
      std::size_t winner = 0;
      for (std::size_t channel = 1; channel < 3; ++channel) {
        if ((2 * sums[channel] + n) / (2 * n) > (2 * sums[winner] + n) / (2 * n)) winner = channel;
      }
      REQUIRE(labels[at] == winner);
    });
  }
}

TEST_CASE("more fragments than sums of 32 bits hold aren't averaged") {
  FragmentOutput output;
  output.channels = 2;
  // Each of them has the whole volume.
  CHECK_THROWS_WITH_AS(make_mean(FragmentGrid({1, 1, 1}, {1, 1, 2}, {256, 256, 2}), output),
                       "scores of 131072 fragments can't be averaged; expected at most 65537 that overlap", Error);
  // Half of them have each sample.
  const FragmentGrid halves({1, 1, 8}, {1, 1, 4}, {256, 256, 2});
  CHECK_NOTHROW(check_fusion(VolumeFusion::mean, halves));
  const FragmentGrid many({1, 1, 8}, {1, 1, 5}, {256, 256, 2});
  CHECK_THROWS_AS(check_fusion(VolumeFusion::mean, many), Error);
  CHECK_NOTHROW(check_fusion(VolumeFusion::vote, many));
  const FragmentGrid grid({1, 1, 1}, {1, 1, 1}, {256, 256, 1});
  const auto fusion = make_mean(grid, output);
  for (std::size_t i = 0; i < grid.count(); ++i) fusion->put(i, std::vector<float>{0, 1});
  CHECK(all_planes<std::uint16_t>(*fusion, grid.volume()) == std::vector<std::uint16_t>{1});
}

TEST_CASE("scores outside the range are refused, and those of an activation aren't") {
  const FragmentGrid grid({2, 2, 2}, {2, 2, 2}, {1, 1, 1});
  FragmentOutput output;
  output.channels = 2;
  const std::vector<float> scores = {5, 5, 5, 5, -5, -5, -5, -5, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK_THROWS_WITH_AS(make_mean(grid, output)->put(0, scores),
                       "the network gives values from -5.0 to 5.0, and model.range is 0.0 to 1.0; set model.range or "
                       "model.activation",
                       Error);
  // ONNX Runtime's own sigmoid exceeds 1 by a rounding.
  std::vector<float> rounded(16, std::nextafter(1.0F, 2.0F));
  CHECK_NOTHROW(make_mean(grid, output)->put(0, rounded));
  rounded[3] = 1.00001F;
  CHECK_THROWS_AS(make_mean(grid, output)->put(0, rounded), Error);
  output.activation = NetworkActivation::softmax;
  const auto fusion = make_mean(grid, output);
  fusion->put(0, scores);
  CHECK(all_planes<std::uint16_t>(*fusion, grid.volume()) == std::vector<std::uint16_t>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("an image counts the values that it clamps, which other fusions don't") {
  const FragmentGrid grid({2, 2, 3}, {2, 2, 2}, {1, 1, 2});
  FragmentOutput output;
  output.high = 4.0F;
  const auto image = make_blend(grid, output, StitchWeights::tent);
  CHECK(image->clamped_share() == 0.0);
  image->put(1, std::vector<float>{0, 1, 2, 3, 4, 0, 0, 0});
  CHECK(image->clamped_share() == 0.0);
  image->put(0, std::vector<float>{-1, 1, 2, 3, 4, 5, 0, 9});
  CHECK(image->clamped_share() == 3.0 / 16.0);
  output.activation = NetworkActivation::sigmoid;
  output.high = 1.0F;
  const auto probabilities = make_blend(grid, output, StitchWeights::tent);
  probabilities->put(0, std::vector<float>{-9, 1, 2, 3, 4, 5, 0, 9});
  CHECK(probabilities->clamped_share() == 0.0);
  output.labels = true;
  const auto labels = make_vote(grid, output);
  labels->put(0, std::vector<float>{0, 1, 2, 3, 4, 5, 0, 9});
  CHECK(labels->clamped_share() == 0.0);
}

TEST_CASE("messages name what computes and its settings as their user does") {
  const FragmentGrid grid({1, 1, 2}, {1, 1, 2}, {1, 1, 1});
  FragmentOutput output;
  output.called = "the function";
  output.range_name = "range=";
  output.activation_name = "activation=";
  output.channels = 2;
  CHECK_THROWS_WITH_AS(
      make_mean(grid, output)->put(0, std::vector<float>{0, 9, 0, 0}),
      "the function gives values from 0.0 to 9.0, and range= is 0.0 to 1.0; set range= or activation=", Error);
  output.channels = 1;
  output.labels = true;
  CHECK_THROWS_WITH_AS(make_vote(grid, output)->put(0, std::vector<float>{0, 0.5F}),
                       "the function gives the label 0.5 at z, y, x = 0, 0, 1 of the fragment; expected a whole number "
                       "from 0 to 255",
                       Error);
}

/// The image along an axis of constant fragments: the first ones are 0, those from `from` on 1.
std::vector<float> blended_step(const FragmentAxis& axis, std::int64_t from) {
  const FragmentGrid grid({1, 1, axis.size}, {1, 1, axis.fragment}, {1, 1, axis.count});
  const auto fusion = make_blend(grid, FragmentOutput{}, StitchWeights::tent);
  for (std::int64_t i = 0; i < axis.count; ++i) {
    const float value = i < from ? 0.0F : 1.0F;
    fusion->put(static_cast<std::size_t>(i), std::vector<float>(static_cast<std::size_t>(axis.fragment), value));
  }
  return all_planes<float>(*fusion, grid.volume());
}

TEST_CASE("a mirrored volume has the mirrored blend where three, four or more fragments overlap") {
  // Begins and ends of these mirror each other. Three, three, four, five, three and two fragments share a sample.
  for (const FragmentAxis& axis : {FragmentAxis{16, 10, 3}, FragmentAxis{17, 11, 3}, FragmentAxis{19, 13, 4},
                                   FragmentAxis{20, 12, 5}, FragmentAxis{19, 8, 4}, FragmentAxis{12, 9, 2}}) {
    for (std::int64_t from = 1; from < axis.count; ++from) {
      CAPTURE(axis.count);
      CAPTURE(from);
      const std::vector<float> image = blended_step(axis, from);
      std::vector<float> mirrored = blended_step(axis, axis.count - from);
      std::ranges::reverse(mirrored);
      for (std::size_t i = 0; i < image.size(); ++i)
        REQUIRE(image[i] == doctest::Approx(1.0 - mirrored[i]).epsilon(1e-4));
      CHECK(std::ranges::is_sorted(image));
    }
  }
  // Fragments of 10 begin at 0, 3 and 6: each neighbour's blend has five samples.
  const std::vector<float> first = blended_step({16, 10, 3}, 1);
  CHECK(first[2] == 0.0F);
  CHECK(first[3] == doctest::Approx(26.0 / 256).epsilon(1e-4));
  CHECK(first[7] == doctest::Approx(230.0 / 256).epsilon(1e-4));
  CHECK(first[8] == 1.0F);
}

TEST_CASE("an image is blended along three axes") {
  for (const Case& one : cases) {
    for (const StitchWeights weights : {StitchWeights::tent, StitchWeights::cosine, StitchWeights::none}) {
      const FragmentGrid grid(one.volume, one.fragment, one.grid);
      FragmentOutput output;
      output.low = -2.0F;
      output.high = 3.0F;
      const Values values = random_values(grid, 1, {-9, -2, -0.7F, 0, 1.234F, 3}, 6);
      const auto fusion = make_blend(grid, output, weights);
      put_all(*fusion, values, 7);
      const auto image = all_planes<float>(*fusion, one.volume);
      const auto z_weights = plain_weights(grid.axis(0), weights);
      const auto y_weights = plain_weights(grid.axis(1), weights);
      const auto x_weights = plain_weights(grid.axis(2), weights);
      for_voxels(one.volume, [&](const Extent& voxel, std::size_t at) {
        std::uint64_t sum = 0;
        std::uint64_t whole = 0;
        for_fragments(grid, voxel, [&](std::size_t i, std::size_t inner) {
          const auto number = static_cast<std::int64_t>(i);
          const auto weight_of = [](const auto& all, std::int64_t sample, std::int64_t fragment) {
            const auto& there = all[static_cast<std::size_t>(sample)];
            const auto found = there.find(fragment);
            return found == there.end() ? std::uint64_t{0} : found->second;
          };
          const std::uint64_t weight =
              weight_of(z_weights, voxel[0], number / (grid.axis(1).count * grid.axis(2).count)) *
              weight_of(y_weights, voxel[1], number / grid.axis(2).count % grid.axis(1).count) *
              weight_of(x_weights, voxel[2], number % grid.axis(2).count);
          const float sample = std::clamp(std::rint((values[i][inner] + 2.0F) * (65535.0F / 5.0F)), 0.0F, 65535.0F);
          sum += weight * static_cast<std::uint64_t>(sample);
          whole += weight;
        });
        REQUIRE(whole == 1U << 24);
        const double sample = static_cast<double>((sum + (1U << 23)) >> 24);
        REQUIRE(image[at] == static_cast<float>(-2.0 + sample * (5.0 / 65535.0)));
      });
    }
  }
}

TEST_CASE("fusions say what memory they take") {
  const FragmentGrid grid({172, 220, 156}, {96, 128, 88}, {3, 3, 3});
  FragmentOutput output;
  output.channels = 133;
  CHECK(fusion_bytes(VolumeFusion::vote, grid, output) == 27ULL * 96 * 128 * 88 * 2);
  // With weights along each axis.
  CHECK(fusion_bytes(VolumeFusion::blend, grid, output) == 27ULL * 96 * 128 * 88 * 2 + (172 + 220 + 156) * 32);
  // Planes of two of three layers, from 0 to 38 + 96; and labels of all. Some bytes per plane say how far it is.
  const std::uint64_t samples = 134ULL * 220 * 156 * 133 * 4 + 172ULL * 220 * 156 * 2;
  CHECK(fusion_bytes(VolumeFusion::mean, grid, output) > samples);
  CHECK(fusion_bytes(VolumeFusion::mean, grid, output) <= samples + 172 * 64);
}

/// Bytes of memory that are taken, files left out.
std::size_t taken_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssAnon:") continue;
    std::size_t kib = 0;
    status >> kib;
    return kib << 10;
  }
  return 0;
}

TEST_CASE("a long line takes no more memory than is said, along whichever axis") {
  constexpr std::int64_t samples = 1 << 20;
  constexpr std::size_t little = 3 << 20;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Extent volume = {1, 1, 1};
    Extent fragment = {1, 1, 1};
    Extent fragments = {1, 1, 1};
    volume[axis] = samples;
    fragment[axis] = samples / 256;
    fragments[axis] = 256;
    const FragmentGrid grid(volume, fragment, fragments);
    REQUIRE(grid.covers());
    for (const VolumeFusion kind : {VolumeFusion::vote, VolumeFusion::mean, VolumeFusion::blend}) {
      CAPTURE(axis);
      CAPTURE(static_cast<int>(kind));
      Config config;
      config.volume.fusion = kind;
      FragmentOutput output;
      output.channels = kind == VolumeFusion::blend ? 1 : 2;
      const std::vector<float> values(static_cast<std::size_t>(fragment[axis] * output.channels), 0.5F);
      const std::size_t before = taken_bytes();
      const auto fusion = make_fusion(config, grid, output);
      for (std::size_t i = 0; i < grid.count(); ++i) fusion->put(i, values);
      const std::size_t said = fusion_bytes(kind, grid, output);
      // AddressSanitizer takes an eighth more.
      CHECK(taken_bytes() <= before + said + said / 4 + little);
    }
  }
}

TEST_CASE("a mean takes no more memory than it says, whichever threads put its fragments") {
  const FragmentGrid grid({64, 128, 128}, {8, 128, 128}, {16, 1, 1});
  FragmentOutput output;
  output.channels = 8;
  const std::vector<float> values(8 * 8 * 128 * 128, 0.5F);
  constexpr std::size_t little = 3 << 20;
  const std::size_t said = fusion_bytes(VolumeFusion::mean, grid, output);
  // Sums of all planes are far more.
  REQUIRE(said + little < 64ULL * 128 * 128 * 8 * 4);
  const std::size_t before = taken_bytes();
  // Threads that live on take turns, so that one begins a plane and another ends it.
  constexpr std::size_t threads = 8;
  constexpr std::size_t volumes = 8;
  std::unique_ptr<Fusion> fusion;
  std::size_t most = 0;
  std::atomic<std::size_t> turn = 0;
  const auto work = [&](std::size_t thread) {
    for (std::size_t i = thread; i < volumes * grid.count(); i += threads) {
      for (std::size_t now = turn; now != i; now = turn) turn.wait(now);
      if (i % grid.count() == 0) fusion = make_mean(grid, output);
      fusion->put(i % grid.count(), values);
      most = std::max(most, taken_bytes());
      ++turn;
      turn.notify_all();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  CHECK(most <= before + said + little);
  // Labels are left.
  CHECK(taken_bytes() <= before + 64 * 128 * 128 * 2 + little);
}

TEST_CASE("planes of a mean that wait for each other have memory of their own") {
  FragmentOutput output;
  output.channels = 3;
  const FragmentGrid grid({12, 6, 5}, {4, 6, 5}, {9, 1, 1});
  const Values more = random_values(grid, 3, {0, 0.25, 0.5, 1}, 6);
  const auto forward = make_mean(grid, output);
  const auto mixed = make_mean(grid, output);
  for (std::size_t i = 0; i < grid.count(); ++i) forward->put(i, more[i]);
  // All planes are begun before one is whole.
  for (const std::size_t i : {0, 4, 8, 2, 6, 1, 7, 3, 5}) mixed->put(i, more[i]);
  CHECK(all_planes<std::uint16_t>(*mixed, grid.volume()) == all_planes<std::uint16_t>(*forward, grid.volume()));
}

}  // namespace
}  // namespace slidestream::volume
