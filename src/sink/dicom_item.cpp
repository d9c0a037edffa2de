#include "sink/dicom_item.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace slidestream {

namespace {

/// Value representations with a length of 32 bits (PS3.5, table 7.1-1).
constexpr std::array<std::string_view, 13> long_vrs = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ",
                                                       "SV", "UC", "UN", "UR", "UT", "UV"};

constexpr DicomTag dicom_item_tag = 0xFFFEE000;

void append_dicom_tag(std::vector<std::byte>& to, DicomTag tag) {
  append_number(to, static_cast<std::uint16_t>(tag >> 16));
  append_number(to, static_cast<std::uint16_t>(tag));
}

void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::string decimal_text(double value) {
  constexpr std::ptrdiff_t most = 16;
  char text[32];
  for (int digits = 15;; --digits) {
    const char* const end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
    if (end - text <= most || digits == 1) return {text, static_cast<std::size_t>(end - text)};
  }
}

void DicomItem::bytes(DicomTag tag, std::string_view vr, std::span<const std::byte> value) {
  Element& element = elements_[tag];
  element.vr = vr;
  element.value.assign(value.begin(), value.end());
  if (value.size() % 2 != 0) element.value.push_back(std::byte{0});
}

void DicomItem::text(DicomTag tag, std::string_view vr, std::string_view value) {
  std::string padded(value);
  if (padded.size() % 2 != 0) padded += vr == "UI" ? '\0' : ' ';
  bytes(tag, vr, std::as_bytes(std::span(padded)));
}

void DicomItem::uint16(DicomTag tag, std::uint16_t value) {
  std::vector<std::byte> number;
  append_number(number, value);
  bytes(tag, "US", number);
}

void DicomItem::uint32(DicomTag tag, std::uint32_t value) {
  std::vector<std::byte> number;
  append_number(number, value);
  bytes(tag, "UL", number);
}

void DicomItem::float32(DicomTag tag, float value) {
  std::vector<std::byte> number;
  append_number(number, std::bit_cast<std::uint32_t>(value));
  bytes(tag, "FL", number);
}

void DicomItem::decimal(DicomTag tag, double value) { text(tag, "DS", decimal_text(value)); }

void DicomItem::decimals(DicomTag tag, std::span<const double> values) {
  std::string all;
  for (const double value : values) {
    if (!all.empty()) all += '\\';
    all += decimal_text(value);
  }
  text(tag, "DS", all);
}

void DicomItem::sequence(DicomTag tag, const std::vector<DicomItem>& items) {
  std::vector<std::byte> all;
  for (const DicomItem& item : items) {
    const std::vector<std::byte> value = item.encoded();
    append_dicom_tag(all, dicom_item_tag);
    append_number(all, static_cast<std::uint32_t>(value.size()));
    append_bytes(all, value);
  }
  bytes(tag, "SQ", all);
}

void DicomItem::merge(const DicomItem& other) {
  for (const auto& [tag, element] : other.elements_) elements_[tag] = element;
}

std::vector<std::byte> DicomItem::encoded() const {
  std::vector<std::byte> all;
  for (const auto& [tag, element] : elements_) {
    append_dicom_tag(all, tag);
    append_bytes(all, std::as_bytes(std::span(element.vr)));
    if (std::ranges::find(long_vrs, element.vr) != long_vrs.end()) {
      append_number(all, std::uint16_t{0});
      append_number(all, static_cast<std::uint32_t>(element.value.size()));
    } else {
      append_number(all, static_cast<std::uint16_t>(element.value.size()));
    }
    append_bytes(all, element.value);
  }
  return all;
}

}  // namespace slidestream
