#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/image.hpp>
#include <slidestream/operator.hpp>
#include <span>
#include <string>

/// \file
/// Image operators on a device. They give the pixels that the operators' host kernels give, to the bit: what is made
/// of a pixel is one source for both.

namespace slidestream::cuda {

/// An image operator at work on a device: one a compute stream, used by one thread at a time.
class DeviceImageKernel {
 public:
  virtual ~DeviceImageKernel() = default;

  /// Device memory, in bytes, that it wants for making an image part of `out` pixels at once: tables and sums in
  /// between. Doesn't shrink when either side grows; 0 where it wants none.
  virtual std::size_t scratch_bytes(const Size& out) const = 0;

  /// Puts on `stream` the making of all of `out.rect`, which isn't empty. What it makes depends on the image's pixels
  /// alone, never on the rectangle. Allocates nothing, waits for nothing and touches no other stream.
  /// \param out  in the format of the operator's product; any address and pitch that suit its samples. Fast where the
  ///   rectangle's first pixel lies at a multiple of 16 bytes, in `in` as well, and pitches are multiples of 16.
  /// \param in  in the operator's input format, of the same image: `out.rect` with the operator's halo, as far as that
  ///   lies inside the image. Beyond the image's ends pixels are mirrored as the operator does it. Doesn't overlap
  ///   `out`.
  /// \param scratch  at least `scratch_bytes` of out.rect's size, aligned to 256 bytes; the call's own until the stream
  ///   has passed it.
  /// \param parameters  what `Operator::prepare` gave for the slide; copied before the call returns.
  /// \throws CudaError when something can't be enqueued; std::invalid_argument when the views don't fit.
  virtual void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                       std::span<std::byte> scratch, const SlideParameters* parameters, cudaStream_t stream) = 0;
};

/// The kernel of the operator with this name (`Operator::name`) and its settings; null where there is none for it.
std::unique_ptr<DeviceImageKernel> make_device_image_kernel(const std::string& name, const Config& config);

}  // namespace slidestream::cuda
