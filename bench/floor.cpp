#include "floor.hpp"

// jpeglib.h needs FILE and size_t before it.
#include <cstddef>
#include <cstdio>

#include <fftw3.h>
#include <jpeglib.h>
#include <tiffio.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

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

/// Runs `work(i)` for all i below `count` over `threads` threads, each with a worker that `make` makes.
template <class Make>
double timed(int threads, std::size_t count, std::size_t step, Make make) {
  std::atomic<std::size_t> next{0};
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> team;
  team.reserve(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&] {
      auto work = make();
      for (std::size_t first; (first = next.fetch_add(step)) < count;) {
        for (std::size_t i = first; i < std::min(first + step, count); ++i) work(i);
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// libjpeg-turbo's plain use: tables, then a tile to grey rows.
class GreyDecoder {
 public:
  explicit GreyDecoder(const std::vector<unsigned char>& tables) : info_(std::make_unique<jpeg_decompress_struct>()) {
    info_->err = jpeg_std_error(&errors_);
    jpeg_create_decompress(info_.get());
    if (!tables.empty()) {
      jpeg_mem_src(info_.get(), tables.data(), tables.size());
      jpeg_read_header(info_.get(), FALSE);
    }
  }
  ~GreyDecoder() {
    if (info_) jpeg_destroy_decompress(info_.get());
  }
  GreyDecoder(const GreyDecoder&) = delete;
  GreyDecoder& operator=(const GreyDecoder&) = delete;

  void decode(const std::vector<unsigned char>& tile) {
    jpeg_mem_src(info_.get(), tile.data(), tile.size());
    jpeg_read_header(info_.get(), TRUE);
    info_->out_color_space = JCS_GRAYSCALE;
    info_->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(info_.get());
    pixels_.resize(std::size_t{info_->output_width} * info_->output_height);
    while (info_->output_scanline < info_->output_height) {
      JSAMPROW rows[16];
      const JDIMENSION count = std::min<JDIMENSION>(16, info_->output_height - info_->output_scanline);
      for (JDIMENSION i = 0; i < count; ++i) {
        rows[i] = pixels_.data() + std::size_t{info_->output_scanline + i} * info_->output_width;
      }
      jpeg_read_scanlines(info_.get(), rows, count);
    }
    jpeg_finish_decompress(info_.get());
  }

 private:
  jpeg_error_mgr errors_{};
  std::unique_ptr<jpeg_decompress_struct> info_;
  std::vector<unsigned char> pixels_;
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
  return timed(threads, tiles_.size(), 8, [this] {
    return [this, decoder = std::make_unique<GreyDecoder>(tables_)](std::size_t i) { decoder->decode(tiles_[i]); };
  });
}

double Floor::transform(int threads) const {
  return timed(threads, static_cast<std::size_t>(windows()), 32, [this] {
    Buffers buffers;
    buffers.fill();
    return [this, buffers = std::make_shared<Buffers>(std::move(buffers))](std::size_t) {
      fftwf_execute_dft_r2c(static_cast<fftwf_plan>(plan_), buffers->in.get(), buffers->out.get());
    };
  });
}

}  // namespace slidestream::bench
