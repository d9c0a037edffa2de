#include "cuda/jpeg/convert.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <OctetKind kind, bool with_luminance, ColoursBy by>
void launch(const JpegDeviceBatch& batch, std::uint32_t most_stretches, cudaStream_t stream) {
  convert<kind, with_luminance, by>
      <<<stretch_grid(batch.tile_count, most_stretches), 32 * stretch_warps, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

template <OctetKind kind, ColoursBy by>
void launch(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches, cudaStream_t stream) {
  if ((kinds >> static_cast<unsigned>(kind) & 1U) == 0) return;
  if (batch.luminance == nullptr) {
    launch<kind, false, by>(batch, most_stretches, stream);
  } else {
    launch<kind, true, by>(batch, most_stretches, stream);
  }
}

template <ColoursBy by>
void launch_kinds(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                  cudaStream_t stream) {
  launch<OctetKind::none, by>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v2, by>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v1, by>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full, by>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full_rgb, by>(batch, kinds, most_stretches, stream);
  launch<OctetKind::grey, by>(batch, kinds, most_stretches, stream);
}

}  // namespace

void launch_convert(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                    cudaStream_t stream) {
  switch (colours_by(batch.colours)) {
    case ColoursBy::matrix:
      return launch_kinds<ColoursBy::matrix>(batch, kinds, most_stretches, stream);
    case ColoursBy::every:
      return launch_kinds<ColoursBy::every>(batch, kinds, most_stretches, stream);
    case ColoursBy::file:
      return launch_kinds<ColoursBy::file>(batch, kinds, most_stretches, stream);
  }
}

}  // namespace slidestream::cuda
