#include "slide/tiff/aperio.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "config/csv.hpp"
#include "config/positive_number.hpp"
#include "slide/number_text.hpp"
#include "slide/tiff/vips_xml.hpp"

namespace slidestream {
namespace {

constexpr std::size_t most_properties = 1000;
constexpr std::size_t most_searched = 4096;  ///< bytes of a description, for the name of an image
constexpr std::string_view white = " \t\r\n";
constexpr std::string_view arrow = "->";  ///< between the size that an image was made from and its own

std::string_view first_line(std::string_view text) { return trimmed(text.substr(0, text.find_first_of("\r\n"))); }

/// The second line, up to a bar.
std::string_view second_line(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  text.remove_prefix(end + 1);
  return text.substr(0, text.find_first_of("|\n"));
}

/// Takes "WxH" off the beginning of a text.
std::optional<ImageSize> take_size(std::string_view& text) {
  ImageSize size;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  if (width.ec != std::errc() || width.ptr == end || *width.ptr != 'x') return std::nullopt;
  const auto height = std::from_chars(width.ptr + 1, end, size.height);
  if (height.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(height.ptr - text.data()));
  return size;
}

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_capital(char c) { return 'A' <= c && c <= 'Z'; }
bool is_small(char c) { return 'a' <= c && c <= 'z'; }
char small_letter(char c) { return is_capital(c) ? static_cast<char>(c | 0x20) : c; }

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = small_letter(c);
  return small;
}

/// Where a key stands from `at` on, in any letter case.
std::size_t place_of_key(std::string_view text, std::string_view key, std::size_t at) {
  const auto is_same = [](char a, char b) { return small_letter(a) == small_letter(b); };
  const auto first = text.begin() + static_cast<std::ptrdiff_t>(at);
  const auto found = std::search(first, text.end(), key.begin(), key.end(), is_same);
  return found == text.end() ? std::string_view::npos : static_cast<std::size_t>(found - text.begin());
}

/// A word in small letters where it is the name of an image that is no level.
std::string name_of_associated(std::string_view word) {
  constexpr std::array<std::string_view, 5> names = {"label", "macro", "overview", "barcode", "thumbnail"};
  std::string small = in_small_letters(word);
  return std::ranges::find(names, small) == names.end() ? std::string() : small;
}

/// Calls `see` with the words of a text between blanks, until it returns false.
template <class See>
void for_words(std::string_view text, const See& see) {
  while (!(text = trimmed(text)).empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(white));
    if (!see(word)) return;
    text.remove_prefix(word.size());
  }
}

bool is_separator(char c) { return c == '_' || c == '-'; }

/// The first word of what stands between blanks, a number or a separator: "Label-1" and "MacroImage" have several.
std::string_view first_word(std::string_view text) {
  const auto is_end = [text](std::size_t at) {
    const char before = text[at - 1];
    const char c = text[at];
    if (is_separator(before) || is_separator(c)) return true;
    if (is_digit(text.front())) return !is_digit(c) && c != 'x';
    if (is_digit(c)) return true;
    const bool begins_word = at + 1 < text.size() && is_small(text[at + 1]);
    return is_capital(c) && (is_small(before) || (is_capital(before) && begins_word));
  };
  std::size_t end = 1;
  while (end < text.size() && !is_end(end)) ++end;
  return text.substr(0, end);
}

/// What words say together of the image that they are of.
class ImageWords {
 public:
  /// Takes what stands between blanks; false where it says something else.
  bool add(std::string_view text) {
    // A size.
    if (is_digit(text.front())) return true;
    if (std::string_view(":,;.").find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    if (take(text)) return true;
    while (!text.empty()) {
      const std::string_view word = first_word(text);
      if (!is_separator(word.front()) && !is_digit(word.front()) && !take(word)) return false;
      text.remove_prefix(word.size());
    }
    return true;
  }

  const std::string& name() const noexcept { return name_; }

 private:
  bool take(std::string_view word) {
    const std::string found = name_of_associated(word);
    if (name_.empty()) name_ = found;
    const std::string small = in_small_letters(word);
    return !found.empty() || small == "image" || small == "slide";
  }

  std::string name_;  ///< the first
};

bool is_end_of_value(char c) { return c == '|' || c == ';' || c == '\r' || c == '\n'; }

/// The value behind `key =`, wherever it stands as a word in any letter case: up to a bar, a semicolon, the end of the
/// line or the next key. Only from `at` on, which becomes the place behind it.
std::optional<std::string_view> next_value(std::string_view text, std::string_view key, std::size_t& at) {
  const auto is_before_key = [](char c) { return is_end_of_value(c) || white.find(c) != std::string_view::npos; };
  while ((at = place_of_key(text, key, at)) != std::string_view::npos) {
    const std::size_t begin = at;
    at += key.size();
    if (begin > 0 && !is_before_key(text[begin - 1])) continue;
    const std::size_t equals = text.find_first_not_of(" \t", at);
    if (equals == std::string_view::npos || text[equals] != '=') continue;
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(equals) + 1;
    const auto last = std::find_if(first, text.end(), is_end_of_value);
    std::string_view value = trimmed({first, last});
    at = equals + 1;
    const std::size_t next = value.find('=');
    if (next == std::string_view::npos) return value;
    value = trimmed(value.substr(0, next));
    return trimmed(value.substr(0, value.find_last_of(white) + 1));
  }
  return std::nullopt;
}

/// The first readable number that `key` has in a list. Another one beside it is doubtful.
std::optional<double> number_in_list(std::string_view text, std::string_view key, SlideInfo& info) {
  std::optional<double> first;
  std::size_t at = 0;
  while (const auto value = next_value(text, key, at)) {
    const std::optional<double> number = said_number(*value, key, info);
    if (first && number && *number != *first) {
      info.warnings.push_back(std::string(key) + " stands twice in the description, and differs: the first counts");
      break;
    }
    if (!first) first = number;
    // Nonsense without end is warned of once.
    if (!number && !trimmed(*value).empty()) break;
  }
  return first;
}

/// Aperio's own pairs. Of other texts nothing is kept that nobody knows.
void read_pairs(std::string_view description, SlideInfo& info) {
  std::size_t bar = description.find('|');
  while (bar != std::string_view::npos && info.properties.size() < most_properties) {
    const std::size_t next = description.find('|', bar + 1);
    const std::string_view pair = description.substr(bar + 1, next == std::string_view::npos ? next : next - bar - 1);
    const std::size_t equals = pair.find('=');
    const std::string_view key = trimmed(pair.substr(0, equals));
    if (equals != std::string_view::npos && !key.empty()) {
      info.properties.insert_or_assign(std::string(key), std::string(trimmed(pair.substr(equals + 1))));
    }
    bar = next;
  }
}

/// What Aperio's text says of the image's size, up to the description of what it was made from.
std::string_view sizes_of(std::string_view description) {
  const std::string_view line = second_line(description);
  return line.substr(0, line.find(';'));
}

/// The size in a text without an arrow. The part of the scanned area that the image shows stands in brackets:
/// "[x,y WxH]", or with a comma.
std::optional<ImageSize> size_of_part(std::string_view text) {
  text = trimmed(text);
  if (const std::size_t bracket = text.find('['); bracket != std::string_view::npos) {
    text.remove_prefix(bracket + 1);
    text = trimmed(text.substr(0, text.find(']')));
    text.remove_prefix(text.find_last_of(", ") + 1);
  }
  return take_size(text);
}

/// The size that Aperio's text gives its own image.
std::optional<ImageSize> described_size(std::string_view description) {
  const std::string_view line = sizes_of(description);
  const std::size_t at = line.find(arrow);
  if (at == std::string_view::npos) return size_of_part(line);
  std::string_view target = trimmed(line.substr(at + arrow.size()));
  return take_size(target);
}

/// Whether a side of an image can be the described one: but for 2 pixels or 2 %, or with one of them padded to tiles.
bool is_side(std::uint64_t described, std::uint64_t side, std::uint64_t tile) {
  constexpr std::uint64_t most_off = 2;  // pixels
  constexpr std::uint64_t fiftieth = 50;
  const std::uint64_t larger = std::max(described, side);
  const std::uint64_t smaller = std::min(described, side);
  return larger - smaller <= std::max(most_off, larger / fiftieth) || (smaller + tile - 1) / tile * tile == larger;
}

void compare_size(std::string_view description, ImageSize image, ImageSize tile, SlideInfo& info) {
  const std::optional<ImageSize> size = described_size(description);
  if (!size || size->width == 0 || size->height == 0) return;
  if (is_side(size->width, image.width, tile.width) && is_side(size->height, image.height, tile.height)) return;
  const auto text = [](ImageSize of) { return std::to_string(of.width) + " x " + std::to_string(of.height); };
  info.warnings.push_back("the description is of an image of " + text(*size) + " pixels, and the slide has " +
                          text(image) + ": MPP and AppMag count as they are");
}

/// How many times an image of this size was made smaller, by the arrow in Aperio's text; 1 where it says no such thing.
double reduction_of(std::string_view description, ImageSize size) {
  constexpr std::uint64_t most_off = 4;  // pixels
  constexpr double least = 1.02;
  if (!description.starts_with("Aperio")) return 1.0;
  const std::string_view line = sizes_of(description);
  const std::size_t at = line.find(arrow);
  if (at == std::string_view::npos) return 1.0;
  const std::optional<ImageSize> from = size_of_part(line.substr(0, at));
  const std::optional<ImageSize> to = described_size(description);
  const auto is_near = [](std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) <= most_off; };
  if (!from || !to || to->width == 0 || !is_near(to->width, size.width) || !is_near(to->height, size.height)) {
    return 1.0;
  }
  const double factor = static_cast<double>(from->width) / static_cast<double>(to->width);
  return factor > least && has_shape_of(*from, *to) ? factor : 1.0;
}

std::optional<double> scaled(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

/// The text of an element of the XML of a QPTIFF.
std::string_view element_of_qptiff(std::string_view xml, std::string_view tag) {
  if (xml.find("<PerkinElmer-QPI-ImageDescription") == std::string_view::npos) return {};
  const std::size_t at = xml.find(tag);
  if (at == std::string_view::npos) return {};
  xml.remove_prefix(at + tag.size());
  return xml.substr(0, xml.find('<'));
}

/// What the XML of a QPTIFF calls its image.
std::string name_in_qptiff(std::string_view xml) {
  return name_of_associated_in(element_of_qptiff(xml, "<ImageType>"));
}

}  // namespace

std::string channel_of_qptiff(std::string_view xml) {
  // The scanner's settings name other things.
  return std::string(trimmed(element_of_qptiff(xml.substr(0, xml.find("<ScanProfile")), "<Name>")));
}

SaidPixelSize read_description(std::string_view description, ImageSize image, ImageSize tile, SlideInfo& info) {
  const std::string_view line = first_line(description);
  // XML says nothing in its first line.
  if (!line.empty() && !line.starts_with("<?xml")) info.properties.insert_or_assign("description", std::string(line));
  const bool is_aperios = description.starts_with("Aperio");
  info.format = is_aperios ? "aperio" : "tiff";
  if (is_aperios) read_pairs(description, info);
  if (trimmed(description).starts_with('<')) return size_by_vips_xml(description, info);
  const double factor = reduction_of(description, image);
  info.magnification = scaled(number_in_list(description, "AppMag", info), 1.0 / factor);
  const std::optional<double> mpp = scaled(number_in_list(description, "MPP", info), factor);
  if (factor > 1.0 && (mpp || info.magnification)) {
    std::ostringstream times;
    times << std::setprecision(3) << factor;
    info.warnings.push_back("the description says that it was reduced " + times.str() +
                            " times: pixel size and magnification are scaled");
  } else if (is_aperios && (mpp || info.magnification)) {
    compare_size(description, image, tile, info);
  }
  const std::optional<double> size = said_pixel_size(mpp, "MPP", info);
  return {size, size};
}

DescribedScale scale_in(std::string_view description) {
  if (trimmed(description).starts_with('<')) return {};
  SlideInfo unused;  // for warnings, which the largest image's description gets
  return {number_in_list(description, "MPP", unused), number_in_list(description, "AppMag", unused)};
}

std::string name_of_associated_in(std::string_view text) {
  ImageWords words;
  bool is_only = true;
  for_words(without_bom(text), [&](std::string_view word) {
    is_only = words.add(word);
    return is_only;
  });
  return is_only ? words.name() : std::string();
}

std::string associated_name(std::string_view description) {
  description = trimmed(description.substr(0, most_searched));
  if (description.starts_with('<')) return name_in_qptiff(description);
  const std::string_view second = second_line(description);
  if (description.starts_with("Aperio")) {
    const std::string_view words = trimmed(second);
    return name_of_associated_in(words.substr(0, words.find_first_of(white)));
  }
  std::string name = name_of_associated_in(description.substr(0, description.find_first_of("|\r\n")));
  return name.empty() ? name_of_associated_in(second) : name;
}

std::string name_of_focus(std::string_view description) {
  constexpr std::string_view key = "OffsetZ";
  constexpr std::size_t longest_number = 24;
  if (!description.starts_with("Aperio")) return {};
  std::size_t at = 0;
  const std::optional<std::string_view> value = next_value(description, key, at);
  if (!value || value->size() > longest_number) return {};
  double offset = 0.0;
  const char* end = value->data() + value->size();
  const std::from_chars_result result = std::from_chars(value->data(), end, offset);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(offset)) return {};
  return std::string(key) + " " + std::string(*value);
}

std::optional<ImageSize> size_of_thumbnail(std::string_view description) {
  if (!description.starts_with("Aperio")) return std::nullopt;
  std::string_view line = trimmed(second_line(description));
  if (!take_size(line)) return std::nullopt;
  line = trimmed(line);
  if (!line.starts_with(arrow)) return std::nullopt;
  line = trimmed(line.substr(arrow.size()));
  return take_size(line);
}

}  // namespace slidestream
