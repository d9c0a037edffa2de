#include "slide/jpeg_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "slide/jpeg_session.hpp"
#include "slide/luminance.hpp"
#include "slide/pixels.hpp"

namespace slidestream {
namespace {

// SOI and the smallest table, a Huffman table without codes.
constexpr std::size_t least_tables = 2 + 21;

/// Walks the segments of a tables-only stream. libjpeg alone would take a segment that the end cuts for a whole one.
bool segments_are_whole(std::span<const std::byte> tables) {
  const auto at = [tables](std::size_t i) { return std::to_integer<unsigned>(tables[i]); };
  if (at(0) != 0xFF || at(1) != 0xD8) return false;
  for (std::size_t i = 2; i < tables.size();) {
    if (at(i) != 0xFF) return false;
    while (i < tables.size() && at(i) == 0xFF) ++i;  // fill bytes
    if (i == tables.size()) return false;
    if (at(i) == 0xD9) return true;
    if (tables.size() - i < 3) return false;
    const std::size_t length = at(i + 1) << 8 | at(i + 2);
    if (length < 2 || length > tables.size() - i - 1) return false;
    i += 1 + length;
  }
  return true;  // a missing EOI does no harm
}

/// Whether the counts of codes by length can be a prefix code.
bool is_prefix_code(const JHUFF_TBL& table) {
  unsigned codes = 0;
  for (unsigned length = 1; length <= 16; ++length) {
    codes = 2 * codes + table.bits[length];
    if (codes > 1U << length) return false;
  }
  return true;
}

bool tables_are_codes(const jpeg_decompress_struct& decompressor) {
  const auto fits = [](const JHUFF_TBL* table) { return table == nullptr || is_prefix_code(*table); };
  return std::all_of(std::begin(decompressor.dc_huff_tbl_ptrs), std::end(decompressor.dc_huff_tbl_ptrs), fits) &&
         std::all_of(std::begin(decompressor.ac_huff_tbl_ptrs), std::end(decompressor.ac_huff_tbl_ptrs), fits);
}

/// False when libjpeg failed: the session's message says why. Has nothing to destroy, as setjmp asks.
bool read_tables(JpegSession& session, std::span<const std::byte> tables) {
  if (setjmp(session.jump) != 0) return false;
  jpeg_create_decompress(&session.decompressor);
  session.set_input(tables);
  if (jpeg_read_header(&session.decompressor, FALSE) != JPEG_HEADER_TABLES_ONLY) session.fail("it holds an image");
  if (!tables_are_codes(session.decompressor)) session.fail("a Huffman table holds more codes than fit");
  return true;
}

/// What the header that libjpeg has read says of colours.
JpegMarks marks_of(const jpeg_decompress_struct& jpeg) {
  JpegMarks marks;
  marks.jfif = jpeg.saw_JFIF_marker != FALSE;
  if (jpeg.saw_Adobe_marker != FALSE) marks.set_adobe(jpeg.Adobe_transform);
  if (jpeg.num_components != 3) return marks;
  marks.add_components(
      [&jpeg](std::size_t i) { return jpeg.comp_info[i].component_id; },
      [&jpeg](std::size_t i) { return std::pair(jpeg.comp_info[i].h_samp_factor, jpeg.comp_info[i].v_samp_factor); },
      [&jpeg](std::size_t i) { return jpeg.comp_info[i].quant_tbl_no; });
  return marks;
}

/// What libjpeg is told that the components of a frame are, and what it is asked for.
struct Plan {
  J_COLOR_SPACE coded;
  J_COLOR_SPACE decoded;
};

Plan plan_for(PixelsOf pixels_of, int components, bool luminance_too) {
  // Grey output makes libjpeg decode Y alone; the same space on both sides makes it convert nothing.
  if (components == 1) return {JCS_GRAYSCALE, JCS_GRAYSCALE};
  if (components != 3) return {JCS_UNKNOWN, JCS_UNKNOWN};
  switch (pixels_of) {
    case PixelsOf::first:
      return {JCS_YCbCr, JCS_GRAYSCALE};
    case PixelsOf::ycbcr:
      // Luminance is Y, and RGB is made of the same rows.
      return {JCS_YCbCr, luminance_too ? JCS_YCbCr : JCS_RGB};
    case PixelsOf::rgb:
      return {JCS_RGB, JCS_RGB};
    case PixelsOf::first_inverted:
      break;
  }
  return {JCS_UNKNOWN, JCS_UNKNOWN};
}

/// The colour of the samples that libjpeg gives.
Colour colour_of(PixelsOf pixels_of, const Plan& plan) {
  switch (pixels_of) {
    case PixelsOf::rgb:
      return Colour::rgb;
    case PixelsOf::ycbcr:
      return plan.decoded == JCS_RGB ? Colour::rgb : Colour::ycbcr;
    case PixelsOf::first_inverted:
      return Colour::grey_inverted;
    case PixelsOf::first:
      break;
  }
  return Colour::grey;
}

/// libjpeg is asked for so many rows at a time.
constexpr JDIMENSION rows_at_a_time = 16;

/// Has libjpeg go to a row. What it passes by is parsed, so that damage shows, and no pixels are made of it.
void skip_to(jpeg_decompress_struct& jpeg, std::int64_t row) {
  const auto target = static_cast<JDIMENSION>(row);
  if (target > jpeg.output_scanline) jpeg_skip_scanlines(&jpeg, target - jpeg.output_scanline);
}

/// Has libjpeg make pixels of the columns that are wanted alone, and of some beside them, whose chroma theirs is made
/// from. \returns the first column that it makes
std::int64_t crop(jpeg_decompress_struct& jpeg, const TileJob& job) {
  const std::int64_t width = jpeg.output_width;
  const std::int64_t block = std::int64_t{jpeg.max_h_samp_factor} * DCTSIZE;
  const std::int64_t first = std::max<std::int64_t>(job.from_x / block - 1, 0) * block;
  const std::int64_t end = std::min((job.from_x + job.out.width + block - 1) / block * block + block, width);
  if (end <= first || end - first == width) return 0;
  auto column = static_cast<JDIMENSION>(first);
  auto columns = static_cast<JDIMENSION>(end - first);
  jpeg_crop_scanline(&jpeg, &column, &columns);
  return column;
}

/// Asks for the line as its only owner: whoever fetches it to read would have to ask the other processors again to
/// write.
void fetch_to_write(const std::uint8_t* at) {
#if defined(__x86_64__)
  // A processor without the instruction does nothing; compilers only make it where every processor has it.
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/// Has the processor fetch what rows [`first`, `end`) of a tile are going to overwrite: it is in the caches by the time
/// that libjpeg has decoded them.
void fetch_rows(const TileJob& job, std::int64_t first, std::int64_t end) {
  constexpr std::size_t line = 64;
  const std::size_t bytes = job.out.row_bytes();
  for (std::int64_t y = first; y < end; ++y) {
    const std::uint8_t* const row = job.row(y);
    if (row == nullptr) continue;
    for (std::size_t at = 0; at < bytes; at += line) fetch_to_write(row + at);
    fetch_to_write(row + bytes - 1);
  }
}

/// Decodes the rows that are wanted, and parses all: damage anywhere makes the tile bad. `scratch` holds
/// `rows_at_a_time` rows of samples.
void read_rows(JpegSession& session, const TileJob& job, Colour colour, std::uint8_t* scratch) {
  jpeg_decompress_struct& jpeg = session.decompressor;
  const std::int64_t image_width = jpeg.output_width;
  const std::int64_t height = jpeg.output_height;
  const int samples = jpeg.output_components;
  // Of several scans libjpeg has parsed all before the first row.
  const bool skips = jpeg_has_multiple_scans(&jpeg) == FALSE && jpeg.arith_code == FALSE && !job.level.shrunk;
  const std::int64_t first_column = skips ? crop(jpeg, job) : 0;
  const std::int64_t width = jpeg.output_width;
  // No sample is left out or repeated, and all columns are wanted.
  const bool direct =
      samples == job.out.format.channels && job.from_x == 0 && job.out.width >= image_width && job.luminance == nullptr;
  const std::int64_t copied = std::clamp<std::int64_t>(image_width - job.from_x, 0, job.out.width);
  const std::int64_t end = std::clamp<std::int64_t>(job.from_y + job.out.height, 0, height);
  if (skips) skip_to(jpeg, std::clamp<std::int64_t>(job.from_y, 0, height - 1));
  std::int64_t fetched = 0;  // rows before this one
  while (jpeg.output_scanline < jpeg.output_height) {
    // What libjpeg skips up to the end it doesn't parse.
    if (skips && jpeg.output_scanline >= end) skip_to(jpeg, height - 1);
    const JDIMENSION first = jpeg.output_scanline;
    const JDIMENSION wanted = std::min(rows_at_a_time, jpeg.output_height - first);
    JSAMPROW rows[rows_at_a_time];
    for (JDIMENSION i = 0; i < wanted; ++i) {
      std::uint8_t* const to = job.row(first + i);
      rows[i] = direct && to != nullptr ? to : scratch + i * static_cast<std::size_t>(width * samples);
    }
    fetch_rows(job, std::max<std::int64_t>(fetched, first), first + wanted);
    fetched = first + wanted;
    const JDIMENSION read = jpeg_read_scanlines(&jpeg, rows, wanted);
    for (JDIMENSION i = 0; i < read; ++i) {
      const std::int64_t y = first + i;
      std::uint8_t* const to = job.row(y);
      if (to == nullptr) continue;
      if (!direct) {
        const std::uint8_t* const from = rows[i] + (job.from_x - first_column) * samples;
        interleaved_to_pixels(to, from, copied, samples, colour, job.out.format);
        if (job.luminance != nullptr) interleaved_to_luminance(job.luminance_row(y), from, copied, samples, colour);
      } else if (colour == Colour::grey_inverted) {  // one sample, luminance
        for (std::int64_t x = 0; x < width; ++x) to[x] = static_cast<std::uint8_t>(255 - to[x]);
      }
    }
  }
}

/// What libjpeg doesn't warn of: scans that never came.
void check_completeness(JpegSession& session) {
  const jpeg_decompress_struct& jpeg = session.decompressor;
  for (int i = 0; i < jpeg.num_components; ++i) {
    if (jpeg.comp_info[i].quant_table == nullptr) session.fail("a component has no scan");
  }
  // Without EOI the end must be known otherwise. A Huffman-coded scan that is cut gives a warning; an arithmetic one
  // gives none, and a progressive image may lack whole scans.
  if (session.exhausted && jpeg.arith_code) session.fail("the data end without EOI");
  if (!jpeg.progressive_mode || jpeg.coef_bits == nullptr) return;
  // Per coefficient: its bits that no scan brought, -1 before its first scan. With EOI coefficients above the first may
  // have no scan, as an encoder may leave out zeros.
  const auto is_sent = [&session](int missing) { return missing == 0 || (missing < 0 && !session.exhausted); };
  for (int i = 0; i < jpeg.num_components; ++i) {
    const int* bits = jpeg.coef_bits[i];
    if (bits[0] != 0 || !std::all_of(bits + 1, bits + DCTSIZE2, is_sent)) {
      session.fail(session.exhausted ? "the data end before the last scan" : "it lacks scans");
    }
  }
}

bool read_image(JpegSession& session, const TileJob& job, const Plan& plan, Colour colour, std::uint8_t* scratch) {
  if (setjmp(session.jump) != 0) return false;
  jpeg_decompress_struct& jpeg = session.decompressor;
  jpeg.scale_num = 1;
  jpeg.scale_denom = job.level.shrunk ? 2 : 1;
  jpeg.jpeg_color_space = plan.coded;
  jpeg.out_color_space = plan.decoded;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  read_rows(session, job, colour, scratch);
  // Before the end is read: that also takes a marker after the last scan for the end of the data.
  check_completeness(session);
  jpeg_finish_decompress(&jpeg);
  return true;
}

/// What an image of several scans takes: libjpeg keeps the coefficients of all its blocks.
std::uint64_t coefficient_bytes(const jpeg_decompress_struct& jpeg) {
  std::uint64_t blocks = 0;
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    blocks += (std::uint64_t{component.width_in_blocks} + static_cast<unsigned>(component.h_samp_factor)) *
              (std::uint64_t{component.height_in_blocks} + static_cast<unsigned>(component.v_samp_factor));
  }
  return blocks * sizeof(JBLOCK);
}

/// Of the image whose header was read.
std::uint64_t bytes_of_image(JpegSession& session) {
  const jpeg_decompress_struct& jpeg = session.decompressor;
  return sequential_jpeg_bytes(jpeg.image_width, static_cast<std::uint64_t>(jpeg.num_components)) +
         (jpeg_has_multiple_scans(&session.decompressor) == TRUE ? coefficient_bytes(jpeg) : 0);
}

}  // namespace

std::uint64_t sequential_jpeg_bytes(std::uint64_t width, std::uint64_t samples) noexcept {
  constexpr std::uint64_t bytes_per_sample_of_a_row = 96;  // rows for output, for its colours and for its chroma
  constexpr std::uint64_t state = std::uint64_t{1} << 16;
  return width * samples * bytes_per_sample_of_a_row + state;
}

std::uint64_t several_scans_jpeg_bytes(std::span<const std::byte> tables, std::span<const std::byte> front) {
  JpegSession session;
  if (!read_jpeg_header(session, tables, front)) throw TileError(session.message);
  if (session.exhausted) throw TileError("the data end before the first scan");
  return jpeg_has_multiple_scans(&session.decompressor) == TRUE ? bytes_of_image(session) : 0;
}

bool jpeg_tables_hold_a_table(std::uint64_t bytes) { return bytes >= least_tables; }

std::string damage_of_jpeg_tables(std::span<const std::byte> tables) {
  if (!segments_are_whole(tables)) return "its segments don't add up";
  JpegSession session;
  if (!read_tables(session, tables)) return session.message;
  return {};
}

/// A session between two tiles of a level.
struct JpegDecoder::Kept {
  JpegSession session;
  std::vector<std::byte> level_tables;  ///< as the level has them
  JpegTables tables;                    ///< as libjpeg has them
};

JpegDecoder::JpegDecoder() = default;
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

void JpegDecoder::decode(const TileJob& job, std::span<const std::byte> bytes) {
  const std::span<const std::byte> level_tables = job.coding.jpeg_tables;
  std::unique_ptr<Kept> kept = std::move(kept_);
  if (kept == nullptr || !std::ranges::equal(kept->level_tables, level_tables)) {
    kept = std::make_unique<Kept>();
    if (!read_jpeg_tables(kept->session, level_tables)) throw TileError(kept->session.message);
    kept->level_tables.assign(level_tables.begin(), level_tables.end());
    kept->tables = tables_of(kept->session.decompressor);
  }
  JpegSession& session = kept->session;
  if (!read_jpeg_frame(session, bytes)) throw TileError(session.message);
  const jpeg_decompress_struct& jpeg = session.decompressor;
  const int components = jpeg.num_components;
  CodedFrame frame{jpeg.image_width, jpeg.image_height, static_cast<std::size_t>(components)};
  frame.marks = marks_of(jpeg);
  const PixelsOf pixels_of = check_frame(job, frame, "JPEG frame");
  // Four components are inks for most writers of JPEG: that they are colours and alpha the slide must say, too.
  if (components == 4 && job.coding.samples != components) {
    throw TileError("the JPEG frame has 4 components, and SamplesPerPixel says " + std::to_string(job.coding.samples));
  }
  const DecodeMemory::Lease memory = memory_for(job, bytes_of_image(session));
  const Patience patience(job);
  session.patience = &patience;
  scratch_.resize(rows_at_a_time * static_cast<std::size_t>(jpeg.image_width) * static_cast<std::size_t>(components));
  const Plan plan = plan_for(pixels_of, components, job.luminance != nullptr);
  const bool is_read = read_image(session, job, plan, colour_of(pixels_of, plan), scratch_.data());
  session.patience = nullptr;
  if (session.gave_up) patience.check();
  if (!is_read) throw TileError(session.message);
  const auto decoded = [&](JDIMENSION side) { return job.level.shrunk ? (side + 1) / 2 : side; };
  whiten_beyond(job, decoded(jpeg.image_width), decoded(jpeg.image_height));
  // A tile that brought tables of its own mustn't lend them to the next one.
  if (tables_of(jpeg) == kept->tables) kept_ = std::move(kept);
}

}  // namespace slidestream
