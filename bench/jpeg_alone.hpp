#pragma once

// jpeglib.h needs FILE and size_t before it.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

/// \file
/// libjpeg-turbo as it is used plainly, over threads: what programs that decode and encode tiles are compared with.

namespace slidestream::bench {

/// Runs `work(i)` for all i below `count` over `threads` threads, each with a worker that `make` makes.
template <class Make>
double time_over_threads(int threads, std::size_t count, std::size_t step, Make make) {
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

/// libjpeg-turbo's plain use: tables, then a tile to rows of pixels.
class PlainDecoder {
 public:
  PlainDecoder(const std::vector<unsigned char>& tables, J_COLOR_SPACE colour)
      : colour_(colour), info_(std::make_unique<jpeg_decompress_struct>()) {
    info_->err = jpeg_std_error(&errors_);
    jpeg_create_decompress(info_.get());
    if (!tables.empty()) {
      jpeg_mem_src(info_.get(), tables.data(), tables.size());
      jpeg_read_header(info_.get(), FALSE);
    }
  }
  ~PlainDecoder() {
    if (info_) jpeg_destroy_decompress(info_.get());
  }
  PlainDecoder(const PlainDecoder&) = delete;
  PlainDecoder& operator=(const PlainDecoder&) = delete;

  /// Its pixels, which the next call overwrites.
  const std::vector<unsigned char>& decode(const std::vector<unsigned char>& tile) {
    jpeg_mem_src(info_.get(), tile.data(), tile.size());
    jpeg_read_header(info_.get(), TRUE);
    info_->out_color_space = colour_;
    info_->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(info_.get());
    const std::size_t row_bytes = std::size_t{info_->output_width} * info_->output_components;
    pixels_.resize(row_bytes * info_->output_height);
    while (info_->output_scanline < info_->output_height) {
      JSAMPROW rows[16];
      const JDIMENSION count = std::min<JDIMENSION>(16, info_->output_height - info_->output_scanline);
      for (JDIMENSION i = 0; i < count; ++i) {
        rows[i] = pixels_.data() + (info_->output_scanline + i) * row_bytes;
      }
      jpeg_read_scanlines(info_.get(), rows, count);
    }
    jpeg_finish_decompress(info_.get());
    return pixels_;
  }

 private:
  J_COLOR_SPACE colour_;
  jpeg_error_mgr errors_{};
  std::unique_ptr<jpeg_decompress_struct> info_;
  std::vector<unsigned char> pixels_;
};

/// The same the other way: tiles of grey rows to abbreviated streams.
class GreyEncoder {
 public:
  GreyEncoder(int side, int quality) : info_(std::make_unique<jpeg_compress_struct>()) {
    info_->err = jpeg_std_error(&errors_);
    jpeg_create_compress(info_.get());
    info_->image_width = info_->image_height = static_cast<JDIMENSION>(side);
    info_->input_components = 1;
    info_->in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(info_.get());
    jpeg_set_quality(info_.get(), quality, TRUE);
    info_->dct_method = JDCT_ISLOW;
  }
  ~GreyEncoder() {
    if (info_) jpeg_destroy_compress(info_.get());
    std::free(bytes_);
  }
  GreyEncoder(const GreyEncoder&) = delete;
  GreyEncoder& operator=(const GreyEncoder&) = delete;

  /// \return the stream's bytes.
  std::size_t encode(const std::vector<unsigned char>& pixels) {
    unsigned long length = room_;
    unsigned char* const before = bytes_;
    jpeg_mem_dest(info_.get(), &bytes_, &length);
    jpeg_suppress_tables(info_.get(), TRUE);
    jpeg_start_compress(info_.get(), FALSE);
    while (info_->next_scanline < info_->image_height) {
      JSAMPROW rows[16];
      const JDIMENSION count = std::min<JDIMENSION>(16, info_->image_height - info_->next_scanline);
      for (JDIMENSION i = 0; i < count; ++i) {
        // libjpeg doesn't change them.
        rows[i] =
            const_cast<unsigned char*>(pixels.data()) + std::size_t{info_->next_scanline + i} * info_->image_width;
      }
      jpeg_write_scanlines(info_.get(), rows, count);
    }
    jpeg_finish_compress(info_.get());
    // It takes a larger buffer where this one was too small, and leaves the old one.
    if (bytes_ != before) {
      std::free(before);
      room_ = length;
    }
    return length;
  }

 private:
  jpeg_error_mgr errors_{};
  std::unique_ptr<jpeg_compress_struct> info_;
  unsigned char* bytes_ = nullptr;
  unsigned long room_ = 0;
};

}  // namespace slidestream::bench
