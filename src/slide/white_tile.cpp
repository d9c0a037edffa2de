#include "slide/white_tile.hpp"

#include <cstdlib>
#include <cstring>
#include <slidestream/error.hpp>

#include "slide/jpeg_session.hpp"

namespace slidestream {

namespace {

/// The compressor of a session, which its errors leave in the same way, and what it writes. Plain data.
struct Output {
  explicit Output(JpegSession& session) noexcept {
    std::memset(&compressor, 0, sizeof(compressor));
    compressor.err = &session.errors;
    compressor.client_data = &session;  // jpeg_create_compress keeps both
  }
  ~Output() {
    jpeg_destroy_compress(&compressor);
    std::free(bytes);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  jpeg_compress_struct compressor;
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
};

J_COLOR_SPACE space_of(Colour colour) {
  return colour == Colour::ycbcr ? JCS_YCbCr : colour == Colour::rgb ? JCS_RGB : JCS_GRAYSCALE;
}

/// The least coefficient of a block's mean that is white, 8 (255 - 128) before it is quantised (T.81, A.3.3).
JCOEF white_mean(const JQUANT_TBL& table) {
  constexpr int white = 8 * (255 - 128);
  const int step = table.quantval[0];
  return static_cast<JCOEF>((white + step - 1) / step);
}

void fill(jpeg_decompress_struct& jpeg, jvirt_barray_ptr blocks, const jpeg_component_info& component, JCOEF mean) {
  auto* common = reinterpret_cast<j_common_ptr>(&jpeg);
  for (JDIMENSION y = 0; y < component.height_in_blocks; ++y) {
    JBLOCKROW row = jpeg.mem->access_virt_barray(common, blocks, y, 1, TRUE)[0];
    std::memset(row, 0, component.width_in_blocks * sizeof(JBLOCK));
    for (JDIMENSION x = 0; x < component.width_in_blocks; ++x) row[x][0] = mean;
  }
}

void copy_tables(const jpeg_decompress_struct& from, jpeg_compress_struct& to) {
  for (int i = 0; i < NUM_HUFF_TBLS; ++i) {
    for (const auto& [source, target] : {std::pair(from.dc_huff_tbl_ptrs[i], &to.dc_huff_tbl_ptrs[i]),
                                         std::pair(from.ac_huff_tbl_ptrs[i], &to.ac_huff_tbl_ptrs[i])}) {
      if (source == nullptr) continue;
      if (*target == nullptr) *target = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&to));
      **target = *source;
    }
  }
}

void leave_out_tables(jpeg_compress_struct& compressor, const JpegContent& brought) {
  for (JQUANT_TBL* table : compressor.quant_tbl_ptrs) {
    if (table != nullptr) table->sent_table = brought.quantisation ? FALSE : TRUE;
  }
  for (int i = 0; i < NUM_HUFF_TBLS; ++i) {
    for (JHUFF_TBL* table : {compressor.dc_huff_tbl_ptrs[i], compressor.ac_huff_tbl_ptrs[i]}) {
      if (table != nullptr) table->sent_table = brought.huffman ? FALSE : TRUE;
    }
  }
}

/// False when libjpeg failed. The session has read the header of the tile that this one is to be like.
bool write_white(JpegSession& session, Output& output, const JpegContent& content, Colour colour) {
  if (setjmp(session.jump) != 0) return false;
  jpeg_decompress_struct& from = session.decompressor;
  jpeg_compress_struct& to = output.compressor;
  from.jpeg_color_space = space_of(colour);
  jvirt_barray_ptr* blocks = jpeg_read_coefficients(&from);
  jpeg_create_compress(&to);
  jpeg_copy_critical_parameters(&from, &to);
  // Codes of the tile's own were made for what is in it; those that tiles share are the only ones there are.
  if (!content.huffman) copy_tables(from, to);
  to.write_JFIF_header = from.saw_JFIF_marker;
  to.write_Adobe_marker = from.saw_Adobe_marker;
  jpeg_mem_dest(&to, &output.bytes, &output.length);
  for (int i = 0; i < to.num_components; ++i) {
    jpeg_component_info& component = to.comp_info[i];
    const jpeg_component_info& like = from.comp_info[i];
    if (!content.huffman) {
      component.dc_tbl_no = like.dc_tbl_no;
      component.ac_tbl_no = like.ac_tbl_no;
    }
    const bool chroma = colour == Colour::ycbcr && i > 0;
    fill(from, blocks[i], like, chroma ? JCOEF{0} : white_mean(*to.quant_tbl_ptrs[component.quant_tbl_no]));
  }
  jpeg_write_coefficients(&to, blocks);
  leave_out_tables(to, content);
  jpeg_finish_compress(&to);
  return true;
}

}  // namespace

std::vector<std::byte> make_white_tile(std::span<const std::byte> tables, std::span<const std::byte> like,
                                       const JpegContent& content, Colour colour) {
  JpegSession session;
  Output output(session);
  if (!read_jpeg_header(session, tables, like) || !write_white(session, output, content, colour)) {
    throw TileError(std::string("no white tile can be made like it: ") + session.message);
  }
  const auto* first = reinterpret_cast<const std::byte*>(output.bytes);
  return {first, first + output.length};
}

}  // namespace slidestream
