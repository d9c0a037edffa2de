// The verdicts of the CPU's decoder and of the GPU's, whose code runs on the host here.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg_verdicts.hpp"
#include "support/host_coders/jpeg_decoder.hpp"

namespace slidestream::test {
namespace {

#ifdef SLIDESTREAM_ALL_VERDICTS
constexpr std::size_t step = 1;
constexpr std::size_t mutants = 100000;
#else
constexpr std::size_t step = 29;
constexpr std::size_t mutants = 4000;
#endif

/// A batch described as to a device, and decoded by the device's code.
class HostBatch {
 public:
  explicit HostBatch(const PixelFormat& format)
      : limits_{.tiles = most_tiles_at_once,
                .compressed_bytes = 32U << 20,
                .codings = 2 * most_tiles_at_once,
                .format = format,
                .component_bytes = format == rgb_format ? std::uint64_t{1} << 36 : 0},
        memory_(cuda::JpegBatch::upload_bytes(limits_) / 64 + 1),
        batch_(limits_, std::as_writable_bytes(std::span(memory_))) {}

  std::vector<DeviceResult> run(const std::vector<DeviceTile>& tiles, const Bytes& tables) {
    const cuda::JpegLevelTables level(tables);
    std::vector<DeviceResult> results(tiles.size());
    std::vector<std::int64_t> number(tiles.size(), -1);
    std::vector<std::size_t> places;
    Bytes packed;
    std::size_t plane_bytes = 0;
    batch_.clear();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const DeviceTile& tile = tiles[i];
      places.push_back(plane_bytes);
      cuda::JpegPlacement placement;
      placement.offset = plane_bytes;
      placement.pitch = static_cast<std::uint32_t>(row_bytes(tile));
      placement.from_x = static_cast<std::uint32_t>(tile.from_x);
      placement.from_y = static_cast<std::uint32_t>(tile.from_y);
      placement.width = static_cast<std::uint32_t>(tile.width);
      placement.height = static_cast<std::uint32_t>(tile.height);
      plane_bytes += row_bytes(tile) * static_cast<std::size_t>(tile.height);
      results[i].reason = batch_.add(*tile.bytes, packed.size(), level, tile.demand, placement);
      if (results[i].reason != cuda::JpegReason::none) continue;
      number[i] = batch_.tiles() - 1;
      packed.insert(packed.end(), tile.bytes->begin(), tile.bytes->end());
    }
    batch_.finish(0);
    std::vector<std::uint8_t> plane(plane_bytes);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (number[i] < 0) continue;
      results[i].reason = decoder_.decode(plane.data(), batch_, static_cast<std::uint32_t>(number[i]), packed);
      const auto first = plane.begin() + static_cast<std::ptrdiff_t>(places[i]);
      results[i].pixels.assign(first, first + static_cast<std::ptrdiff_t>(row_bytes(tiles[i])) * tiles[i].height);
    }
    return results;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  cuda::JpegBatchLimits limits_;
  std::vector<Line> memory_;
  cuda::JpegBatch batch_;
  cuda::HostJpegDecoder decoder_;
};

GpuWay host_batch(HostBatch& batch) {
  return [&batch](const std::vector<DeviceTile>& tiles, const Bytes& tables) { return batch.run(tiles, tables); };
}

TEST_CASE("every combination has one verdict (long)") {
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    HostBatch batch(format);
    check_combinations(host_batch(batch), format, step);
  }
}

TEST_CASE("what three components are has one verdict, and their pixels are of it (long)") {
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    HostBatch batch(format);
    check_colours(host_batch(batch), format);
  }
}

TEST_CASE("every size has one verdict (long)") {
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    HostBatch batch(format);
    check_sizes(host_batch(batch), format);
  }
}

TEST_CASE("mutants of headers have one verdict") {
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    HostBatch batch(format);
    check_header_mutants(host_batch(batch), format, mutants);
  }
}

}  // namespace
}  // namespace slidestream::test
