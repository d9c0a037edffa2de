#include <doctest/doctest.h>
#include <unistd.h>

#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/real_dft_2d.hpp"
#include "support/reference.hpp"

using namespace slidestream;
namespace fs = std::filesystem;

namespace {

/// A folder that goes with the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("slidestream-wisdom-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::vector<std::complex<float>> transform(const RealDft2d& dft, std::size_t side, std::uint64_t seed) {
  AlignedBuffer<float> pixels(side * side);
  AlignedBuffer<std::complex<float>> spectrum(side * (side / 2 + 1));
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < side * side; ++i) pixels.data()[i] = static_cast<float>(random() % 256);
  dft.forward(spectrum.data(), pixels.data());
  return {spectrum.data(), spectrum.data() + spectrum.size()};
}

bool same_bits(const std::vector<std::complex<float>>& a, const std::vector<std::complex<float>>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the transform of a row of ones and zeros is the definition's") {
  // One row only: every ky gives the row's own transform.
  const std::size_t side = 24;
  AlignedBuffer<float> pixels(side * side);
  AlignedBuffer<std::complex<float>> spectrum(side * (side / 2 + 1));
  std::vector<std::complex<double>> row(side);
  for (std::size_t x = 0; x < side; ++x) row[x] = pixels.data()[x] = static_cast<float>(x * x % 7);
  make_fftw_dft_2d(static_cast<int>(side), "")->forward(spectrum.data(), pixels.data());
  const std::vector<std::complex<double>> expected = test::reference_dft(row);
  for (std::size_t ky = 0; ky < side; ++ky) {
    for (std::size_t kx = 0; kx <= side / 2; ++kx) {
      const std::complex<double> found = spectrum.data()[ky * (side / 2 + 1) + kx];
      CHECK(std::abs(found - expected[kx]) < 1e-4);
    }
  }
}

TEST_CASE("wisdom is kept in its file, and gives the same plan ever after") {
  const Folder folder;
  const std::string file = folder.file("wisdom");
  const auto first = transform(*make_fftw_dft_2d(64, file), 64, 1);
  const std::string kept = contents(file);
  CHECK(kept.find("fftw") != std::string::npos);
  CHECK(same_bits(transform(*make_fftw_dft_2d(64, file), 64, 1), first));
  CHECK(contents(file) == kept);

  // Another shape joins the file, and the first one's plan stays.
  make_fftw_dft_2d(48, file);
  CHECK(contents(file).size() > kept.size());
  CHECK(same_bits(transform(*make_fftw_dft_2d(64, file), 64, 1), first));
}

TEST_CASE("plans without wisdom don't depend on what was planned before") {
  const Folder folder;
  const auto before = transform(*make_fftw_dft_2d(128, ""), 128, 2);
  make_fftw_dft_2d(128, folder.file("wisdom"));
  CHECK(same_bits(transform(*make_fftw_dft_2d(128, ""), 128, 2), before));
}

TEST_CASE("a wisdom file that can't be used is an error that names it") {
  const Folder folder;
  std::ofstream(folder.file("bad")) << "no wisdom here\n";
  std::ofstream(folder.file("empty"));
  fs::create_directories(folder.file("folder"));
  for (const std::string& file :
       {folder.file("bad"), folder.file("empty"), folder.file("folder"), folder.file("missing/wisdom")}) {
    INFO(file);
    try {
      make_fftw_dft_2d(16, file);
      FAIL("no error");
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).find(file) != std::string::npos);
      CHECK(std::string(error.what()).find("fftw_wisdom") != std::string::npos);
    }
  }
  CHECK(contents(folder.file("bad")) == "no wisdom here\n");
}
