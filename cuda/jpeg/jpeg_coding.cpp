#include "cuda/jpeg/jpeg_coding.hpp"

#include <algorithm>
#include <cstring>

namespace slidestream::cuda {
namespace {

// Categories above 11 can't come from 8-bit samples, and would let sums of differences overflow.
constexpr unsigned most_dc_category = 11;

unsigned count_of(const std::byte* counts) {
  unsigned count = 0;
  for (int i = 0; i < 16; ++i) count += std::to_integer<unsigned>(counts[i]);
  return count;
}

/// Derives the canonical code, and refuses what libjpeg refuses.
JpegReason derive(const std::byte* counts_and_values, bool is_dc, HuffmanCode& code) {
  std::memset(&code, 0, sizeof(code));
  code.is_dc = is_dc ? 1 : 0;
  unsigned next = 0;  // code
  int index = 0;
  int longest = 16;
  while (longest > 0 && counts_and_values[longest - 1] == std::byte{0}) --longest;
  for (int length = 1; length <= 16; ++length) {
    const int count = std::to_integer<int>(counts_and_values[length - 1]);
    code.base[length - 1] = static_cast<std::int16_t>(index - static_cast<int>(next));
    next += static_cast<unsigned>(count);
    index += count;
    // No code may be all ones.
    if (length <= longest && next >= 1U << length) return JpegReason::damaged_header;
    code.limit[length - 1] = static_cast<std::uint16_t>(std::min(next << (16 - length), 0xFFFFU));
    next <<= 1;
  }
  std::memcpy(code.values, counts_and_values + 16, static_cast<std::size_t>(index));
  if (is_dc) {
    for (int i = 0; i < index; ++i) {
      if (code.values[i] > most_dc_category) return JpegReason::unusual_table;
    }
  }
  code.first_long = static_cast<std::uint16_t>(code.limit[primary_bits - 1] / secondary_words);
  code.end_long = static_cast<std::uint16_t>((code.limit[15] + secondary_words - 1) / secondary_words);
  return JpegReason::none;
}

JpegReason add_code(JpegCoding& coding, const std::byte* counts_and_values, bool is_dc, std::uint8_t& index) {
  HuffmanCode& code = coding.codes[coding.code_count];
  const JpegReason reason = derive(counts_and_values, is_dc, code);
  if (reason != JpegReason::none) return reason;
  for (index = 0; std::memcmp(&coding.codes[index], &code, sizeof(code)) != 0; ++index) {
  }
  if (index == coding.code_count) ++coding.code_count;
  return JpegReason::none;
}

void copy_quantisation(std::uint16_t* to, const std::byte* from, bool wide) {
  for (int i = 0; i < 64; ++i) {
    to[i] = static_cast<std::uint16_t>(wide ? std::to_integer<unsigned>(from[2 * i]) << 8 |
                                                  std::to_integer<unsigned>(from[2 * i + 1])
                                            : std::to_integer<unsigned>(from[i]));
  }
}

/// Checks that the first component is at full resolution, and that the others can be brought to it where they are
/// wanted. Fills the MCU's blocks but for their codes.
JpegReason lay_out_mcu(const JpegHeader& header, JpegCoding& coding) {
  // A scan of one component has one block an MCU, whatever its sampling factors say.
  const bool alone = header.component_count == 1;
  const JpegComponent& first = header.components[0];
  coding.horizontal = alone ? 1 : first.horizontal;
  coding.vertical = alone ? 1 : first.vertical;
  unsigned blocks = 0;
  for (std::uint8_t i = 0; i < header.component_count; ++i) {
    const JpegComponent& component = header.components[i];
    if (!alone && (component.horizontal > first.horizontal || component.vertical > first.vertical)) {
      return JpegReason::sampling;
    }
    // RGB's components are sampled alike: by `judge_frame` others are YCbCr, or no tile.
    if (coding.mixes_components != 0 && (first.horizontal != 1 || first.vertical != 1)) return JpegReason::sampling;
    // libjpeg refuses to upsample by anything but whole numbers.
    const bool whole = first.horizontal % component.horizontal == 0 && first.vertical % component.vertical == 0;
    if (coding.makes_rgb != 0 && !whole) return JpegReason::sampling;
    const unsigned count = alone ? 1U : unsigned{component.horizontal} * component.vertical;
    if (blocks + count > JpegCoding::most_blocks) return JpegReason::damaged_header;
    coding.components[i] = {alone ? std::uint8_t{1} : component.horizontal,
                            alone ? std::uint8_t{1} : component.vertical, static_cast<std::uint8_t>(blocks), 0};
    for (unsigned b = 0; b < count; ++b) coding.blocks[blocks++] = {i, 0, 0, 0};
  }
  coding.block_count = static_cast<std::uint8_t>(blocks);
  coding.component_count = static_cast<std::uint8_t>(header.component_count);
  return JpegReason::none;
}

}  // namespace

JpegReason make_jpeg_coding(const JpegHeader& header, const PixelFormat& format, PixelsOf pixels_of,
                            JpegCoding& coding) noexcept {
  std::memset(&coding, 0, sizeof(coding));
  coding.makes_rgb = format == rgb_format ? 1 : 0;
  coding.mixes_components = pixels_of == PixelsOf::rgb && coding.makes_rgb == 0 ? 1 : 0;
  coding.ycbcr = pixels_of == PixelsOf::ycbcr ? 1 : 0;
  JpegReason reason = lay_out_mcu(header, coding);
  if (reason != JpegReason::none) return reason;
  for (std::uint32_t i = 0; i < header.component_count; ++i) {
    const JpegComponent& component = header.components[i];
    std::uint8_t dc = 0;
    std::uint8_t ac = 0;
    reason = add_code(coding, header.tables.dc[component.dc], true, dc);
    if (reason == JpegReason::none) reason = add_code(coding, header.tables.ac[component.ac], false, ac);
    if (reason != JpegReason::none) return reason;
    for (JpegCoding::Block& block : coding.blocks) {
      if (block.component == i) {
        block.dc = dc;
        block.ac = ac;
      }
    }
    if (i == 0 || coding.mixes_components != 0 || coding.makes_rgb != 0) {
      copy_quantisation(coding.quantisation[i], header.tables.quantisation[component.quantisation],
                        header.tables.wide[component.quantisation] != 0);
    }
  }
  std::uint32_t words = coding.code_count * primary_words;
  for (std::uint32_t i = 0; i < coding.code_count; ++i) {
    HuffmanCode& code = coding.codes[i];
    if (code.end_long <= code.first_long) code.end_long = code.first_long;
    code.long_words = static_cast<std::uint16_t>(words);
    words += static_cast<std::uint32_t>(code.end_long - code.first_long) * secondary_words;
    if (words > JpegCoding::most_words) return JpegReason::unusual_table;
  }
  coding.lookup_words = static_cast<std::uint16_t>(words);
  coding.uniform = 1;
  for (std::uint32_t b = 1; b < coding.block_count; ++b) {
    if (coding.blocks[b].dc != coding.blocks[0].dc || coding.blocks[b].ac != coding.blocks[0].ac) coding.uniform = 0;
  }
  return JpegReason::none;
}

JpegCodingKey::JpegCodingKey(const JpegHeader& header, const PixelFormat& format, PixelsOf pixels_of) noexcept {
  // Inverting isn't the coding's matter.
  const PixelsOf of = pixels_of == PixelsOf::first_inverted ? PixelsOf::first : pixels_of;
  const std::uint8_t head[3] = {static_cast<std::uint8_t>(format.channels), static_cast<std::uint8_t>(of),
                                static_cast<std::uint8_t>(header.component_count)};
  append(head, sizeof(head));
  for (std::uint32_t i = 0; i < header.component_count; ++i) {
    const JpegComponent& component = header.components[i];
    const std::uint8_t wide = header.tables.wide[component.quantisation];
    const std::uint8_t shape[3] = {component.horizontal, component.vertical, wide};
    append(shape, sizeof(shape));
    append(header.tables.quantisation[component.quantisation], wide != 0 ? 128 : 64);
    append_code(header.tables.dc[component.dc]);
    append_code(header.tables.ac[component.ac]);
  }
}

void JpegCodingKey::append(const void* from, std::size_t size) noexcept {
  std::memcpy(bytes_ + size_, from, size);
  size_ += size;
}

void JpegCodingKey::append_code(const std::byte* counts_and_values) noexcept {
  append(counts_and_values, 16 + count_of(counts_and_values));
}

std::uint64_t JpegCodingKey::hash() const noexcept {
  std::uint64_t sum = size_;
  std::size_t i = 0;
  const auto mix = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
    sum ^= sum >> 29;
  };
  for (; i + 8 <= size_; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes_ + i, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes_ + i, size_ - i);
  mix(rest);
  return sum;
}

}  // namespace slidestream::cuda
