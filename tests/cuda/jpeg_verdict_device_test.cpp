// The verdicts of the CPU's decoder and of the GPU's.

#include <doctest/doctest.h>

#include "cuda/jpeg_device_runs.hpp"
#include "cuda/jpeg_verdicts.hpp"
#include "support/test_data.hpp"

namespace slidestream::test {
namespace {

/// Batches on a device: by turns cut for it, never cut into pieces, and always.
class DeviceBatches {
 public:
  explicit DeviceBatches(const PixelFormat& format)
      : runs_({.tiles = most_tiles_at_once,
               .compressed_bytes = 32U << 20,
               .codings = 2 * most_tiles_at_once,
               .segments = 1U << 18,
               .format = format,
               .component_bytes = format == rgb_format ? std::uint64_t{4} << 30 : 0}) {}

  GpuWay way() {
    return [this](const std::vector<DeviceTile>& tiles, const Bytes& tables) {
      constexpr std::int64_t lanes[] = {-1, 0, std::int64_t{1} << 30};
      return runs_.run(tiles, tables, lanes[number_++ % 3]);
    };
  }

 private:
  DeviceRuns runs_;
  std::size_t number_ = 0;
};

TEST_CASE("every combination has one verdict (large)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    DeviceBatches batches(format);
    check_combinations(batches.way(), format, 1);
  }
}

TEST_CASE("what three components are has one verdict, and their pixels are of it (long)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    DeviceBatches batches(format);
    check_colours(batches.way(), format);
  }
}

TEST_CASE("every size has one verdict (long)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    DeviceBatches batches(format);
    check_sizes(batches.way(), format);
  }
}

TEST_CASE("mutants of headers have one verdict (large)") {
  if (!gpu_is_there()) return report_skipped("no GPU");
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    DeviceBatches batches(format);
    check_header_mutants(batches.way(), format, 40000);
  }
}

}  // namespace
}  // namespace slidestream::test
