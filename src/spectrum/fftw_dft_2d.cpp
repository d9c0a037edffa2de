#include <fftw3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>

#include <slidestream/error.hpp>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/real_dft_2d.hpp"

namespace slidestream {

namespace {

/// FFTW's planner keeps process-wide state and isn't thread-safe; executing plans is.
std::mutex& planner_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Puts away the wisdom that the process has gathered so far and brings it back at the end. What was measured for one
/// engine would otherwise change the plans, and so the last bits, of the next.
class WisdomScope {
 public:
  WisdomScope() : kept_(fftwf_export_wisdom_to_string()) { fftwf_forget_wisdom(); }
  ~WisdomScope() {
    fftwf_forget_wisdom();
    if (kept_ != nullptr) fftwf_import_wisdom_from_string(kept_);
    std::free(kept_);
  }
  WisdomScope(const WisdomScope&) = delete;
  WisdomScope& operator=(const WisdomScope&) = delete;

 private:
  char* kept_;
};

struct PlanDeleter {
  void operator()(fftwf_plan plan) const noexcept {
    const std::lock_guard lock(planner_mutex());
    fftwf_destroy_plan(plan);
  }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftwf_plan>, PlanDeleter>;

void read_wisdom(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error) && !error) return;  // made when the plan is known
  if (error) throw ConfigError("analysis.fftw_wisdom: can't read " + file + ": " + error.message());
  if (!std::filesystem::is_regular_file(file, error)) {
    throw ConfigError("analysis.fftw_wisdom: " + file + " is not a regular file");
  }
  if (fftwf_import_wisdom_from_filename(file.c_str()) == 0) {
    throw ConfigError("analysis.fftw_wisdom: can't read " + file + " as wisdom of single-precision " + fftwf_version);
  }
}

/// Whole to a temporary name, then renamed: a reader never sees half of it.
void write_wisdom(const std::string& file) {
  const std::string temporary = file + "." + std::to_string(getpid()) + ".tmp";
  if (fftwf_export_wisdom_to_filename(temporary.c_str()) == 0 || std::rename(temporary.c_str(), file.c_str()) != 0) {
    const std::string cause = std::strerror(errno);
    std::remove(temporary.c_str());
    throw ConfigError("analysis.fftw_wisdom: can't write " + file + ": " + cause);
  }
}

class FftwDft2d final : public RealDft2d {
 public:
  FftwDft2d(int n, const std::string& wisdom_file) {
    const std::size_t side = static_cast<std::size_t>(n);
    AlignedBuffer<float> pixels(side * side);
    AlignedBuffer<std::complex<float>> spectrum(side * (side / 2 + 1));
    const auto make = [&](unsigned flags) {
      return fftwf_plan_dft_r2c_2d(n, n, pixels.data(), reinterpret_cast<fftwf_complex*>(spectrum.data()),
                                   flags | FFTW_PRESERVE_INPUT);
    };

    const std::lock_guard lock(planner_mutex());
    const WisdomScope scope;
    if (wisdom_file.empty()) {
      // FFTW_MEASURE may choose another plan in the next process, and then the same slide would give other bits.
      plan_.reset(make(FFTW_ESTIMATE));
    } else {
      read_wisdom(wisdom_file);
      plan_.reset(make(FFTW_MEASURE | FFTW_WISDOM_ONLY));
      if (plan_ == nullptr) {
        plan_.reset(make(FFTW_MEASURE));
        if (plan_ != nullptr) write_wisdom(wisdom_file);
      }
    }
    if (plan_ == nullptr) throw std::bad_alloc();
  }

  void forward(std::complex<float>* spectrum, const float* pixels) const override {
    // FFTW's interface has no const; the plan preserves its input.
    fftwf_execute_dft_r2c(plan_.get(), const_cast<float*>(pixels), reinterpret_cast<fftwf_complex*>(spectrum));
  }

 private:
  Plan plan_;
};

}  // namespace

std::unique_ptr<RealDft2d> make_fftw_dft_2d(int n, const std::string& wisdom_file) {
  return std::make_unique<FftwDft2d>(n, wisdom_file);
}

}  // namespace slidestream
