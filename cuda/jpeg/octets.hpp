#pragma once

#include <cstdint>
#include <type_traits>

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

/// Eight samples as pairs (0, 2), (1, 3), (4, 6), (5, 7): the upper bytes of a word's halves. Lower ones mean nothing.
struct SpreadOctet {
  std::uint32_t even_low;
  std::uint32_t odd_low;
  std::uint32_t even_high;
  std::uint32_t odd_high;
};

SLIDESTREAM_HOST_DEVICE SpreadOctet spread(const Octet& octet) {
  return {octet.low << 8, octet.low, octet.high << 8, octet.high};
}

/// Four samples and their neighbours left and right, as pairs of 16 bits.
struct Quartet {
  std::uint32_t low;
  std::uint32_t high;
  std::uint32_t ends;
};

/// Of the second and the third component.
struct Chroma {
  Quartet blue;
  Quartet red;
};

/// Four samples of both.
struct HalfRow {
  std::uint32_t blue;
  std::uint32_t red;
};

/// Eight samples of two rows.
struct TwoRows {
  Octet upper;
  Octet lower;
};

SLIDESTREAM_HOST_DEVICE Quartet make_quartet(std::uint32_t samples, std::uint32_t left, std::uint32_t right) {
  return {choose_bytes(samples, 0, 0x4140), choose_bytes(samples, 0, 0x4342), left | right << 16};
}

/// A quartet's samples times `factor`, each with `added`.
SLIDESTREAM_HOST_DEVICE Quartet scaled(const Quartet& q, std::uint32_t factor, std::uint32_t added) {
  const std::uint32_t both = added << 16 | added;
  return {factor * q.low + both, factor * q.high + both, factor * q.ends + both};
}

/// For each pair three times the nearer and once the farther; `even_added` is added to even ones, `odd_added` to
/// others.
SLIDESTREAM_HOST_DEVICE SpreadOctet weigh_neighbours(const Quartet& q, std::uint32_t even_added,
                                                     std::uint32_t odd_added) {
  const std::uint32_t before_low = choose_bytes(q.ends, q.low, 0x5410);
  const std::uint32_t middle = choose_bytes(q.low, q.high, 0x5432);
  const std::uint32_t after_high = choose_bytes(q.high, q.ends, 0x7632);
  return {3 * q.low + before_low + even_added, 3 * q.low + middle + odd_added, 3 * q.high + middle + even_added,
          3 * q.high + after_high + odd_added};
}

/// Four samples of one row become eight: libjpeg's h2v1_fancy_upsample. A sum of weights 4 and 1 or 2 for rounding,
/// times 64: the 64 of even sums come with the samples.
SLIDESTREAM_HOST_DEVICE SpreadOctet upsample_h2v1(const Quartet& q) {
  return weigh_neighbours(scaled(q, 64, 16), 0, 0x400040U);
}

/// What `upsample_h2v2` takes: so that a sum of weights 16 has the 7 for rounding, and all is times 16.
SLIDESTREAM_HOST_DEVICE Chroma for_h2v2(const Chroma& chroma) {
  return {scaled(chroma.blue, 16, 7), scaled(chroma.red, 16, 7)};
}

/// Four samples of two rows become eight of the row beside the nearer: libjpeg's h2v2_fancy_upsample. Even sums are
/// rounded with 8.
SLIDESTREAM_HOST_DEVICE SpreadOctet upsample_h2v2(const Quartet& near, const Quartet& far) {
  const Quartet q = {3 * near.low + far.low, 3 * near.high + far.high, 3 * near.ends + far.ends};
  return weigh_neighbours(q, 0x100010U, 0);
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

/// Four pixels' red, green and blue, each in a word's third byte.
using FourSums = std::uint32_t[4][3];

/// Four pixels of YCbCr by `ycbcr_to_rgb`'s formula, at 16 bits' scale: sums are limited, then cut. `even` and `odd`
/// have the second and the third component of pixels 0 and 2, 1 and 3, as `SpreadOctet` does.
SLIDESTREAM_HOST_DEVICE void add_four(std::uint32_t first, const std::uint32_t (&second)[2],
                                      const std::uint32_t (&third)[2], FourSums& sums) {
  // Weights of 17 bits are two of 16 for the same sample. Green has 255 less the samples: none is negative.
  constexpr std::uint32_t of_red = 45941U | 45940U << 16;
  constexpr std::uint32_t of_green = 22554U | 46802U << 16;
  constexpr std::uint32_t of_blue = 58065U | 58065U << 16;
  constexpr int red_added = 32768 - 91881 * 128;
  constexpr int green_added = 32768 - (22554 + 46802) * 127;
  constexpr int blue_added = 32768 - 116130 * 128;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t k = 0; k < 2; ++k) {
    const std::uint32_t blues = choose_bytes(second[k], 0, 0x3311);
    const std::uint32_t reds = choose_bytes(third[k], 0, 0x3311);
    const std::uint32_t both = ~choose_bytes(second[k], third[k], 0x7351);
    const auto add = [&](auto half) {
      const std::uint32_t i = k + 2 * half();
      const std::uint32_t y = choose_bytes(first, 0, 0x4044U | i << 8);  // times 65536
      sums[i][0] = limited_to_24_bits(add_weighted<half()>(of_red, reds, y), red_added);
      sums[i][1] = limited_to_24_bits(add_weighted<half()>(of_green, both, y), green_added);
      sums[i][2] = limited_to_24_bits(add_weighted<half()>(of_blue, blues, y), blue_added);
    };
    add(std::integral_constant<int, 0>{});
    add(std::integral_constant<int, 1>{});
  }
}

/// Makes interleaved RGB of pixels, and leaves their luminance as it is.
struct Interleaver {
  /// Four pixels of `add_four`.
  SLIDESTREAM_HOST_DEVICE void write(const FourSums& sums, std::uint32_t* words, std::uint32_t&) const {
    words[0] = third_bytes(sums[0][0], sums[0][1], sums[0][2], sums[1][0]);
    words[1] = third_bytes(sums[1][1], sums[1][2], sums[2][0], sums[2][1]);
    words[2] = third_bytes(sums[2][2], sums[3][0], sums[3][1], sums[3][2]);
  }
  /// The same of pixels that are interleaved.
  SLIDESTREAM_HOST_DEVICE void convert(std::uint32_t*, std::uint32_t&) const {}
};

/// Eight pixels from YCbCr.
template <class Writer>
SLIDESTREAM_HOST_DEVICE void write_octet(const Octet& first, const SpreadOctet& second, const SpreadOctet& third,
                                         const Writer& writer, std::uint32_t* words, Octet& luminance) {
  FourSums sums;
  add_four(first.low, {second.even_low, second.odd_low}, {third.even_low, third.odd_low}, sums);
  writer.write(sums, words, luminance.low);
  add_four(first.high, {second.even_high, second.odd_high}, {third.even_high, third.odd_high}, sums);
  writer.write(sums, words + 3, luminance.high);
}

/// Walks down an octet of columns, rows [2 begin, 2 end) of the frame, and gives `sink(i, words, luminance)` rows 2 i
/// and 2 i + 1: of RGB six words each, of luminance an octet each, where that is asked for; the last row may lie below
/// the frame. `writer`, an `Interleaver` or like one, makes RGB, and luminance if it is another than the file's.
/// `source` has the samples; rows outside are the nearest that there are:
///   OctetOfThree three(row)             eight samples of three components at full width and height
///   Octet grey(row)                     of the only component, inverted where the slide is
///   Octet full(row)                     of the first of three whose others have half the width
///   TwoRows full_rows(i)                the same of rows 2 i and 2 i + 1; the last may lie below the frame
///   HalfRow half(row)                   four samples of each of the two others
///   Chroma chroma(row, HalfRow)         with their neighbours
template <OctetKind kind, bool with_luminance, class Source, class Writer, class Sink>
SLIDESTREAM_HOST_DEVICE void convert_octets(const Source& source, int begin, int end, const Writer& writer,
                                            const Sink& sink) {
  std::uint32_t words[12];
  Octet luminance[2] = {};
  if constexpr (kind == OctetKind::h2v2) {
    // What the next turn needs is asked for before this one's sums; always, from a place that is there.
    Chroma before = for_h2v2(source.chroma(begin - 1, source.half(begin - 1)));
    Chroma here = for_h2v2(source.chroma(begin, source.half(begin)));
    HalfRow next = source.half(begin + 1);
    TwoRows next_full = source.full_rows(begin);
    for (int i = begin; i < end; ++i) {
      const Chroma after = for_h2v2(source.chroma(i + 1, next));
      const auto [first, second] = next_full;
      next = source.half(i + 2);
      next_full = source.full_rows(i + 1);
      if constexpr (with_luminance) {
        luminance[0] = first;
        luminance[1] = second;
      }
      write_octet(first, upsample_h2v2(here.blue, before.blue), upsample_h2v2(here.red, before.red), writer, words,
                  luminance[0]);
      write_octet(second, upsample_h2v2(here.blue, after.blue), upsample_h2v2(here.red, after.red), writer, words + 6,
                  luminance[1]);
      sink(i, words, luminance);
      before = here;
      here = after;
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
            write_octet(first, spread(second), spread(third), writer, words + 6 * j, luminance[j]);
          } else {
            interleave(first.low, second.low, third.low, words + 6 * j);
            interleave(first.high, second.high, third.high, words + 6 * j + 3);
            if constexpr (with_luminance) {
              luminance[j] = {luminance_of_four(first.low, second.low, third.low),
                              luminance_of_four(first.high, second.high, third.high)};
            }
            writer.convert(words + 6 * j, luminance[j].low);
            writer.convert(words + 6 * j + 3, luminance[j].high);
          }
        }
        sink(i, words, luminance);
      }
    }
  } else {
    for (int i = begin; i < end; ++i) {
      for (int j = 0; j < 2; ++j) {
        const int row = 2 * i + j;
        const Octet first = kind == OctetKind::grey ? source.grey(row) : source.full(row);
        if constexpr (with_luminance) luminance[j] = first;
        if constexpr (kind == OctetKind::grey) {
          interleave(first.low, first.low, first.low, words + 6 * j);
          interleave(first.high, first.high, first.high, words + 6 * j + 3);
          writer.convert(words + 6 * j, luminance[j].low);
          writer.convert(words + 6 * j + 3, luminance[j].high);
        } else {
          const Chroma chroma = source.chroma(row, source.half(row));
          write_octet(first, upsample_h2v1(chroma.blue), upsample_h2v1(chroma.red), writer, words + 6 * j,
                      luminance[j]);
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

  SLIDESTREAM_HOST_DEVICE Octet full(int row) const {
    const auto y = static_cast<std::uint32_t>(row < last_row_ ? row : last_row_);
    return load<Octet>(places_[0] + full_row_offset(y) + y % 8 * paired_bytes);
  }

  SLIDESTREAM_HOST_DEVICE TwoRows full_rows(int i) const {
    const int last = last_row_ / 2;
    const auto y = 2 * static_cast<std::uint32_t>(i < last ? i : last);
    const std::uint8_t* const upper = samples_ + (places_[0] + full_row_offset(y) + y % 8 * paired_bytes);
    return {load_at<Octet>(upper), load_at<Octet>(upper + paired_bytes)};
  }

  /// Of components with one block per MCU.
  SLIDESTREAM_HOST_DEVICE OctetOfThree three(int row) const {
    const auto y = static_cast<std::uint32_t>(row < last_row_ ? row : last_row_);
    const std::uint32_t at = y / 8 * mcu_row_bytes_ + y % 8 * row_bytes_;
    return {load_of_line(places_[0] + at), load_of_line(places_[1] + at), load_of_line(places_[2] + at)};
  }

  SLIDESTREAM_HOST_DEVICE Octet grey(int row) const {
    const auto y = static_cast<std::uint32_t>(row < last_row_ ? row : last_row_);
    const Octet samples = load<Octet>(places_[0] + full_row_offset(y) + y % 8 * row_bytes_);
    return {samples.low ^ flip_, samples.high ^ flip_};
  }

  SLIDESTREAM_HOST_DEVICE HalfRow half(int row) const {
    const std::uint8_t* const blue = samples_ + (places_[1] + half_row_offset(row));
    return {load_at<std::uint32_t>(blue), load_at<std::uint32_t>(blue + paired_bytes / 2)};
  }

 protected:
  /// Where the second and third component have half the width, MCUs have an even number of blocks: the third's row lies
  /// half as far behind the second's as one row of a pair behind another.
  static constexpr std::uint32_t paired_bytes = 16;

  /// Of a row of the second and third component at half the width.
  SLIDESTREAM_HOST_DEVICE std::uint32_t half_row_offset(int row) const {
    const int clamped = row < 0 ? 0 : row < last_half_row_ ? row : last_half_row_;
    const auto y = static_cast<std::uint32_t>(clamped);
    return y / 8 * mcu_row_bytes_ + y % 8 * paired_bytes;
  }

  const std::uint8_t* samples_;

 private:
  /// Of the block that has row `y` of the first component.
  SLIDESTREAM_HOST_DEVICE std::uint32_t full_row_offset(std::uint32_t y) const {
    return two_ ? y / 16 * mcu_row_bytes_ + (y / 8 % 2 != 0 ? below_ : 0) : y / 8 * mcu_row_bytes_;
  }

  template <class T>
  SLIDESTREAM_HOST_DEVICE static T load_at(const std::uint8_t* from) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 8) {
      const uint2 v = *reinterpret_cast<const uint2*>(from);
      return {v.x, v.y};
    } else {
      return *reinterpret_cast<const T*>(from);
    }
#else
    T value;
    __builtin_memcpy(&value, from, sizeof(value));
    return value;
#endif
  }

  template <class T>
  SLIDESTREAM_HOST_DEVICE T load(std::uint32_t offset) const {
    return load_at<T>(samples_ + offset);
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
