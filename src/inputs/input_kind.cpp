#include "inputs/input_kind.hpp"

#include <algorithm>
#include <vector>

#include "slide/formats.hpp"

namespace slidestream {

namespace {

std::vector<std::string_view> suffixes_of(InputKind kind) {
  if (kind == InputKind::volume) return {".nii", ".nii.gz"};
  std::vector<std::string_view> all;
  for (const SlideFormat& format : slide_formats()) {
    all.insert(all.end(), format.suffixes.begin(), format.suffixes.end());
  }
  return all;
}

}  // namespace

std::string name_of(InputKind kind) { return kind == InputKind::volume ? "volume" : "slide"; }

bool is_named_as(InputKind kind, std::string_view path) {
  if (kind == InputKind::slide) return has_slide_suffix(path);
  return std::ranges::any_of(suffixes_of(kind), [path](std::string_view suffix) { return has_suffix(path, suffix); });
}

std::string suffixes_text(InputKind kind) {
  const std::vector<std::string_view> all = suffixes_of(kind);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < all.size() ? ", " : " or ") + std::string(all[i]);
  }
  return text;
}

}  // namespace slidestream
