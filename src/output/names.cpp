#include "output/names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "config/printable.hpp"

namespace slidestream {

namespace {

/// The small letter of a code point below U+0800, which UTF-8 has in two bytes (Unicode's CaseFolding.txt, the
/// alphabets that have two cases there).
char32_t small_letter(char32_t point) {
  const auto within = [point](char32_t low, char32_t high) { return point >= low && point <= high; };
  const auto even_first = [point] { return point | 1; };
  const auto odd_first = [point] { return point + (point & 1); };
  if (within(0xc0, 0xde) && point != 0xd7) return point + 0x20;
  if (within(0x100, 0x12f) || within(0x132, 0x137) || within(0x14a, 0x177)) return even_first();
  if (within(0x139, 0x148) || within(0x179, 0x17e)) return odd_first();
  if (point == 0x178) return 0xff;
  if (point == 0x386) return 0x3ac;
  if (within(0x388, 0x38a)) return point + 0x25;
  if (point == 0x38c) return 0x3cc;
  if (within(0x38e, 0x38f)) return point + 0x3f;
  if (within(0x391, 0x3ab)) return point + 0x20;
  if (within(0x400, 0x40f)) return point + 0x50;
  if (within(0x410, 0x42f)) return point + 0x20;
  if (within(0x460, 0x481) || within(0x48a, 0x4bf) || within(0x4d0, 0x52f)) return even_first();
  return point;
}

constexpr std::array<std::string_view, 6> devices = {"con", "prn", "aux", "nul", "com", "lpt"};

/// Whether Windows takes a name for a device: CON, or COM1 with one digit, whatever follows a dot.
bool is_device(std::string_view name) {
  const std::string folded = folded_name(name.substr(0, name.find('.')));
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
    if (length == 2) {
      const char32_t small = small_letter(code_point(name, length));
      folded += static_cast<char>(0xc0 | small >> 6);
      folded += static_cast<char>(0x80 | (small & 0x3f));
    } else if (length > 2) {
      folded += name.substr(0, length);
    } else {
      const char c = name.front();
      folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
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
