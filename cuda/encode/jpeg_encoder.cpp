#include "cuda/encode/jpeg_encoder.hpp"

#include <stdexcept>

#include "cuda/encode/encode.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"

namespace slidestream::cuda {

JpegEncoder::JpegEncoder(const JpegEncoderLimits& limits, int quality, std::span<std::byte> device)
    : limits_((require_sound(limits), limits)),
      tables_(limits.format, quality, static_cast<int>(limits.side), limits.subsampling),
      memory_(limits),
      device_(device.data()) {
  if (device.size() < memory_.size) throw std::length_error("too little device memory for a JPEG encoder");
  int current = 0;
  int multiprocessors = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&current));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current));
  multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
  prepare_encode();
  const CodingTables tables[2] = {tables_.luminance, tables_.chrominance};
  runtime::cuda::copy_to_device(device_ + memory_.tables, tables, sizeof(tables));
  runtime::cuda::copy_to_device(device_ + memory_.header, tables_.header.data(), tables_.header.size());
}

void JpegEncoder::enqueue(const ConstPixelView<MemorySpace::device>& plane, std::span<const JpegTilePosition> tiles,
                          const JpegEncoderOutput& out, cudaStream_t stream) {
  EncodeTask task = make_encode_task(limits_, plane, tiles);
  if (out.offsets.size() <= tiles.size()) throw std::length_error("too few offsets for a batch of JPEG tiles");
  task.tiles = reinterpret_cast<const JpegTilePosition*>(device_ + memory_.tiles);
  task.header_bytes = static_cast<std::uint32_t>(tables_.header.size());
  task.header = reinterpret_cast<const std::uint8_t*>(device_ + memory_.header);
  task.tables = reinterpret_cast<const CodingTables*>(device_ + memory_.tables);
  task.scratch = reinterpret_cast<std::uint32_t*>(device_ + memory_.scratch);
  task.counters = reinterpret_cast<EncodeCounters*>(device_ + memory_.counters);
  task.bands = reinterpret_cast<BandRecord*>(device_ + memory_.bands);
  task.lengths = reinterpret_cast<std::uint32_t*>(device_ + memory_.lengths);
  task.offsets = out.offsets.data();
  task.scratch_units = out.scratch_units;
  task.output = reinterpret_cast<std::uint8_t*>(out.bytes.data());
  task.output_capacity = out.bytes.size();
  SLIDESTREAM_CUDA(cudaMemsetAsync(task.counters, 0, sizeof(EncodeCounters), stream));
  if (!tiles.empty()) {
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(device_ + memory_.tiles, tiles.data(), tiles.size_bytes(), cudaMemcpyHostToDevice, stream));
    launch_encode(task, multiprocessors_, stream);
  }
  launch_pack(task, stream);
}

}  // namespace slidestream::cuda
