#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Data sets of DICOM (PS3.5, section 7) as explicit VR little endian.

namespace slidestream {

/// Group in the upper 16 bits, element in the lower ones.
using DicomTag = std::uint32_t;

/// Elements of a data set or of a sequence's item. They are written in the order of their tags.
class DicomItem {
 public:
  /// \param vr  of two letters. The text is padded to an even length.
  void text(DicomTag tag, std::string_view vr, std::string_view value);
  void bytes(DicomTag tag, std::string_view vr, std::span<const std::byte> value);
  void uint16(DicomTag tag, std::uint16_t value);
  void uint32(DicomTag tag, std::uint32_t value);
  void float32(DicomTag tag, float value);
  /// A number as text of at most 16 characters.
  void decimal(DicomTag tag, double value);
  void decimals(DicomTag tag, std::span<const double> values);
  void sequence(DicomTag tag, const std::vector<DicomItem>& items);

  bool has(DicomTag tag) const { return elements_.contains(tag); }
  /// Elements of `other` take the place of those here.
  void merge(const DicomItem& other);
  std::vector<std::byte> encoded() const;

 private:
  struct Element {
    std::string vr;
    std::vector<std::byte> value;
  };
  std::map<DicomTag, Element> elements_;
};

/// At most 16 characters, as many digits as fit. \param value  finite.
std::string decimal_text(double value);

template <class Number>
void append_number(std::vector<std::byte>& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    to.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(number) >> 8 * i));
  }
}

}  // namespace slidestream
