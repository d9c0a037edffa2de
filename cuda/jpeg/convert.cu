#include "cuda/jpeg/convert.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <OctetKind kind, bool with_luminance>
void launch(const JpegDeviceBatch& batch, std::uint32_t most_stretches, cudaStream_t stream) {
  convert<kind, with_luminance>
      <<<stretch_grid(batch.tile_count, most_stretches), 32 * stretch_warps, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

template <OctetKind kind>
void launch(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches, cudaStream_t stream) {
  if ((kinds >> static_cast<unsigned>(kind) & 1U) == 0) return;
  if (batch.luminance == nullptr) {
    launch<kind, false>(batch, most_stretches, stream);
  } else {
    launch<kind, true>(batch, most_stretches, stream);
  }
}

}  // namespace

void launch_convert(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                    cudaStream_t stream) {
  launch<OctetKind::none>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v2>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v1>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full_rgb>(batch, kinds, most_stretches, stream);
  launch<OctetKind::grey>(batch, kinds, most_stretches, stream);
}

}  // namespace slidestream::cuda
