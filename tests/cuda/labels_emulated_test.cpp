// The kernel that chooses labels, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/networks/labels.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;

namespace {

std::vector<std::uint16_t> labels_of(const std::vector<float>& scores, std::uint32_t channels) {
  const std::size_t voxels = scores.size() / channels;
  // One more stands behind them.
  std::vector<std::uint16_t> labels(voxels + 1, 7777);
  const LabelsTask<float> task = {scores.data(), labels.data(), voxels, channels};
  const unsigned blocks = labels_blocks(task);
  for (unsigned block = 0; block < blocks; ++block) {
    test::emulator::run_block(block, blocks, LabelsShape::threads, [&] { choose_labels<AsFloat, float>(task); });
  }
  CHECK(labels.back() == 7777);
  labels.pop_back();
  return labels;
}

}  // namespace

TEST_CASE("labels are the channels with the largest scores, the lowest of equals") {
  std::mt19937 random(5);
  for (const std::uint32_t channels : {1U, 2U, 9U, 133U}) {
    for (const std::size_t voxels : {std::size_t{1}, std::size_t{255}, std::size_t{1000}}) {
      // Few values, so that many are equal.
      std::vector<float> scores(channels * voxels);
      for (float& score : scores) score = static_cast<float>(random() % 7) - 3.0F;
      std::vector<std::uint16_t> expected(voxels);
      for (std::size_t i = 0; i < voxels; ++i) {
        for (std::size_t channel = 1; channel < channels; ++channel) {
          if (scores[channel * voxels + i] > scores[expected[i] * voxels + i]) {
            expected[i] = static_cast<std::uint16_t>(channel);
          }
        }
      }
      CHECK(labels_of(scores, channels) == expected);
    }
  }
}

TEST_CASE("a voxel with a score that isn't finite has no label, and the others have theirs") {
  constexpr std::size_t voxels = 300;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {std::nanf(""), infinity, -infinity}) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::vector<float> scores(3 * voxels, -1.0F);
      std::fill_n(scores.begin() + 2 * voxels, voxels, std::numeric_limits<float>::max());
      scores[channel * voxels + 257] = odd;
      std::vector<std::uint16_t> expected(voxels, 2);
      expected[257] = no_label;
      CHECK(labels_of(scores, 3) == expected);
    }
  }
}
