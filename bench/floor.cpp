#include "floor.hpp"

#include <fftw3.h>
#include <tiffio.h>

#include <memory>
#include <stdexcept>

#include "jpeg_alone.hpp"

namespace slidestream::bench {
namespace {

constexpr int kWindow = 256;
constexpr int kStride = 128;

struct FftwFree {
  void operator()(void* memory) const { fftwf_free(memory); }
};

template <class T>
std::unique_ptr<T, FftwFree> allocate(std::size_t count) {
  return std::unique_ptr<T, FftwFree>(static_cast<T*>(fftwf_malloc(count * sizeof(T))));
}

/// One thread's buffers of a transform, filled with something that is not zero.
struct Buffers {
  std::unique_ptr<float, FftwFree> in = allocate<float>(kWindow * kWindow);
  std::unique_ptr<fftwf_complex, FftwFree> out = allocate<fftwf_complex>(kWindow * (kWindow / 2 + 1));
  void fill() {
    for (int i = 0; i < kWindow * kWindow; ++i) in.get()[i] = static_cast<float>((i * 7919) % 251);
  }
};

}  // namespace

Floor::Floor(const std::filesystem::path& slide) {
  TIFF* tiff = TIFFOpen(slide.c_str(), "r");
  if (tiff == nullptr) throw std::runtime_error("can't open " + slide.string());
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  width_ = width;
  height_ = height;
  std::uint32_t length = 0;
  void* tables = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &length, &tables) != 0) {
    tables_.assign(static_cast<unsigned char*>(tables), static_cast<unsigned char*>(tables) + length);
  }
  tiles_.resize(TIFFNumberOfTiles(tiff));
  for (std::uint32_t i = 0; i < tiles_.size(); ++i) {
    tiles_[i].resize(TIFFGetStrileByteCount(tiff, i));
    TIFFReadRawTile(tiff, i, tiles_[i].data(), static_cast<tmsize_t>(tiles_[i].size()));
  }
  TIFFClose(tiff);
  Buffers buffers;
  plan_ = fftwf_plan_dft_r2c_2d(kWindow, kWindow, buffers.in.get(), buffers.out.get(), FFTW_PATIENT);
}

Floor::~Floor() { fftwf_destroy_plan(static_cast<fftwf_plan>(plan_)); }

std::int64_t Floor::windows() const { return ((width_ - kWindow) / kStride + 1) * ((height_ - kWindow) / kStride + 1); }

double Floor::decode(int threads) const {
  return time_over_threads(threads, tiles_.size(), 8, [this] {
    return [this, decoder = std::make_unique<PlainDecoder>(tables_, JCS_GRAYSCALE)](std::size_t i) {
      decoder->decode(tiles_[i]);
    };
  });
}

double Floor::transform(int threads) const {
  return time_over_threads(threads, static_cast<std::size_t>(windows()), 32, [this] {
    Buffers buffers;
    buffers.fill();
    return [this, buffers = std::make_shared<Buffers>(std::move(buffers))](std::size_t) {
      fftwf_execute_dft_r2c(static_cast<fftwf_plan>(plan_), buffers->in.get(), buffers->out.get());
    };
  });
}

}  // namespace slidestream::bench
