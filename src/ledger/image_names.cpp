#include "ledger/image_names.hpp"

#include <unordered_set>

#include "config/printable.hpp"
#include "ledger/ledger.hpp"
#include "output/names.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// Room for digits, the operator, ".partial" and a format within the 255 bytes that file systems give a name.
constexpr std::size_t longest_stem = 180;
constexpr std::size_t longest_name = 220;

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

/// Files of such a name could have another slide's partial names: SLIDE.partial.h5, or SLIDE.partial.ome.h5 of
/// SLIDE.ome.
bool looks_partial(const std::string& stem) {
  const std::string folded = folded_name(stem);
  return folded.ends_with(".partial") || folded.ends_with(".partial.ome");
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

bool is_image_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void fill_image_names(const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& others,
                      std::vector<std::string>& names) {
  std::unordered_set<std::string> taken;
  const auto take = [&taken](const std::vector<std::string>& known) {
    for (const std::string& name : known) {
      if (!name.empty()) taken.insert(folded_name(name));
    }
  };
  take(others);
  take(names);
  // Plain stems first, so that no slide's digits take another's stem.
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    if (!names[i].empty()) continue;
    std::string stem = file_stem(manifest[i].path, longest_stem);
    if (!looks_partial(stem) && taken.insert(folded_name(stem)).second) {
      names[i] = std::move(stem);
    } else {
      left.push_back(i);
    }
  }
  for (const std::size_t i : left) {
    const std::string stem = file_stem(manifest[i].path, longest_stem) + "-";
    const std::string digits = to_hexadecimal(stable_hash(manifest[i].canonical));
    std::string name = stem + digits.substr(0, 8);
    for (std::size_t number = 1; !taken.insert(folded_name(name)).second; ++number) {
      name = stem + digits + (number == 1 ? "" : "-" + std::to_string(number));
    }
    names[i] = std::move(name);
  }
}

}  // namespace slidestream
