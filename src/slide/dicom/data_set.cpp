#include "slide/dicom/data_set.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

namespace slidestream::dicom {

namespace {

/// What is read at a time where elements are.
constexpr std::size_t window_bytes = std::size_t{64} << 10;

/// Value representations with a length of 32 bits (PS3.5, table 7.1-1).
constexpr std::array<std::string_view, 13> long_vrs = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ",
                                                       "SV", "UC", "UN", "UR", "UT", "UV"};

bool is_vr(const std::array<char, 2>& vr) {
  return std::ranges::all_of(vr, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool has_vr(const Element& element, std::string_view vr) {
  return std::string_view(element.vr.data(), element.vr.size()) == vr;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

}  // namespace

std::string tag_text(Tag tag) {
  char text[16];
  std::snprintf(text, sizeof(text), "(%04X,%04X)", tag >> 16, tag & 0xFFFF);
  return text;
}

void Reader::refuse(const std::string& cause) const { throw_slide_error(name_, cause); }

void Reader::refuse(const Element& element, const char* keyword, const std::string& cause) const {
  refuse(std::string(keyword) + " " + tag_text(element.tag) + " " + cause);
}

std::span<const std::byte> Reader::bytes(std::uint64_t at, std::size_t count) {
  if (at >= window_at_ && count <= window_.size() && at - window_at_ <= window_.size() - count) {
    return std::span<const std::byte>(window_).subspan(static_cast<std::size_t>(at - window_at_), count);
  }
  if (!file_.contains(at, count))
    refuse("the file ends at byte " + std::to_string(file_.size()) + " inside an element");
  window_.resize(std::max(count, window_bytes));
  const auto wanted = std::min<std::uint64_t>(window_.size(), file_.size() - at);
  budget_.take_bytes(wanted);
  window_.resize(static_cast<std::size_t>(wanted));
  window_at_ = at;
  file_.read(at, window_);
  return std::span<const std::byte>(window_).first(count);
}

void Reader::read_apart(std::uint64_t at, std::span<std::byte> to) {
  budget_.take_bytes(to.size());
  file_.read(at, to);
}

std::uint32_t Reader::number(std::uint64_t at, unsigned count) {
  const std::span<const std::byte> from = bytes(at, count);
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(from[i]);
  return value;
}

Element Reader::element_at(std::uint64_t at, bool implicit) {
  if (++elements_ % 4096 == 0) budget_.check();
  if (elements_ > elements_allowed_) refuse("has more than " + std::to_string(elements_allowed_) + " elements");
  Element element;
  element.implicit = implicit;
  const std::uint32_t group = number(at, 2);
  element.tag = group << 16 | number(at + 2, 2);
  // No data set of a file has it. Millions of them lie in a hole, which takes no place on the disk.
  if (element.tag == 0) refuse("has zeros at byte " + std::to_string(at) + " in place of an element");
  if (group == 0xFFFE || implicit) {
    element.length = number(at + 4, 4);
    element.value_at = at + 8;
    return element;
  }
  const std::span<const std::byte> vr = bytes(at + 4, 2);
  element.vr = {static_cast<char>(vr[0]), static_cast<char>(vr[1])};
  if (!is_vr(element.vr)) {
    refuse("the element " + tag_text(element.tag) + " at byte " + std::to_string(at) + " has no value representation");
  }
  const bool is_long = std::ranges::any_of(long_vrs, [&](std::string_view one) { return has_vr(element, one); });
  element.length = is_long ? number(at + 8, 4) : number(at + 6, 2);
  element.value_at = at + (is_long ? 12 : 8);
  // Its own value is implicit, whatever is around it (PS3.5, 6.2.2).
  if (has_vr(element, "UN")) element.implicit = true;
  return element;
}

std::uint64_t Reader::skip(const Element& element) {
  if (element.length != undefined_length) {
    if (!file_.contains(element.value_at, element.length)) {
      refuse("the element " + tag_text(element.tag) + " of " + std::to_string(element.length) + " bytes at byte " +
             std::to_string(element.value_at) + " lies outside the file");
    }
    return element.value_at + element.length;
  }
  // Encapsulated pixels, of an icon say, are items as those of sequences are.
  const bool may_be_sequence =
      element.vr[0] == 0 || has_vr(element, "SQ") || has_vr(element, "UN") || element.tag == pixel_data_tag;
  if (!may_be_sequence) refuse("the element " + tag_text(element.tag) + " has no length, and is no sequence");
  return read_items(element, [](const Extent&) { return 0; });
}

std::uint64_t Reader::read_data_set(const Extent& extent, const Take& take) {
  std::uint64_t at = extent.begin;
  Tag before = 0;
  while (at < extent.end) {
    const Element element = element_at(at, extent.implicit);
    if (element.tag == item_end_tag && extent.delimited) return element.value_at;
    // Which of two values counts nobody says. Those of odd groups are private, and aren't read.
    if (element.tag == before && (element.tag >> 16) % 2 == 0) {
      refuse("has the element " + tag_text(element.tag) + " twice");
    }
    before = element.tag;
    if (element.tag >> 16 == 0xFFFE)
      refuse("a delimiter " + tag_text(element.tag) + " at byte " + std::to_string(at) + " that ends nothing");
    const std::uint64_t taken = take(element);
    if (taken == stop) return at;
    // The image's own pixels are the last that is of interest.
    if (taken == 0 && element.tag == pixel_data_tag && depth_ == 0) return at;
    at = taken != 0 ? taken : skip(element);
    if (at > extent.end) refuse("the element " + tag_text(element.tag) + " is longer than what it is in");
  }
  if (extent.delimited) refuse("a sequence's item at byte " + std::to_string(extent.begin) + " has no end");
  return at;
}

std::uint64_t Reader::read_group(std::uint64_t begin, std::uint32_t group, const Take& take) {
  std::uint64_t at = begin;
  // What follows may be implicit.
  while (number(at, 2) == group) {
    const Element element = element_at(at, false);
    const std::uint64_t taken = take(element);
    at = taken != 0 ? taken : skip(element);
  }
  return at;
}

std::uint64_t Reader::read_items(const Element& sequence, const std::function<std::uint64_t(const Extent&)>& take) {
  if (++depth_ > most_depth) refuse("its sequences are nested more than " + std::to_string(most_depth) + " deep");
  const bool delimited = sequence.length == undefined_length;
  if (!delimited && !file_.contains(sequence.value_at, sequence.length)) {
    refuse("the sequence " + tag_text(sequence.tag) + " of " + std::to_string(sequence.length) +
           " bytes lies outside the file");
  }
  const std::uint64_t end = delimited ? file_.size() : sequence.value_at + sequence.length;
  std::uint64_t at = sequence.value_at;
  const auto leave = [&](std::uint64_t behind) {
    --depth_;
    return behind;
  };
  bool is_done = false;
  while (at < end) {
    const Element item = element_at(at, sequence.implicit);
    if (item.tag == sequence_end_tag && delimited) return leave(item.value_at);
    if (item.tag != item_tag) {
      refuse("the sequence " + tag_text(sequence.tag) + " has " + tag_text(item.tag) + " at byte " +
             std::to_string(at) + " in place of an item");
    }
    Extent extent{item.value_at, end, sequence.implicit, item.length == undefined_length};
    if (!extent.delimited) {
      if (item.length > end - item.value_at) {
        refuse("an item of the sequence " + tag_text(sequence.tag) + " is longer than the sequence");
      }
      extent.end = item.value_at + item.length;
    }
    const std::uint64_t taken = is_done ? 0 : take(extent);
    is_done = is_done || taken == stop;
    if (is_done && !delimited) return leave(end);
    if (taken != 0 && !is_done) {
      at = taken;
    } else {
      at = extent.delimited ? read_data_set(extent, [](const Element&) { return 0; }) : extent.end;
    }
  }
  if (delimited) refuse("the sequence " + tag_text(sequence.tag) + " has no end");
  return leave(at);
}

std::uint32_t Reader::unsigned_value(const Element& element, const char* keyword) {
  if (element.length != 2 && element.length != 4) {
    refuse(element, keyword, "has " + std::to_string(element.length) + " bytes, expected 2 or 4");
  }
  return number(element.value_at, element.length);
}

std::int32_t Reader::signed_value(const Element& element, const char* keyword) {
  if (element.length != 4) {
    refuse(element, keyword, "has " + std::to_string(element.length) + " bytes, expected 4");
  }
  return static_cast<std::int32_t>(number(element.value_at, 4));
}

std::string Reader::text(const Element& element, const char* keyword, std::size_t most) {
  if (element.length > most) {
    refuse(element, keyword,
           "has " + std::to_string(element.length) + " bytes, supported are up to " + std::to_string(most));
  }
  const std::span<const std::byte> value = bytes(element.value_at, element.length);
  std::string text(reinterpret_cast<const char*>(value.data()), value.size());
  text.resize(std::min(text.size(), text.find('\0')));
  return trimmed(text);
}

std::vector<std::string> Reader::texts(const Element& element, const char* keyword, std::size_t most) {
  const std::string all = text(element, keyword, most);
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find('\\', begin), all.size());
    values.push_back(trimmed(std::string_view(all).substr(begin, end - begin)));
    begin = end + 1;
  }
  return values;
}

std::int64_t Reader::integer_text(const Element& element, const char* keyword) {
  std::string value = text(element, keyword);
  if (value.starts_with('+')) value.erase(0, 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) refuse(element, keyword, "isn't an integer");
  return number;
}

std::optional<double> decimal_number(std::string value) {
  if (value.starts_with('+')) value.erase(0, 1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc() && end == value.data() + value.size() && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

std::vector<double> Reader::decimal_texts(const Element& element, const char* keyword) {
  std::vector<double> numbers;
  for (std::string value : texts(element, keyword)) {
    const std::optional<double> number = decimal_number(std::move(value));
    if (!number) refuse(element, keyword, "isn't a number");
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace slidestream::dicom
