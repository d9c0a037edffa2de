#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

/// \file
/// libjpeg for tests.

namespace slidestream::test {

/// libjpeg's default error handler ends the program; encoders and decoders of tests may only throw.
[[noreturn]] inline void throw_jpeg_error(j_common_ptr common) {
  char text[JMSG_LENGTH_MAX];
  common->err->format_message(common, text);
  throw std::runtime_error(text);
}

/// A stream that `jpeg` writes to memory.
class JpegWriter {
 public:
  JpegWriter() {
    jpeg.err = jpeg_std_error(&errors_);
    errors_.error_exit = throw_jpeg_error;
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &buffer_, &size_);
  }
  ~JpegWriter() {
    jpeg_destroy_compress(&jpeg);
    std::free(buffer_);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  /// What was written, once that is finished.
  std::vector<std::byte> take() const {
    const auto* first = reinterpret_cast<const std::byte*>(buffer_);
    return {first, first + size_};
  }

  jpeg_compress_struct jpeg{};

 private:
  jpeg_error_mgr errors_{};
  unsigned char* buffer_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace slidestream::test
