#include "ledger/image_names.hpp"

#include <unordered_set>

#include "ledger/ledger.hpp"
#include "output/names.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// Room for digits, the operator, ".partial" and a format within the 255 bytes that file systems give a name.
constexpr std::size_t longest_stem = 180;
constexpr std::size_t longest_name = 220;

/// Files of such a name could have another slide's partial names: SLIDE.partial.h5, or SLIDE.partial.ome.h5 of
/// SLIDE.ome.
bool looks_partial(const std::string& stem) {
  const std::string folded = folded_name(stem);
  return folded.ends_with(".partial") || folded.ends_with(".partial.ome");
}

/// Whether it is what follows all of a path's digits where even these are taken: -2, or a larger number.
bool is_numbering(std::string_view text) {
  return text.size() > 1 && text.size() < 10 && text[0] == '-' && text[1] != '0' && text != "-1" &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

bool is_image_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

bool may_name_images(std::string_view name, const ManifestEntry& slide, bool portable) {
  for (const std::string& path : {slide.path, slide.canonical}) {
    const std::string stem = file_stem(path, longest_stem, portable);
    if (name == stem && !looks_partial(stem)) return true;
    const std::string digits = to_hexadecimal(stable_hash(slide.canonical));
    if (name == stem + "-" + digits.substr(0, 8)) return true;
    const std::string all = stem + "-" + digits;
    if (name.starts_with(all) && (name == all || is_numbering(name.substr(all.size())))) return true;
  }
  return false;
}

void fill_image_names(const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& others,
                      std::vector<std::string>& names, bool portable) {
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
    std::string stem = file_stem(manifest[i].path, longest_stem, portable);
    if (!looks_partial(stem) && taken.insert(folded_name(stem)).second) {
      names[i] = std::move(stem);
    } else {
      left.push_back(i);
    }
  }
  for (const std::size_t i : left) {
    const std::string stem = file_stem(manifest[i].path, longest_stem, portable) + "-";
    const std::string digits = to_hexadecimal(stable_hash(manifest[i].canonical));
    std::string name = stem + digits.substr(0, 8);
    for (std::size_t number = 1; !taken.insert(folded_name(name)).second; ++number) {
      name = stem + digits + (number == 1 ? "" : "-" + std::to_string(number));
    }
    names[i] = std::move(name);
  }
}

}  // namespace slidestream
