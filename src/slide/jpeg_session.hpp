#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include <jpeglib.h>

namespace slidestream {

/// One libjpeg decompressor with our error manager and a source in memory. Plain data only: libjpeg reports errors by
/// longjmp, so that whoever calls `setjmp(jump)` may have nothing to destroy in between.
///
/// A session serves one image. libjpeg keeps tables between images, and a tile must not be decoded with those of the
/// tile before.
struct JpegSession {
  JpegSession() noexcept;
  ~JpegSession();
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  /// The next bytes to parse; more than these reads as EOI, and sets `exhausted`.
  void set_input(std::span<const std::byte> bytes) noexcept;

  /// Leaves by longjmp with this message.
  [[noreturn]] void fail(const char* reason) noexcept;

  jpeg_decompress_struct decompressor;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  bool exhausted = false;
  char message[JMSG_LENGTH_MAX] = "";
};

/// Makes the session's decompressor, and has it parse a level's tables (empty: none) and a tile's header. False when
/// libjpeg failed: the session's message says why.
bool read_jpeg_header(JpegSession& session, std::span<const std::byte> tables, std::span<const std::byte> bytes);

}  // namespace slidestream
