#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg2000/decoder_memory.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"

namespace slidestream::cuda {

static_assert(sizeof(Jpeg2000Counters) <= 8192);

std::size_t Jpeg2000BatchDecoder::device_bytes(const Jpeg2000BatchLimits& limits) {
  return Jpeg2000DecoderMemory(Jpeg2000UploadLayout(limits)).size;
}

Jpeg2000BatchDecoder::Jpeg2000BatchDecoder(const Jpeg2000BatchLimits& limits, std::span<std::byte> device)
    : layout_(limits), upload_(device.data()) {
  int number = 0;
  int multiprocessors = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&number));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, number));
  multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
  const Jpeg2000DecoderMemory parts(layout_);
  if (device.size() < parts.size) throw std::length_error("too little device memory for a JPEG 2000 decoder");
  std::byte* const base = device.data();
  upload_ = base + parts.upload;
  device_.codings = reinterpret_cast<const Jpeg2000Coding*>(upload_ + layout_.codings);
  device_.tiles = reinterpret_cast<const Jpeg2000DeviceTile*>(upload_ + layout_.tiles);
  device_.parts = reinterpret_cast<const Jpeg2000TilePart*>(upload_ + layout_.parts);
  device_.tables = reinterpret_cast<const std::uint8_t*>(base + parts.tables);
  device_.counters = reinterpret_cast<Jpeg2000Counters*>(base + parts.counters);
  device_.state = reinterpret_cast<std::uint32_t*>(base + parts.state);
  device_.blocks = reinterpret_cast<Jpeg2000Block*>(base + parts.blocks);
  device_.jobs = reinterpret_cast<BlockJob*>(base + parts.jobs);
  device_.job_blocks = reinterpret_cast<std::uint32_t*>(base + parts.job_blocks);
  device_.pieces = reinterpret_cast<BlockPiece*>(base + parts.pieces);
  device_.stream = reinterpret_cast<std::uint32_t*>(base + parts.stream);
  device_.planes = reinterpret_cast<std::uint32_t*>(base + parts.planes) + plane_margin;
  device_.colour = reinterpret_cast<float*>(base + parts.colour);
  device_.colour_capacity = colour_floats * layout_.limits.colour_tiles;
  device_.plane_capacity = layout_.limits.plane_words;
  device_.stream_capacity = static_cast<std::uint32_t>(parts.stream_words_limit);
  device_.piece_capacity = layout_.limits.pieces;
  const auto tables = make_mq_tables();
  runtime::cuda::copy_to_device(base + parts.tables, tables.data(), tables.size());
}

void Jpeg2000BatchDecoder::enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const Jpeg2000Batch& batch,
                                   std::span<const std::byte> compressed, cudaStream_t stream,
                                   const DeviceColours& colours) {
  if (batch.converts() && colours.every == nullptr)
    throw std::invalid_argument("what colours are converted to wasn't made");
  if (compressed.size() % 16 != 0 || compressed.size() < batch.compressed_end())
    throw std::length_error("the compressed buffer ends before its tiles");
  const auto copy = [&](std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(upload_ + offset, batch.upload().data() + offset, bytes, cudaMemcpyHostToDevice, stream));
  };
  copy(layout_.tiles, batch.tiles() * sizeof(Jpeg2000DeviceTile));
  copy(layout_.parts, batch.parts() * sizeof(Jpeg2000TilePart));
  copy(layout_.rectangles, batch.white_rectangles() * sizeof(JpegDeviceRectangle));
  copy(layout_.codings, batch.codings() * sizeof(Jpeg2000Coding));
  JpegDeviceBatch white{};
  white.rectangles = reinterpret_cast<const JpegDeviceRectangle*>(upload_ + layout_.rectangles);
  white.rectangle_count = batch.white_rectangles();
  white.plane = plane;
  launch_white(white, stream);
  Jpeg2000DeviceBatch device = device_;
  device.compressed = reinterpret_cast<const std::uint8_t*>(compressed.data());
  device.plane = plane;
  device.verdicts = verdicts;
  device.every_colour = colours.every;
  for (const Jpeg2000Wave& tiles : batch.waves()) {
    const Jpeg2000DeviceBatch wave = of_wave(device, tiles);
    launch_packets(wave, multiprocessors_, stream);
    launch_blocks(wave, batch.has_styles(), multiprocessors_, stream);
    for (const bool reversible : {false, true}) {
      if (batch.has(reversible, Jpeg2000Way::first_alone)) launch_transform(wave, reversible, stream);
      if (batch.has(reversible, Jpeg2000Way::colour)) launch_colour(wave, reversible, multiprocessors_, stream);
      if (tiles.large_side > 0 && batch.has(reversible, Jpeg2000Way::large)) {
        launch_large(wave, reversible, multiprocessors_, stream);
      }
    }
  }
}

}  // namespace slidestream::cuda
