#pragma once

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>

#include <jpeglib.h>

namespace slidestream {

class Patience;

/// One libjpeg decompressor with our error manager and a source in memory. Plain data only: libjpeg reports errors by
/// longjmp, so that whoever calls `setjmp(jump)` may have nothing to destroy in between.
///
/// libjpeg keeps tables between images, and a tile must not be decoded with those of the tile before: so a session
/// serves images of one level only, and none after one that failed or left other tables behind (`tables_of`).
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
  const Patience* patience = nullptr;  ///< asked once per row of blocks of each scan; may be null
  bool gave_up = false;                ///< it was over
  char message[JMSG_LENGTH_MAX] = "";
};

/// What a decompressor knows of tables.
struct JpegTables {
  std::array<std::optional<std::array<UINT16, DCTSIZE2>>, NUM_QUANT_TBLS> quantisation;
  struct Codes {
    std::array<UINT8, 17> counts;
    std::array<UINT8, 256> values;
    bool operator==(const Codes&) const = default;
  };
  std::array<std::optional<Codes>, 2 * NUM_HUFF_TBLS> codes;  ///< of DC, and of AC
  bool operator==(const JpegTables&) const = default;
};
JpegTables tables_of(const jpeg_decompress_struct& decompressor);

/// Makes the session's decompressor, and has it parse a level's tables (empty: none) and a tile's header. False when
/// libjpeg failed: the session's message says why.
bool read_jpeg_header(JpegSession& session, std::span<const std::byte> tables, std::span<const std::byte> bytes);

/// The first half of that, and the second.
bool read_jpeg_tables(JpegSession& session, std::span<const std::byte> tables);
bool read_jpeg_frame(JpegSession& session, std::span<const std::byte> bytes);

}  // namespace slidestream
