#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/component_layout.hpp"
#include "cuda/jpeg/words.hpp"

/// \file
/// The fast way from components to RGB, for the samplings that slides have: eight columns (an *octet*) and two rows at
/// a time, 16-bit sums two to a word. One source for device and host; `upsampling.hpp` is what it must equal.

namespace slidestream::cuda {

/// How the octets of a tile are made; `none`: pixel by pixel.
enum class OctetKind : std::uint8_t { none, h2v2, h2v1, full, full_rgb, grey };

/// Tiles with one component, or with three whose second and third have one block per MCU, and whose width ends with an
/// MCU: so the last sample that stands for something is the last of an octet's.
SLIDESTREAM_HOST_DEVICE OctetKind octet_kind(const JpegCoding& coding, std::uint32_t frame_width) {
  if (coding.component_count == 1) return frame_width % 8U == 0 ? OctetKind::grey : OctetKind::none;
  if (coding.component_count != 3 || frame_width % (8U * coding.horizontal) != 0) return OctetKind::none;
  for (int c = 1; c < 3; ++c) {
    if (coding.components[c].horizontal != 1 || coding.components[c].vertical != 1) return OctetKind::none;
  }
  if (coding.horizontal == 1 && coding.vertical == 1) {
    return coding.ycbcr != 0 ? OctetKind::full : OctetKind::full_rgb;
  }
  if (coding.horizontal != 2) return OctetKind::none;
  return coding.vertical == 2 ? OctetKind::h2v2 : coding.vertical == 1 ? OctetKind::h2v1 : OctetKind::none;
}

/// The kind that a tile was given by its batch: `none`, too, where its rectangle begins with another column than the
/// frame's, or rows at other addresses than multiples of 16.
SLIDESTREAM_HOST_DEVICE OctetKind kind_of(const JpegDeviceTile& tile) {
  return static_cast<OctetKind>(tile.flags >> JpegDeviceTile::kind_shift);
}

/// Eight samples side by side.
struct Octet {
  std::uint32_t low;
  std::uint32_t high;
};

/// The same of three components.
struct OctetOfThree {
  Octet first;
  Octet second;
  Octet third;
};

/// Eight samples as pairs of 16 bits: (0, 2), (1, 3), (4, 6), (5, 7).
struct SpreadOctet {
  std::uint32_t even_low;
  std::uint32_t odd_low;
  std::uint32_t even_high;
  std::uint32_t odd_high;
};

SLIDESTREAM_HOST_DEVICE SpreadOctet spread(const Octet& octet) {
  return {choose_bytes(octet.low, 0, 0x4240), choose_bytes(octet.low, 0, 0x4341), choose_bytes(octet.high, 0, 0x4240),
          choose_bytes(octet.high, 0, 0x4341)};
}

/// Four samples and their neighbours left and right, as pairs of 16 bits.
struct Quartet {
  std::uint32_t low;
  std::uint32_t high;
  std::uint32_t ends;
};

SLIDESTREAM_HOST_DEVICE Quartet make_quartet(std::uint32_t samples, std::uint32_t left, std::uint32_t right) {
  return {choose_bytes(samples, 0, 0x4140), choose_bytes(samples, 0, 0x4342), left | right << 16};
}

/// Four samples of one row become eight: libjpeg's h2v1_fancy_upsample.
SLIDESTREAM_HOST_DEVICE SpreadOctet upsample_h2v1(const Quartet& q) {
  const std::uint32_t before_low = choose_bytes(q.ends, q.low, 0x5410);
  const std::uint32_t middle = choose_bytes(q.low, q.high, 0x5432);
  const std::uint32_t after_high = choose_bytes(q.high, q.ends, 0x7632);
  const std::uint32_t low = 3 * q.low;
  const std::uint32_t high = 3 * q.high;
  constexpr std::uint32_t mask = 0x00FF00FFU;
  return {(low + before_low + 0x10001U) >> 2 & mask, (low + middle + 0x20002U) >> 2 & mask,
          (high + middle + 0x10001U) >> 2 & mask, (high + after_high + 0x20002U) >> 2 & mask};
}

/// Four samples of two rows become eight of the row beside the nearer: libjpeg's h2v2_fancy_upsample.
SLIDESTREAM_HOST_DEVICE SpreadOctet upsample_h2v2(const Quartet& near, const Quartet& far) {
  std::uint32_t low = 3 * near.low + far.low;
  std::uint32_t high = 3 * near.high + far.high;
  const std::uint32_t ends = 3 * near.ends + far.ends;
  const std::uint32_t before_low = choose_bytes(ends, low, 0x5410);
  const std::uint32_t middle = choose_bytes(low, high, 0x5432);
  const std::uint32_t after_high = choose_bytes(high, ends, 0x7632);
  low *= 3;
  high *= 3;
  constexpr std::uint32_t mask = 0x00FF00FFU;
  return {(low + before_low + 0x80008U) >> 4 & mask, (low + middle + 0x70007U) >> 4 & mask,
          (high + middle + 0x80008U) >> 4 & mask, (high + after_high + 0x70007U) >> 4 & mask};
}

/// Four pixels of interleaved RGB from four samples of each.
SLIDESTREAM_HOST_DEVICE void interleave(std::uint32_t red, std::uint32_t green, std::uint32_t blue,
                                        std::uint32_t* words) {
  words[0] = choose_bytes(choose_bytes(red, green, 0x1040), blue, 0x3410);
  words[1] = choose_bytes(choose_bytes(red, green, 0x6205), blue, 0x3250);
  words[2] = choose_bytes(choose_bytes(red, green, 0x0730), blue, 0x7216);
}

/// `luminance` of four pixels: sums at the scale of 65,536, whose third bytes are the samples.
SLIDESTREAM_HOST_DEVICE std::uint32_t luminance_of_four(std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
  constexpr std::uint32_t red_and_green = 19595U | 38470U << 16;
  constexpr std::uint32_t blue_first = 7471U;
  constexpr std::uint32_t blue_second = 7471U << 16;
  constexpr std::uint32_t half = 32768U;
  const std::uint32_t low = choose_bytes(red, green, 0x5140);
  const std::uint32_t high = choose_bytes(red, green, 0x7362);
  const std::uint32_t sums[4] = {add_weighted<0>(red_and_green, low, add_weighted<0>(blue_first, blue, half)),
                                 add_weighted<1>(red_and_green, low, add_weighted<0>(blue_second, blue, half)),
                                 add_weighted<0>(red_and_green, high, add_weighted<1>(blue_first, blue, half)),
                                 add_weighted<1>(red_and_green, high, add_weighted<1>(blue_second, blue, half))};
  return choose_bytes(choose_bytes(sums[0], sums[1], 0x0062), choose_bytes(sums[2], sums[3], 0x0062), 0x5410);
}

/// Eight pixels of interleaved RGB from YCbCr, by `ycbcr_to_rgb`'s formula, all at 16 bits' scale.
SLIDESTREAM_HOST_DEVICE void write_octet(const Octet& first, const SpreadOctet& second, const SpreadOctet& third,
                                         std::uint32_t* words) {
  const std::uint32_t b[8] = {second.even_low & 0xFFFFU, second.odd_low & 0xFFFFU,   second.even_low >> 16,
                              second.odd_low >> 16,      second.even_high & 0xFFFFU, second.odd_high & 0xFFFFU,
                              second.even_high >> 16,    second.odd_high >> 16};
  const std::uint32_t r[8] = {third.even_low & 0xFFFFU, third.odd_low & 0xFFFFU,   third.even_low >> 16,
                              third.odd_low >> 16,      third.even_high & 0xFFFFU, third.odd_high & 0xFFFFU,
                              third.even_high >> 16,    third.odd_high >> 16};
  int pixels[8][3];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t i = 0; i < 8; ++i) {
    // The sample times 65536.
    const std::uint32_t y = choose_bytes(i < 4 ? first.low : first.high, 0, 0x4044U | (i & 3U) << 8);
    pixels[i][0] = static_cast<int>(y + 91881U * r[i] + (32768U - 91881U * 128U)) >> 16;
    pixels[i][1] = static_cast<int>(y - 22554U * b[i] - 46802U * r[i] + (32768U + (22554U + 46802U) * 128U)) >> 16;
    pixels[i][2] = static_cast<int>(y + 116130U * b[i] + (32768U - 116130U * 128U)) >> 16;
  }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int half = 0; half < 2; ++half) {
    int(*const p)[3] = pixels + 4 * half;
    words[3 * half] = clamp_and_pack(p[0][0], p[0][1], p[0][2], p[1][0]);
    words[3 * half + 1] = clamp_and_pack(p[1][1], p[1][2], p[2][0], p[2][1]);
    words[3 * half + 2] = clamp_and_pack(p[2][2], p[3][0], p[3][1], p[3][2]);
  }
}

/// Walks down an octet of columns, rows [2 begin, 2 end) of the frame, and gives `sink(i, words, luminance)` rows 2 i
/// and 2 i + 1: of RGB six words each, of luminance an octet each, where that is asked for; the last row may lie below
/// the frame. `source` has the samples; rows outside are the nearest that there
/// are:
///   Octet octet(component, row)                     eight samples of a component at full width
///   OctetOfThree three(row)                         of three components at full width and height
///   Octet grey(row)                                 the same of the only component, inverted where the slide is
///   uint32 four(component, row)                     four samples of one at half width
///   Quartet quartet(component, row, uint32 samples)  with their neighbours
template <OctetKind kind, bool with_luminance, class Source, class Sink>
SLIDESTREAM_HOST_DEVICE void convert_octets(const Source& source, int begin, int end, const Sink& sink) {
  std::uint32_t words[12];
  Octet luminance[2] = {};
  if constexpr (kind == OctetKind::h2v2) {
    // What the next turn needs is asked for before this one's sums; always, from a place that is there.
    Quartet b0 = source.quartet(1, begin - 1, source.four(1, begin - 1));
    Quartet r0 = source.quartet(2, begin - 1, source.four(2, begin - 1));
    Quartet b1 = source.quartet(1, begin, source.four(1, begin));
    Quartet r1 = source.quartet(2, begin, source.four(2, begin));
    std::uint32_t next_b = source.four(1, begin + 1);
    std::uint32_t next_r = source.four(2, begin + 1);
    Octet upper = source.octet(0, 2 * begin);
    Octet lower = source.octet(0, 2 * begin + 1);
    for (int i = begin; i < end; ++i) {
      const Quartet b2 = source.quartet(1, i + 1, next_b);
      const Quartet r2 = source.quartet(2, i + 1, next_r);
      const Octet first = upper;
      const Octet second = lower;
      next_b = source.four(1, i + 2);
      next_r = source.four(2, i + 2);
      upper = source.octet(0, 2 * i + 2);
      lower = source.octet(0, 2 * i + 3);
      write_octet(first, upsample_h2v2(b1, b0), upsample_h2v2(r1, r0), words);
      write_octet(second, upsample_h2v2(b1, b2), upsample_h2v2(r1, r2), words + 6);
      if constexpr (with_luminance) {
        luminance[0] = first;
        luminance[1] = second;
      }
      sink(i, words, luminance);
      b0 = b1;
      b1 = b2;
      r0 = r1;
      r1 = r2;
    }
  } else if constexpr (kind == OctetKind::full || kind == OctetKind::full_rgb) {
    // All rows of an MCU at once: whole lines of memory.
    for (int mcu = begin / 4; 4 * mcu < end; ++mcu) {
      OctetOfThree rows[8];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int k = 0; k < 8; ++k) rows[k] = source.three(8 * mcu + k);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int k = 0; k < 4; ++k) {
        const int i = 4 * mcu + k;
        if (i < begin || i >= end) continue;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int j = 0; j < 2; ++j) {
          const auto& [first, second, third] = rows[2 * k + j];
          if constexpr (with_luminance) luminance[j] = first;
          if constexpr (kind == OctetKind::full) {
            write_octet(first, spread(second), spread(third), words + 6 * j);
          } else {
            interleave(first.low, second.low, third.low, words + 6 * j);
            interleave(first.high, second.high, third.high, words + 6 * j + 3);
            if constexpr (with_luminance) {
              luminance[j] = {luminance_of_four(first.low, second.low, third.low),
                              luminance_of_four(first.high, second.high, third.high)};
            }
          }
        }
        sink(i, words, luminance);
      }
    }
  } else {
    for (int i = begin; i < end; ++i) {
      for (int j = 0; j < 2; ++j) {
        const int row = 2 * i + j;
        const Octet first = kind == OctetKind::grey ? source.grey(row) : source.octet(0, row);
        if constexpr (with_luminance) luminance[j] = first;
        if constexpr (kind == OctetKind::grey) {
          interleave(first.low, first.low, first.low, words + 6 * j);
          interleave(first.high, first.high, first.high, words + 6 * j + 3);
        } else {
          const Quartet b = source.quartet(1, row, source.four(1, row));
          const Quartet r = source.quartet(2, row, source.four(2, row));
          write_octet(first, upsample_h2v1(b), upsample_h2v1(r), words + 6 * j);
        }
      }
      sink(i, words, luminance);
    }
  }
}

/// Where the octets of one lane lie. Neighbours of quartets are what device and host look up differently.
class OctetColumn {
 public:
  /// Octet number `column` of a tile whose blocks begin at `samples`. `inverted`: samples of the only component are 255
  /// less what they are.
  SLIDESTREAM_HOST_DEVICE OctetColumn(const ComponentLayout& layout, const std::uint8_t* samples, std::uint32_t column,
                                      bool inverted)
      : samples_(samples),
        row_bytes_(layout.row_bytes()),
        mcu_row_bytes_(layout.mcu_row_bytes()),
        below_(layout.coding().vertical == 2 ? layout.block_offset(0, column, 1) - layout.block_offset(0, column, 0)
                                             : 0),
        two_(layout.coding().vertical == 2),
        flip_(inverted ? 0xFFFFFFFFU : 0U),
        last_row_(static_cast<int>(layout.frame_height()) - 1) {
    places_[0] = layout.block_offset(0, column, 0);
    if (layout.coding().component_count < 3) return;
    last_half_row_ = static_cast<int>(layout.height(1)) - 1;
    const std::uint32_t h = layout.coding().horizontal;
    for (std::uint32_t c = 1; c < 3; ++c) places_[c] = layout.block_offset(c, column / h, 0) + column % h * 4;
  }

  SLIDESTREAM_HOST_DEVICE Octet octet(std::uint32_t c, int row) const {
    const auto y = static_cast<std::uint32_t>(row < last_row_ ? row : last_row_);
    // Only the first component has two blocks one below the other.
    const std::uint32_t at = two_ ? y / 16 * mcu_row_bytes_ + (y / 8 % 2 != 0 ? below_ : 0) : y / 8 * mcu_row_bytes_;
    return load<Octet>(places_[c] + at + y % 8 * row_bytes_);
  }

  /// Of components with one block per MCU.
  SLIDESTREAM_HOST_DEVICE OctetOfThree three(int row) const {
    const auto y = static_cast<std::uint32_t>(row < last_row_ ? row : last_row_);
    const std::uint32_t at = y / 8 * mcu_row_bytes_ + y % 8 * row_bytes_;
    return {load_of_line(places_[0] + at), load_of_line(places_[1] + at), load_of_line(places_[2] + at)};
  }

  SLIDESTREAM_HOST_DEVICE Octet grey(int row) const {
    const Octet samples = octet(0, row);
    return {samples.low ^ flip_, samples.high ^ flip_};
  }

  SLIDESTREAM_HOST_DEVICE std::uint32_t four(std::uint32_t c, int row) const {
    return load<std::uint32_t>(places_[c] + row_offset(row));
  }

 protected:
  /// Of a row of the second and third component.
  SLIDESTREAM_HOST_DEVICE std::uint32_t row_offset(int row) const {
    const int clamped = row < 0 ? 0 : row < last_half_row_ ? row : last_half_row_;
    const auto y = static_cast<std::uint32_t>(clamped);
    return y / 8 * mcu_row_bytes_ + y % 8 * row_bytes_;
  }

  const std::uint8_t* samples_;

 private:
  template <class T>
  SLIDESTREAM_HOST_DEVICE T load(std::uint32_t offset) const {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 8) {
      const uint2 v = *reinterpret_cast<const uint2*>(samples_ + offset);
      return {v.x, v.y};
    } else {
      return *reinterpret_cast<const T*>(samples_ + offset);
    }
#else
    T value;
    __builtin_memcpy(&value, samples_ + offset, sizeof(value));
    return value;
#endif
  }

  /// An octet, when all of its line of 128 bytes is wanted soon: the L2 cache fetches it (PTX ISA, ld).
  SLIDESTREAM_HOST_DEVICE Octet load_of_line(std::uint32_t offset) const {
#if defined(__CUDA_ARCH__)
    Octet octet;
    asm("ld.global.L2::128B.v2.u32 {%0, %1}, [%2];"
        : "=r"(octet.low), "=r"(octet.high)
        : "l"(__cvta_generic_to_global(samples_ + offset)));
    return octet;
#else
    return load<Octet>(offset);
#endif
  }

  std::uint32_t row_bytes_;
  std::uint32_t mcu_row_bytes_;
  std::uint32_t below_;
  bool two_;
  std::uint32_t flip_;
  int last_row_;
  int last_half_row_ = 0;
  std::uint32_t places_[3] = {};
};

}  // namespace slidestream::cuda
