#include "codec/jpeg_compressor.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <slidestream/error.hpp>
#include <string>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "image/prefetch.hpp"

namespace slidestream {

namespace {

/// A row of blocks, of colour that is halved both ways.
constexpr std::size_t rows_at_once = 16;

/// libjpeg reports by this instead of ending the program.
struct JpegErrors {
  jpeg_error_mgr manager{};  // first: libjpeg hands out a pointer to it
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
};

extern "C" {
static void escape_from_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}
static void ignore_jpeg_message(j_common_ptr) {}
}

}  // namespace

struct JpegCompressor::Impl {
  Impl(JpegColour colour, int quality, int tile_side) : side(tile_side) {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = escape_from_jpeg;
    errors.manager.output_message = ignore_jpeg_message;
    if (setjmp(errors.escape) != 0) fail();
    jpeg_create_compress(&info);
    info.image_width = static_cast<JDIMENSION>(side);
    info.image_height = static_cast<JDIMENSION>(side);
    info.input_components = colour == JpegColour::grey ? 1 : 3;
    info.in_color_space = colour == JpegColour::grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    if (colour == JpegColour::grey_of_rgb) jpeg_set_colorspace(&info, JCS_GRAYSCALE);
    if (colour == JpegColour::rgb) {
      jpeg_set_colorspace(&info, JCS_RGB);
      // Without an Adobe marker only the TIFF says that they are R, G, B.
      for (int i = 0; i < 3; ++i) info.comp_info[i].component_id = i;
    }
    jpeg_set_quality(&info, quality, TRUE);
    info.write_JFIF_header = FALSE;
    info.write_Adobe_marker = FALSE;
    if (colour == JpegColour::ycbcr_422) info.comp_info[0].v_samp_factor = 1;
    if (colour == JpegColour::ycbcr_444) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
    one_table = info.num_components == 1 || colour == JpegColour::rgb;
  }
  ~Impl() {
    jpeg_destroy_compress(&info);
    std::free(buffer);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[noreturn]] void fail() const { throw Error(std::string("libjpeg: ") + errors.message); }

  /// libjpeg writes to the buffer, or to a larger one of its own, which then becomes the buffer.
  void begin_output() {
    output = buffer;
    length = capacity;
    jpeg_mem_dest(&info, &output, &length);
  }
  std::span<const std::byte> end_output() {
    if (output != buffer) {
      std::free(buffer);
      buffer = output;
      capacity = length;
    }
    return {reinterpret_cast<const std::byte*>(buffer), length};
  }

  /// `whole`: with all that a file has.
  std::span<const std::byte> compress(std::span<const std::uint8_t* const> rows, int width, bool whole) {
    if (setjmp(errors.escape) != 0) fail();
    begin_output();
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(rows.size());
    info.write_JFIF_header = whole ? TRUE : FALSE;
    // Grey rows of whole blocks needn't be copied to be converted to themselves.
    const bool whole_blocks = width % DCTSIZE == 0 && rows.size() % DCTSIZE == 0;
    info.raw_data_in = info.in_color_space == JCS_GRAYSCALE && whole_blocks ? TRUE : FALSE;
    jpeg_suppress_tables(&info, whole ? FALSE : TRUE);
    jpeg_start_compress(&info, whole ? TRUE : FALSE);
    // libjpeg takes pointers to mutable samples and only reads them.
    auto* scanlines =
        const_cast<JSAMPARRAY>(reinterpret_cast<JSAMPLE* const*>(const_cast<std::uint8_t* const*>(rows.data())));
    prefetch_rows(rows.first(std::min(rows.size(), rows_at_once)));
    while (info.next_scanline < info.image_height) {
      const std::size_t next = info.next_scanline;
      const std::size_t count = std::min(rows.size() - next, rows_at_once);
      prefetch_rows(rows.subspan(next + count, std::min(rows.size() - next - count, rows_at_once)));
      if (info.raw_data_in == TRUE) {
        for (std::size_t at = 0; at < count; at += DCTSIZE) {
          JSAMPARRAY component = scanlines + next + at;
          jpeg_write_raw_data(&info, &component, DCTSIZE);
        }
      } else {
        jpeg_write_scanlines(&info, scanlines + next, static_cast<JDIMENSION>(count));
      }
    }
    jpeg_finish_compress(&info);
    return end_output();
  }

  void prefetch_rows(std::span<const std::uint8_t* const> rows) const {
    const auto bytes = std::size_t{info.image_width} * static_cast<std::size_t>(info.input_components);
    for (const std::uint8_t* row : rows) prefetch(row, bytes);
  }

  int side = 0;
  JpegErrors errors;
  jpeg_compress_struct info{};
  bool one_table = false;
  unsigned char* buffer = nullptr;
  unsigned long capacity = 0;
  unsigned char* output = nullptr;
  unsigned long length = 0;
};

JpegCompressor::JpegCompressor(JpegColour colour, int quality, int side)
    : impl_(std::make_unique<Impl>(colour, quality, side)) {}
JpegCompressor::~JpegCompressor() = default;
JpegCompressor::JpegCompressor(JpegCompressor&&) noexcept = default;
JpegCompressor& JpegCompressor::operator=(JpegCompressor&&) noexcept = default;

std::span<const std::byte> JpegCompressor::tables() {
  Impl& my = *impl_;
  if (setjmp(my.errors.escape) != 0) my.fail();
  jpeg_suppress_tables(&my.info, FALSE);
  if (my.one_table) {
    my.info.quant_tbl_ptrs[1]->sent_table = TRUE;
    my.info.dc_huff_tbl_ptrs[1]->sent_table = TRUE;
    my.info.ac_huff_tbl_ptrs[1]->sent_table = TRUE;
  }
  my.begin_output();
  jpeg_write_tables(&my.info);
  return my.end_output();
}

std::span<const std::byte> JpegCompressor::compress(std::span<const std::uint8_t* const> rows) {
  return impl_->compress(rows, impl_->side, false);
}

std::span<const std::byte> JpegCompressor::compress_file(std::span<const std::uint8_t* const> rows, int width) {
  return impl_->compress(rows, width, true);
}

}  // namespace slidestream
