#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace slidestream::bench {

/// What the libraries alone would take for a slide: libjpeg-turbo's grey decode of every tile of level 0, then FFTW's
/// 256 x 256 real transform once for every window at stride 128; nothing is read, copied, smoothed or counted.
class Floor {
 public:
  /// Reads all tiles into memory and plans the transform (FFTW_PATIENT). \throws std::runtime_error.
  explicit Floor(const std::filesystem::path& slide);
  ~Floor();
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  /// Seconds to decode every tile over `threads` threads.
  double decode(int threads) const;
  /// Seconds to transform every window over `threads` threads.
  double transform(int threads) const;

  std::int64_t pixels() const { return width_ * height_; }
  std::int64_t windows() const;

 private:
  std::int64_t width_ = 0;
  std::int64_t height_ = 0;
  std::vector<unsigned char> tables_;
  std::vector<std::vector<unsigned char>> tiles_;
  void* plan_ = nullptr;
};

}  // namespace slidestream::bench
