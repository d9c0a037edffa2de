#include "cuda/jpeg/jpeg_batch_decoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

constexpr LaneMode all_modes[lane_modes] = {LaneMode::pairs, LaneMode::single, LaneMode::rgb, LaneMode::component_pairs,
                                            LaneMode::component_blocks};

JpegDeviceLimits current_device() {
  int device = 0;
  int multiprocessors = 0;
  int shared_bytes = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return {static_cast<std::uint32_t>(multiprocessors), static_cast<std::uint32_t>(shared_bytes)};
}

}  // namespace

std::size_t JpegBatchDecoder::device_bytes(const JpegBatchLimits& limits) {
  return JpegDecoderMemory(JpegUploadLayout(limits), current_device().multiprocessors).size;
}

JpegBatchDecoder::JpegBatchDecoder(const JpegBatchLimits& limits, std::span<std::byte> device)
    : layout_(limits), device_limits_(current_device()), upload_(device.data()) {
  const JpegDecoderMemory parts(layout_, device_limits_.multiprocessors);
  if (device.size() < parts.size) throw std::length_error("too little device memory for a JPEG decoder");
  std::byte* const base = device.data();
  upload_ = base + parts.upload;
  device_.codings = reinterpret_cast<const JpegCoding*>(upload_ + layout_.codings);
  device_.tiles = reinterpret_cast<const JpegDeviceTile*>(upload_ + layout_.tiles);
  device_.groups = reinterpret_cast<const JpegDeviceGroup*>(upload_ + layout_.groups);
  device_.rectangles = reinterpret_cast<const JpegDeviceRectangle*>(upload_ + layout_.rectangles);
  if (limits.with_luminance) {
    device_.luminance = reinterpret_cast<const JpegDeviceLuminance*>(upload_ + layout_.luminance);
  }
  device_.queue = reinterpret_cast<const std::uint32_t*>(upload_ + layout_.queue);
  device_.scans = reinterpret_cast<uint4*>(base + parts.scans);
  device_.lengths = reinterpret_cast<std::uint32_t*>(base + parts.lengths);
  device_.segments = reinterpret_cast<JpegSegment*>(base + parts.segments);
  device_.pieces = reinterpret_cast<JpegPiece*>(base + parts.pieces);
  device_.counters = reinterpret_cast<std::uint32_t*>(base + parts.counters);
  device_.parked = reinterpret_cast<std::uint8_t*>(base + parts.parked);
  device_.components = reinterpret_cast<std::uint8_t*>(base + parts.components);
}

std::uint32_t JpegBatchDecoder::lanes() const noexcept { return device_limits_.multiprocessors * 12 * 24; }

void JpegBatchDecoder::enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const JpegBatch& batch,
                               std::span<const std::byte> compressed, cudaStream_t stream,
                               const DeviceColours& colours) {
  if (compressed.size() < batch.compressed_end())
    throw std::length_error("the compressed buffer ends before its tiles");
  if (layout_.limits.format == rgb_format && reinterpret_cast<std::uintptr_t>(plane) % 16 != 0)
    throw std::invalid_argument("a plane for RGB begins at a multiple of 16 bytes");
  if (layout_.limits.format != rgb_format && colours.program != nullptr)
    throw std::invalid_argument("luminance alone has no colours to convert");
  const auto copy = [&](std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(upload_ + offset, batch.upload().data() + offset, bytes, cudaMemcpyHostToDevice, stream));
  };
  copy(layout_.groups, batch.groups() * sizeof(JpegDeviceGroup));
  copy(layout_.tiles, batch.tiles() * sizeof(JpegDeviceTile));
  copy(layout_.rectangles, batch.white_rectangles() * sizeof(JpegDeviceRectangle));
  copy(layout_.codings, batch.codings() * sizeof(JpegCoding));
  copy(layout_.queue, batch.segments() * sizeof(std::uint32_t));
  if (layout_.limits.with_luminance) copy(layout_.luminance, batch.tiles() * sizeof(JpegDeviceLuminance));
  if (batch.groups() > 0) {
    SLIDESTREAM_CUDA(cudaMemsetAsync(device_.counters, 0, batch.groups() * sizeof(std::uint32_t), stream));
  }
  JpegDeviceBatch device = device_;
  device.compressed = reinterpret_cast<const std::uint8_t*>(compressed.data());
  device.plane = plane;
  device.verdicts = verdicts;
  device.tile_count = batch.tiles();
  device.segment_count = batch.segments();
  device.rectangle_count = batch.white_rectangles();
  device.group_count = batch.groups();
  device.colours = colours;
  launch_white(device, stream);
  launch_unstuff(device, stream);
  if (batch.most_pieces() > 0) {
    std::uint32_t lookup_words = 0;
    for (const LaneMode mode : all_modes) lookup_words = std::max(lookup_words, batch.mode(mode).lookup_words);
    launch_find_pieces(device, device_limits_, batch.most_pieces(), lookup_words, stream);
  }
  for (const LaneMode mode : all_modes) {
    const JpegBatch::Mode& work = batch.mode(mode);
    if (work.segments > 0)
      launch_decode(device, mode, work, shape_for(device_limits_, mode, work, batch.most_pieces() > 0), stream);
  }
  if (batch.most_stretches() == 0) return;
  launch_convert(device, batch.octet_kinds(), batch.most_stretches(), device_limits_.multiprocessors, stream);
}

}  // namespace slidestream::cuda
