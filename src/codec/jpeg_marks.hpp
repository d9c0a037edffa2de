#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/slide.hpp>
#include <span>
#include <string_view>

/// \file
/// What a JPEG itself says of the colours of its three components, and what that makes of a slide's tag.

namespace slidestream {

/// What stands in a JPEG before its first scan.
struct JpegMarks {
  static constexpr int no_adobe = -1;
  static constexpr int most_adobe = 2;  ///< of transforms that have a meaning

  bool jfif = false;        ///< a JFIF header: components are Y, Cb and Cr
  int adobe = no_adobe;     ///< the transform that Adobe's marker names: 0 none, 1 to YCbCr, 2 to YCCK
  bool called_rgb = false;  ///< identifiers are the letters R, G and B
  bool called_123 = false;  ///< identifiers are 1, 2 and 3, as JFIF calls Y, Cb and Cr
  bool called_012 = false;  ///< identifiers are 0, 1 and 2, as some encoders call Y, Cb and Cr, and others R, G and B
  bool sampled_apart = false;  ///< components have different sampling factors, which RGB never has
  /// The second and third component share a quantisation table that isn't the first one's, as encoders have it for Cb
  /// and Cr. R, G and B share one table.
  bool quantised_apart = false;

  bool operator==(const JpegMarks&) const = default;

  /// Takes in the content of an application's segment, as libjpeg does: its first bytes count.
  void add_segment(unsigned marker, std::span<const std::byte> content) noexcept {
    constexpr unsigned app0 = 0xE0, app14 = 0xEE;
    constexpr std::size_t jfif_bytes = 14, adobe_bytes = 12, transform_at = 11;
    const auto begins_with = [content](std::string_view name) {
      return std::equal(name.begin(), name.end(), content.begin(),
                        [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
    };
    if (marker == app0 && content.size() >= jfif_bytes && begins_with(std::string_view("JFIF\0", 5))) jfif = true;
    if (marker == app14 && content.size() >= adobe_bytes && begins_with("Adobe")) {
      set_adobe(std::to_integer<int>(content[transform_at]));
    }
  }

  /// Takes in the transform of an Adobe marker. One that has no meaning says nothing.
  void set_adobe(int transform) noexcept { adobe = transform <= most_adobe ? transform : no_adobe; }

  /// Takes in the frame's first three components: `identifier(i)`, `factors(i)`, which can be compared, and the number
  /// of its quantisation table, `table(i)`.
  template <class Identifier, class Factors, class Table>
  void add_components(const Identifier& identifier, const Factors& factors, const Table& table) {
    called_rgb = identifier(0) == 'R' && identifier(1) == 'G' && identifier(2) == 'B';
    called_123 = identifier(0) == 1 && identifier(1) == 2 && identifier(2) == 3;
    called_012 = identifier(0) == 0 && identifier(1) == 1 && identifier(2) == 2;
    sampled_apart = factors(0) != factors(1) || factors(0) != factors(2);
    quantised_apart = table(0) != table(1) && table(1) == table(2);
  }
};

/// What three components are whose slide's tag says `tag`, RGB or YCbCr. A marker overrules the tag. So do the sampling
/// of components that are called as JFIF calls Y, Cb and Cr, and the quantisation tables of those and of 0, 1 and 2.
/// Nothing where what is said can't be told apart.
/// \param marks_count  false: the tag decides, whatever markers say. But RGB is never sampled apart, nor named and
///   quantised as YCbCr, unless Adobe's marker says RGB as well
constexpr std::optional<Colour> colour_of_jpeg(Colour tag, const JpegMarks& marks, bool marks_count = true) noexcept {
  constexpr int adobe_rgb = 0, adobe_ycbcr = 1, adobe_ycck = 2;
  const bool says_ycbcr = marks.jfif || marks.adobe == adobe_ycbcr;
  const bool says_rgb = marks.adobe == adobe_rgb;
  const bool coded_as_ycbcr = (marks.called_123 || marks.called_012) && marks.quantised_apart;
  if (!marks_count) return marks.sampled_apart || (coded_as_ycbcr && !says_rgb) ? Colour::ycbcr : tag;
  if (marks.adobe == adobe_ycck) return {};
  if (says_ycbcr) return says_rgb || marks.called_rgb ? std::nullopt : std::optional(Colour::ycbcr);
  if (says_rgb) return marks.sampled_apart ? std::nullopt : std::optional(Colour::rgb);
  if (marks.called_rgb) return tag != Colour::rgb || marks.sampled_apart ? std::nullopt : std::optional(Colour::rgb);
  if (coded_as_ycbcr) return Colour::ycbcr;
  if (tag == Colour::rgb && marks.sampled_apart) {
    return marks.called_123 ? std::optional(Colour::ycbcr) : std::nullopt;
  }
  return tag;
}

}  // namespace slidestream
