#include "volume/volume_made.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/results.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "volume/volume_run.hpp"

namespace slidestream::volume {
namespace {

std::uint16_t label_at(std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<std::uint16_t>((31 * z + 7 * y + x) % 300);
}

/// Gives `label_at`, and counts how often it is asked.
class CountedFusion final : public Fusion {
 public:
  CountedFusion(const Extent& volume, std::atomic<int>& calls) : volume_(volume), calls_(calls) {}

  void put(std::size_t /*fragment*/, std::span<const float> /*values*/) override {}
  void planes(std::int64_t z, std::span<std::uint16_t> labels) const override {
    ++calls_;
    for (auto to = labels.begin(); to != labels.end(); ++z) {
      for (std::int64_t y = 0; y < volume_[1]; ++y) {
        for (std::int64_t x = 0; x < volume_[2]; ++x) *to++ = label_at(z, y, x);
      }
    }
  }

 private:
  Extent volume_;
  std::atomic<int>& calls_;
};

/// Makes labels of a scan with samples of 1 mm, and checks them. \param spacing  of networks; nothing: the scan's
/// \return how often planes were asked for
int made_labels(const Extent& scan, const std::optional<Spacing>& spacing) {
  VolumeWork work(0, "scan.nii");
  work.header.size = {scan[2], scan[1], scan[0]};
  if (spacing) work.resampling = std::make_unique<Resampling>(scan, Spacing{1, 1, 1}, *spacing);
  const Extent seen = spacing ? work.resampling->grid() : scan;
  work.grid = std::make_unique<FragmentGrid>(seen, seen, Extent{1, 1, 1});
  std::atomic<int> calls = 0;
  work.fusion = std::make_unique<CountedFusion>(seen, calls);
  const auto nearest = [&](std::size_t axis, std::int64_t i) {
    return spacing ? work.resampling->nearest(axis, i) : i;
  };
  std::vector<std::uint16_t> expected;
  std::map<std::string, double> voxels;
  for (std::int64_t z = 0; z < scan[0]; ++z) {
    for (std::int64_t y = 0; y < scan[1]; ++y) {
      for (std::int64_t x = 0; x < scan[2]; ++x) {
        expected.push_back(label_at(nearest(0, z), nearest(1, y), nearest(2, x)));
        ++voxels[label_figure + std::to_string(expected.back())];
      }
    }
  }
  make_labels(work, ScalarType::uint16);
  std::vector<std::uint16_t> made;
  for (std::size_t i = 0; i + 1 < work.made.size(); i += 2) {
    made.push_back(
        static_cast<std::uint16_t>(std::to_integer<int>(work.made[i]) | std::to_integer<int>(work.made[i + 1]) << 8));
  }
  CHECK(made == expected);
  std::map<std::string, double> counted;
  for (const NamedValue& value : work.result.values) counted[value.name] = value.value;
  CHECK(counted == voxels);
  return calls;
}

TEST_CASE("labels are those of the nearest samples that networks saw") {
  made_labels({37, 5, 7}, {});
  made_labels({37, 5, 7}, Spacing{2.5, 0.7, 3});
  made_labels({37, 5, 7}, Spacing{0.4, 1.3, 0.5});
  // One plane at a time, and three.
  made_labels({12, 200, 200}, {});
  made_labels({12, 200, 200}, Spacing{0.5, 1, 1});
  made_labels({12, 200, 200}, Spacing{3, 1.5, 2});
}

TEST_CASE("work per plane follows its samples") {
  CHECK(made_labels({200'000, 1, 1}, {}) == 4);
  CHECK(made_labels({20'000, 3, 5}, Spacing{1, 1, 1}) == 5);
  // A plane that no sample of the scan is nearest to isn't made.
  CHECK(made_labels({3, 300, 300}, Spacing{0.25, 1, 1}) == 3);
}

}  // namespace
}  // namespace slidestream::volume
