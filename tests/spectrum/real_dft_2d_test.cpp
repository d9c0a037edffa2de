// The plain engine's transforms, against the definition in double precision.
#include "spectrum/real_dft_2d.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engines.hpp"
#include "spectrum/plain_kernels.hpp"
#include "spectrum/smoothing.hpp"
#include "support/reference.hpp"

using namespace slidestream;

namespace {

using Spectrum = std::vector<std::complex<double>>;

/// All of F[ky * side + kx], the offset taken off the pixels.
Spectrum definition(const std::vector<std::uint8_t>& pixels, std::size_t side) {
  Spectrum lines(pixels.begin(), pixels.end());
  for (std::complex<double>& pixel : lines) pixel -= luminance_offset;
  for (int pass = 0; pass < 2; ++pass) {  // along x and turned, along y and turned back
    Spectrum turned(lines.size());
    for (std::size_t i = 0; i < side; ++i) {
      const auto from = lines.begin() + static_cast<std::ptrdiff_t>(i * side);
      const Spectrum line = test::reference_dft({from, from + static_cast<std::ptrdiff_t>(side)});
      for (std::size_t k = 0; k < side; ++k) turned[k * side + i] = line[k];
    }
    lines = turned;
  }
  return lines;
}

/// The largest error of a random square's half spectrum, over the root of their mean square.
double worst_error(const RealDft2d& dft, std::size_t side) {
  std::mt19937_64 random(side);
  std::vector<std::uint8_t> bytes(side * side);
  AlignedBuffer<float> pixels(side * side);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(random() % 256);
    pixels.data()[i] = static_cast<float>(bytes[i] - luminance_offset);
  }
  AlignedBuffer<std::complex<float>> spectrum(side * (side / 2 + 1) + row_slack);
  AlignedBuffer<float> scratch(dft.scratch_floats());
  dft.forward(spectrum.data(), pixels.data(), scratch.data());
  double worst = 0.0;
  const Spectrum expected = definition(bytes, side);
  for (std::size_t k = 0; k < side; ++k) {
    for (std::size_t h = 0; h <= side / 2; ++h) {
      const std::complex<double> found = spectrum.data()[k * (side / 2 + 1) + h];
      const std::size_t at = dft.halves_ky() ? h * side + k : k * side + h;
      worst = std::max(worst, std::abs(found - expected[at]));
    }
  }
  return worst / (static_cast<double>(side) * 74.0);
}

}  // namespace

TEST_CASE("KISS FFT's squares of every kind of side are the definition's") {
  for (const int side : {8, 10, 16, 22, 24, 30, 34, 64, 70, 96, 122, 128, 178, 250, 256}) {
    const auto dft = make_kiss_dft_2d(side);
    INFO(dft->name());
    CHECK(!dft->halves_ky());
    // The library sums DFTs of other primes than 2, 3 and 5 one by one.
    int left = side;
    for (const int prime : {2, 3, 5}) {
      while (left % prime == 0) left /= prime;
    }
    CHECK(worst_error(*dft, static_cast<std::size_t>(side)) < (left == 1 ? 1e-6 : 1e-5));
  }
}

TEST_CASE("the vectorised squares of every side are the definition's (long)") {
  for (const int side : {16, 32, 64, 128, 256, 512, 1024}) {
    if (!square_transforms_take(side)) continue;
    const auto dft = make_square_dft_2d(side);
    INFO(dft->name());
    CHECK(dft->halves_ky());
    CHECK(worst_error(*dft, static_cast<std::size_t>(side)) < 1e-6);
  }
  for (const int side : {8, 24, 96, 2048}) CHECK(!square_transforms_take(side));
}
