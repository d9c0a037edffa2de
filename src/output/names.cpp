#include "output/names.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "config/printable.hpp"
#include "output/case_folding.hpp"

namespace slidestream {

namespace {

/// A syllable's letters, as the Unicode standard counts them (section 3.12). False: it is none.
bool append_hangul(std::string& to, char32_t point) {
  constexpr char32_t first = 0xAC00, leading = 0x1100, vowel = 0x1161, before_trailing = 0x11A7;
  constexpr char32_t trailing = 28, of_leading = 21 * trailing, all = 19 * of_leading;
  if (point < first || point - first >= all) return false;
  const char32_t number = point - first;
  append_utf8(to, leading + number / of_leading);
  append_utf8(to, vowel + number % of_leading / trailing);
  if (number % trailing != 0) append_utf8(to, before_trailing + number % trailing);
  return true;
}

void append_folded(std::string& to, char32_t point) {
  if (append_hangul(to, point)) return;
  const auto letter = std::ranges::lower_bound(folded_letters, point, {}, &FoldedLetter::point);
  if (letter != folded_letters.end() && letter->point == point) {
    to += letter->to;
    return;
  }
  const auto range = std::ranges::lower_bound(folded_ranges, point, {}, &FoldedRange::last);
  const bool is_folded = range != folded_ranges.end() && range->first <= point &&
                         (point - range->first) % static_cast<char32_t>(range->step) == 0;
  append_utf8(to, is_folded ? point + static_cast<char32_t>(range->by) : point);
}

constexpr std::array<std::string_view, 6> devices = {"con", "prn", "aux", "nul", "com", "lpt"};

/// Whether Windows takes a name for a device: CON, or COM1 with one digit, whatever follows a dot, or blanks and a dot.
bool is_device(std::string_view name) {
  name = name.substr(0, name.find('.'));
  name = name.substr(0, name.find_last_not_of(' ') + 1);
  const std::string folded = folded_name(name);
  const std::string word = folded.substr(0, 3);
  if (std::ranges::find(devices, word) == devices.end()) return false;
  const bool is_numbered = word == "com" || word == "lpt";
  const std::string rest = folded.substr(3);
  if (!is_numbered) return rest.empty();
  return rest.size() == 1 ? rest[0] >= '1' && rest[0] <= '9' : rest == "\u00b9" || rest == "\u00b2" || rest == "\u00b3";
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::string folded;
  folded.reserve(name.size());
  while (!name.empty()) {
    const std::size_t length = utf8_length(name);
    if (length == 0) {
      folded += name.front();
    } else {
      append_folded(folded, code_point(name, length));
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return folded;
}

std::string portable_name(std::string name) {
  constexpr std::string_view refused = "<>:\"\\|?*";
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || refused.find(c) != std::string_view::npos) c = '_';
  }
  if (!name.empty() && (name.back() == '.' || name.back() == ' ')) name.back() = '_';
  if (is_device(name)) name.insert(std::min(name.find('.'), name.size()), "_");
  return name;
}

std::string file_stem(const std::string& slide, std::size_t longest, bool portable) {
  std::string stem = std::filesystem::path(slide).stem().string();
  // Volumes have two suffixes.
  if (stem.size() > 4 && stem.ends_with(".nii") && slide.ends_with(".nii.gz")) stem.resize(stem.size() - 4);
  stem.resize(std::min(stem.size(), longest));
  if (portable) stem = portable_name(std::move(stem));
  return stem.empty() ? "slide" : stem;
}

}  // namespace slidestream
