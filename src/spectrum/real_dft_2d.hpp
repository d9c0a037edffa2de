#pragma once

#include <complex>
#include <cstddef>
#include <memory>

namespace slidestream {

/// A forward, unnormalised two-dimensional DFT of real N x N squares. The only door to whatever computes it for the
/// plain engine.
class RealDft2d {
 public:
  virtual ~RealDft2d() = default;
  virtual const char* name() const noexcept = 0;  ///< such as "kissfft-100"
  /// Floats of scratch that `forward` wants, aligned as AlignedBuffer does.
  virtual std::size_t scratch_floats() const noexcept = 0;
  /// Whether the frequency that is halved is ky rather than kx.
  virtual bool halves_ky() const noexcept { return false; }
  /// `spectrum[k * (N / 2 + 1) + h]` of `pixels[y * N + x]`, h from 0 to N / 2 being the halved frequency and k the
  /// other. Both aligned as AlignedBuffer does; `pixels` is kept; up to `row_slack` elements beyond the spectrum may be
  /// written. Any number of threads at once, each with scratch of its own; the bits depend on the pixels alone.
  virtual void forward(std::complex<float>* spectrum, const float* pixels, float* scratch) const = 0;
};

/// KISS FFT in float32 for squares of even side `n`. For sides with a prime factor above 5 the library takes a little
/// memory in every call.
std::unique_ptr<RealDft2d> make_kiss_dft_2d(int n);

}  // namespace slidestream
