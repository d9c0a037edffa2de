#pragma once

#include <complex>
#include <memory>
#include <string>

namespace slidestream {

/// A forward, unnormalised two-dimensional DFT of real N x N squares. The only door to whatever library computes it.
class RealDft2d {
 public:
  virtual ~RealDft2d() = default;
  /// `spectrum[ky * (N / 2 + 1) + kx]`, kx from 0 to N / 2, of `pixels[y * N + x]`. Both aligned as AlignedBuffer
  /// does; `pixels` is kept. Any number of threads at once; the bits depend on the pixels alone.
  virtual void forward(std::complex<float>* spectrum, const float* pixels) const = 0;
};

/// FFTW in float32 for squares of side `n`. Without a wisdom file the plan is FFTW's estimate, which is the same in
/// every process. With one, the plan is measured the first time, kept in the file, and taken from it ever after.
/// \throws ConfigError when the wisdom file can't be read or written.
std::unique_ptr<RealDft2d> make_fftw_dft_2d(int n, const std::string& wisdom_file);

}  // namespace slidestream
