#include <kiss_fft.h>

#include <algorithm>
#include <new>
#include <string>

#include "spectrum/real_dft_2d.hpp"

namespace slidestream {

namespace {

struct FreePlan {
  void operator()(kiss_fft_cfg plan) const noexcept { kiss_fft_free(plan); }
};

/// Columns that are gathered together: a cache line of them.
constexpr std::size_t gathered = 8;

class KissDft2d final : public RealDft2d {
 public:
  explicit KissDft2d(int n)
      : side_(static_cast<std::size_t>(n)),
        name_("kissfft-" + std::to_string(n)),
        plan_(kiss_fft_alloc(n, 0, nullptr, nullptr)) {
    if (plan_ == nullptr) throw std::bad_alloc();
  }

  const char* name() const noexcept override { return name_.c_str(); }
  std::size_t scratch_floats() const noexcept override { return 2 * (gathered + 1) * side_; }

  void forward(std::complex<float>* spectrum, const float* pixels, float* scratch) const override {
    const std::size_t half = side_ / 2;
    auto* in = reinterpret_cast<std::complex<float>*>(scratch);
    std::complex<float>* out = in + gathered * side_;
    // Two real rows are one complex sequence: 2 A(k) = Z(k) + conj Z(-k), 2 i B(k) = Z(k) - conj Z(-k).
    for (std::size_t y = 0; y < side_; y += 2) {
      const float* row = pixels + y * side_;
      for (std::size_t x = 0; x < side_; ++x) in[x] = {row[x], row[x + side_]};
      transform(out, in);
      std::complex<float>* first = spectrum + y * (half + 1);
      std::complex<float>* second = first + half + 1;
      for (std::size_t k = 0; k <= half; ++k) {
        const std::complex<float> z = out[k % side_];
        const std::complex<float> mirrored = out[(side_ - k) % side_];
        first[k] = {0.5F * (z.real() + mirrored.real()), 0.5F * (z.imag() - mirrored.imag())};
        second[k] = {0.5F * (z.imag() + mirrored.imag()), 0.5F * (mirrored.real() - z.real())};
      }
    }
    for (std::size_t begin = 0; begin <= half; begin += gathered) {
      const std::size_t count = std::min(gathered, half + 1 - begin);
      for (std::size_t y = 0; y < side_; ++y) {
        const std::complex<float>* row = spectrum + y * (half + 1) + begin;
        for (std::size_t i = 0; i < count; ++i) in[i * side_ + y] = row[i];
      }
      for (std::size_t i = 0; i < count; ++i) {
        transform(out, in + i * side_);
        for (std::size_t y = 0; y < side_; ++y) spectrum[y * (half + 1) + begin + i] = out[y];
      }
    }
  }

 private:
  void transform(std::complex<float>* out, const std::complex<float>* in) const {
    // A plan is only read as long as input and output are apart.
    kiss_fft(plan_.get(), reinterpret_cast<const kiss_fft_cpx*>(in), reinterpret_cast<kiss_fft_cpx*>(out));
  }

  std::size_t side_;
  std::string name_;
  std::unique_ptr<kiss_fft_state, FreePlan> plan_;
};

}  // namespace

std::unique_ptr<RealDft2d> make_kiss_dft_2d(int n) { return std::make_unique<KissDft2d>(n); }

}  // namespace slidestream
