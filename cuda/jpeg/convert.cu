#include "cuda/jpeg/convert.cuh"

#include <algorithm>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

namespace slidestream::cuda {
namespace {

template <OctetKind kind, bool with_luminance, ColoursBy by>
void launch(const JpegDeviceBatch& batch, std::uint32_t most_stretches, std::uint32_t multiprocessors,
            cudaStream_t stream) {
  using Shape = ConvertShape<kind, by>;
  const auto kernel = convert<kind, with_luminance, by>;
  dim3 grid = stretch_grid(batch.tile_count, most_stretches);
  if constexpr (by == ColoursBy::matrix) {
    grid.x = std::min((batch.tile_count + Shape::teams - 1) / Shape::teams, multiprocessors);
    runtime::cuda::allow_shared_memory(kernel, Shape::shared_bytes);
  }
  kernel<<<grid, 32 * Shape::warps, Shape::shared_bytes, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

template <OctetKind kind, ColoursBy by>
void launch(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
            std::uint32_t multiprocessors, cudaStream_t stream) {
  if ((kinds >> static_cast<unsigned>(kind) & 1U) == 0) return;
  if (batch.luminance == nullptr) {
    launch<kind, false, by>(batch, most_stretches, multiprocessors, stream);
  } else {
    launch<kind, true, by>(batch, most_stretches, multiprocessors, stream);
  }
}

template <ColoursBy by>
void launch_kinds(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                  std::uint32_t multiprocessors, cudaStream_t stream) {
  launch<OctetKind::none, by>(batch, kinds, most_stretches, multiprocessors, stream);
  launch<OctetKind::h2v2, by>(batch, kinds, most_stretches, multiprocessors, stream);
  launch<OctetKind::h2v1, by>(batch, kinds, most_stretches, multiprocessors, stream);
  launch<OctetKind::full, by>(batch, kinds, most_stretches, multiprocessors, stream);
  launch<OctetKind::full_rgb, by>(batch, kinds, most_stretches, multiprocessors, stream);
  launch<OctetKind::grey, by>(batch, kinds, most_stretches, multiprocessors, stream);
}

}  // namespace

void launch_convert(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                    std::uint32_t multiprocessors, cudaStream_t stream) {
  switch (colours_by(batch.colours)) {
    case ColoursBy::matrix:
      return launch_kinds<ColoursBy::matrix>(batch, kinds, most_stretches, multiprocessors, stream);
    case ColoursBy::every:
      return launch_kinds<ColoursBy::every>(batch, kinds, most_stretches, multiprocessors, stream);
    case ColoursBy::file:
      return launch_kinds<ColoursBy::file>(batch, kinds, most_stretches, multiprocessors, stream);
  }
}

}  // namespace slidestream::cuda
