#include "slide/jpeg_session.hpp"

#include <jerror.h>

#include <algorithm>
#include <cstring>

#include "slide/tile_job.hpp"

namespace slidestream {
namespace {

// A progressive image is gone through once a scan: libjpeg-turbo's advice is to limit their number. The most that a
// sensible script needs is about ten a component.
constexpr int most_scans = 128;

JpegSession& session_of(j_common_ptr common) { return *static_cast<JpegSession*>(common->client_data); }
JpegSession& session_of(j_decompress_ptr decompressor) { return *static_cast<JpegSession*>(decompressor->client_data); }

[[noreturn]] void on_error(j_common_ptr common) {
  JpegSession& session = session_of(common);
  common->err->format_message(common, session.message);
  std::longjmp(session.jump, 1);
}

/// Warnings that say that what was coded isn't what is decoded.
bool is_damage(int code) {
  switch (code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

void on_message(j_common_ptr common, int level) {
  if (level < 0 && is_damage(common->err->msg_code)) on_error(common);
}

void ignore_output(j_common_ptr) {}

void ignore(j_decompress_ptr) {}

boolean give_eoi(j_decompress_ptr decompressor) {
  static constexpr JOCTET eoi[2] = {0xFF, JPEG_EOI};
  session_of(decompressor).exhausted = true;
  decompressor->src->next_input_byte = eoi;
  decompressor->src->bytes_in_buffer = sizeof(eoi);
  return TRUE;
}

void skip(j_decompress_ptr decompressor, long bytes) {
  if (bytes <= 0) return;
  jpeg_source_mgr& source = *decompressor->src;
  if (static_cast<std::size_t>(bytes) > source.bytes_in_buffer) {
    give_eoi(decompressor);
    return;
  }
  source.next_input_byte += bytes;
  source.bytes_in_buffer -= static_cast<std::size_t>(bytes);
}

void limit_work(j_common_ptr common) {
  JpegSession& session = session_of(common);
  if (session.decompressor.input_scan_number > most_scans) session.fail("more than 128 scans");
  if (session.patience == nullptr || !session.patience->is_over()) return;
  session.gave_up = true;
  session.fail("the run gave it up");
}

}  // namespace

JpegSession::JpegSession() noexcept {
  std::memset(&decompressor, 0, sizeof(decompressor));
  std::memset(&progress, 0, sizeof(progress));
  decompressor.err = jpeg_std_error(&errors);
  decompressor.client_data = this;  // jpeg_create_decompress keeps both
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  errors.output_message = ignore_output;
  source.init_source = ignore;
  source.fill_input_buffer = give_eoi;
  source.skip_input_data = skip;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = ignore;
  source.next_input_byte = nullptr;
  source.bytes_in_buffer = 0;
  progress.progress_monitor = limit_work;
}

// Also right before jpeg_create_decompress: it does nothing to a structure of zeros.
JpegSession::~JpegSession() { jpeg_destroy_decompress(&decompressor); }

void JpegSession::set_input(std::span<const std::byte> bytes) noexcept {
  decompressor.src = &source;
  decompressor.progress = &progress;
  source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  source.bytes_in_buffer = bytes.size();
  exhausted = false;
}

void JpegSession::fail(const char* reason) noexcept {
  std::strncpy(message, reason, sizeof(message) - 1);
  std::longjmp(jump, 1);
}

bool read_jpeg_tables(JpegSession& session, std::span<const std::byte> tables) {
  if (setjmp(session.jump) != 0) return false;
  jpeg_create_decompress(&session.decompressor);
  if (tables.empty()) return true;
  session.set_input(tables);
  jpeg_read_header(&session.decompressor, FALSE);
  return true;
}

bool read_jpeg_frame(JpegSession& session, std::span<const std::byte> bytes) {
  if (setjmp(session.jump) != 0) return false;
  session.set_input(bytes);
  jpeg_read_header(&session.decompressor, TRUE);
  return true;
}

bool read_jpeg_header(JpegSession& session, std::span<const std::byte> tables, std::span<const std::byte> bytes) {
  return read_jpeg_tables(session, tables) && read_jpeg_frame(session, bytes);
}

JpegTables tables_of(const jpeg_decompress_struct& decompressor) {
  JpegTables tables;
  for (std::size_t i = 0; i < tables.quantisation.size(); ++i) {
    if (const JQUANT_TBL* const table = decompressor.quant_tbl_ptrs[i]; table != nullptr) {
      std::ranges::copy(table->quantval, tables.quantisation[i].emplace().begin());
    }
  }
  for (std::size_t i = 0; i < tables.codes.size(); ++i) {
    const JHUFF_TBL* const table =
        i < NUM_HUFF_TBLS ? decompressor.dc_huff_tbl_ptrs[i] : decompressor.ac_huff_tbl_ptrs[i - NUM_HUFF_TBLS];
    if (table == nullptr) continue;
    JpegTables::Codes& codes = tables.codes[i].emplace();
    std::ranges::copy(table->bits, codes.counts.begin());
    std::ranges::copy(table->huffval, codes.values.begin());
  }
  return tables;
}

}  // namespace slidestream
