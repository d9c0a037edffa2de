#include "cuda/jpeg_device_runs.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cuda/device_copies.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::test {
namespace {

using runtime::cuda::DeviceMemory;

constexpr std::uint8_t untouched = 0xA5;
constexpr std::size_t border = 64;

struct Place {
  std::size_t offset = 0;
  std::size_t pitch = 0;
};

/// The next place for a tile's part, in a plane that grows by that.
Place next_place(const DeviceTile& tile, std::size_t& plane_bytes) {
  const auto shift = static_cast<std::size_t>(tile.misalignment);
  const Place place = {plane_bytes + shift, (row_bytes(tile) + border + 63) / 64 * 64 + shift};
  plane_bytes += (place.pitch * static_cast<std::size_t>(tile.height) + border + 63) / 64 * 64;
  return place;
}

/// Takes a part out of the plane.
std::vector<std::uint8_t> take(std::vector<std::uint8_t>& plane, const Place& place, const DeviceTile& tile) {
  std::vector<std::uint8_t> taken;
  for (std::size_t y = 0; y < static_cast<std::size_t>(tile.height); ++y) {
    std::uint8_t* row = plane.data() + place.offset + y * place.pitch;
    taken.insert(taken.end(), row, row + row_bytes(tile));
    std::memset(row, untouched, row_bytes(tile));
  }
  return taken;
}

}  // namespace

bool gpu_is_there() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

struct DeviceRuns::Impl {
  explicit Impl(const cuda::JpegBatchLimits& given)
      : limits(given),
        upload(cuda::JpegBatch::upload_bytes(given) + 64),
        batch(given, aligned_upload()),
        decoder_bytes(cuda::JpegBatchDecoder::device_bytes(given)),
        memory(some_memory(decoder_bytes)),
        decoder(given, {memory.bytes().data(), decoder_bytes}),
        compressed(some_memory(given.compressed_bytes + 16)),
        verdicts(some_memory(4 * std::size_t{given.tiles})) {}

  std::span<std::byte> aligned_upload() {
    const std::size_t shift = -reinterpret_cast<std::uintptr_t>(upload.data()) % 64;
    return std::span(upload).subspan(shift, upload.size() - 64);
  }

  cuda::JpegBatchLimits limits;
  std::vector<std::byte> upload;
  cuda::JpegBatch batch;
  std::size_t decoder_bytes;
  DeviceMemory memory;
  cuda::JpegBatchDecoder decoder;
  DeviceMemory compressed;
  DeviceMemory verdicts;
};

DeviceRuns::DeviceRuns(const cuda::JpegBatchLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
DeviceRuns::~DeviceRuns() = default;

std::vector<DeviceResult> DeviceRuns::run(const std::vector<DeviceTile>& tiles, const Bytes& tables,
                                          std::int64_t lanes) {
  Impl& impl = *impl_;
  const cuda::JpegLevelTables level(tables);
  std::vector<DeviceResult> results(tiles.size());
  std::vector<Place> places(tiles.size());
  std::vector<Place> luminance_places(tiles.size());
  std::vector<std::size_t> number(tiles.size(), 0);
  Bytes packed;
  std::size_t plane_bytes = border;
  impl.batch.clear();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const DeviceTile& tile = tiles[i];
    places[i] = next_place(tile, plane_bytes);
    cuda::JpegPlacement placement;
    placement.offset = places[i].offset;
    placement.pitch = static_cast<std::uint32_t>(places[i].pitch);
    placement.from_x = static_cast<std::uint32_t>(tile.from_x);
    placement.from_y = static_cast<std::uint32_t>(tile.from_y);
    placement.width = static_cast<std::uint32_t>(tile.width);
    placement.height = static_cast<std::uint32_t>(tile.height);
    if (impl.limits.with_luminance) {
      luminance_places[i] = next_place(luminance_of(tile), plane_bytes);
      placement.luminance_offset = luminance_places[i].offset;
      placement.luminance_pitch = static_cast<std::uint32_t>(luminance_places[i].pitch);
    }
    results[i].reason = impl.batch.add(*tile.bytes, packed.size(), level, tile.demand, placement);
    if (results[i].reason != cuda::JpegReason::none) continue;
    number[i] = impl.batch.tiles();
    packed.insert(packed.end(), tile.bytes->begin(), tile.bytes->end());
  }
  packed.resize((packed.size() + 15) / 16 * 16);
  impl.batch.finish(lanes < 0 ? impl.decoder.lanes() : static_cast<std::uint32_t>(lanes));
  const DeviceMemory plane = some_memory(plane_bytes);
  SLIDESTREAM_CUDA(cudaMemset(plane.bytes().data(), untouched, plane_bytes));
  SLIDESTREAM_CUDA(cudaMemset(impl.verdicts.bytes().data(), 0xFF, 4 * std::size_t{impl.limits.tiles}));
  SLIDESTREAM_CUDA(cudaMemcpy(impl.compressed.bytes().data(), packed.data(), packed.size(), cudaMemcpyHostToDevice));
  cudaStream_t stream = nullptr;
  SLIDESTREAM_CUDA(cudaStreamCreate(&stream));
  impl.decoder.enqueue(reinterpret_cast<std::uint8_t*>(plane.bytes().data()),
                       reinterpret_cast<std::uint32_t*>(impl.verdicts.bytes().data()), impl.batch,
                       {impl.compressed.bytes().data(), packed.size()}, stream);
  std::vector<std::uint8_t> pixels(plane_bytes);
  std::vector<std::uint32_t> verdicts(impl.batch.tiles());
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
  SLIDESTREAM_CUDA(cudaStreamDestroy(stream));
  SLIDESTREAM_CUDA(cudaMemcpy(pixels.data(), plane.bytes().data(), plane_bytes, cudaMemcpyDeviceToHost));
  SLIDESTREAM_CUDA(
      cudaMemcpy(verdicts.data(), impl.verdicts.bytes().data(), 4 * verdicts.size(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (number[i] != 0) results[i].reason = static_cast<cuda::JpegReason>(verdicts[number[i] - 1]);
    results[i].pixels = take(pixels, places[i], tiles[i]);
    if (impl.limits.with_luminance) results[i].luminance = take(pixels, luminance_places[i], luminance_of(tiles[i]));
  }
  if (std::any_of(pixels.begin(), pixels.end(), [](std::uint8_t v) { return v != untouched; })) {
    throw std::runtime_error("pixels outside the rectangles were written");
  }
  return results;
}

}  // namespace slidestream::test
