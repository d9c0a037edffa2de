#include "fftw_dft_2d.hpp"

#include <fftw3.h>

#include <new>
#include <string>

#include "spectrum/aligned_buffer.hpp"

namespace slidestream::bench {

namespace {

struct PlanDeleter {
  void operator()(fftwf_plan plan) const noexcept { fftwf_destroy_plan(plan); }
};

class FftwDft2d final : public RealDft2d {
 public:
  explicit FftwDft2d(int n) : name_("fftw-" + std::to_string(n)) {
    const std::size_t side = static_cast<std::size_t>(n);
    AlignedBuffer<float> pixels(side * side);
    AlignedBuffer<std::complex<float>> spectrum(side * (side / 2 + 1));
    plan_.reset(fftwf_plan_dft_r2c_2d(n, n, pixels.data(), reinterpret_cast<fftwf_complex*>(spectrum.data()),
                                      FFTW_ESTIMATE | FFTW_PRESERVE_INPUT));
    if (plan_ == nullptr) throw std::bad_alloc();
  }

  const char* name() const noexcept override { return name_.c_str(); }
  std::size_t scratch_floats() const noexcept override { return 0; }
  void forward(std::complex<float>* spectrum, const float* pixels, float* /*scratch*/) const override {
    // FFTW's interface has no const; the plan preserves its input.
    fftwf_execute_dft_r2c(plan_.get(), const_cast<float*>(pixels), reinterpret_cast<fftwf_complex*>(spectrum));
  }

 private:
  std::string name_;
  std::unique_ptr<std::remove_pointer_t<fftwf_plan>, PlanDeleter> plan_;
};

}  // namespace

std::unique_ptr<RealDft2d> make_fftw_dft_2d(int n) { return std::make_unique<FftwDft2d>(n); }

}  // namespace slidestream::bench
