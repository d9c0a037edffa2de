#include "report/made.hpp"

#include <algorithm>
#include <string_view>

#include "ledger/artifact_files.hpp"

namespace slidestream::report {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// More would leave each too little room.
constexpr std::size_t most_made_images = 6;
/// Of a network.
constexpr int most_classes = 16;

std::string encoded(std::string_view path) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    if (plain.find(c) != std::string_view::npos) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += '%';
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
  }
  return text;
}

/// The labels of an image that are classes; nothing where its samples aren't labels.
std::optional<Labels> labels_of(const Artifact& artifact, const SlideResult& slide) {
  if (artifact.product == "mask") return Labels{1, 2};
  if (artifact.product != "classes") return std::nullopt;
  const std::string shares = artifact.maker + ".class_";
  const auto known = std::ranges::count_if(
      slide.values, [&shares](const NamedValue& value) { return value.name.starts_with(shares); });
  // In ledgers of earlier versions a slide none of whose pixels has a class says nothing of them.
  return Labels{0, known > 0 ? static_cast<int>(known) : most_classes};
}

}  // namespace

std::string link_to(const fs::path& file, const fs::path& page) {
  const fs::path whole = fs::absolute(file).lexically_normal();
  const fs::path relative = whole.lexically_relative(fs::absolute(page).lexically_normal().parent_path());
  return relative.empty() ? "file://" + encoded(whole.string()) : encoded(relative.string());
}

Json files_json(const SlideResult& slide, const fs::path& folder, const fs::path& page) {
  Json files = Json::array();
  for (const Artifact& artifact : slide.artifacts) {
    files.push_back({artifact.maker, artifact.product, link_to(place_of(folder, artifact.file), page), artifact.bytes});
  }
  return files;
}

std::vector<MadeImage> made_images(const SlideResult& slide, const fs::path& folder) {
  std::vector<MadeImage> made;
  for (std::size_t k = 0; k < slide.artifacts.size() && made.size() < most_made_images; ++k) {
    const Artifact& artifact = slide.artifacts[k];
    const fs::path place = place_of(folder, artifact.file);
    const std::string name = place == folder / artifact.file ? artifact.file : place.string();
    if (artifact.maker == "volume") {
      const bool labels = artifact.product == "labels";
      made.push_back({k, folder, name, artifact.bytes, labels ? std::optional(Labels{}) : std::nullopt, true});
      continue;
    }
    if (!artifact.file.ends_with(".ome.tif") && !artifact.file.ends_with(".dzi")) continue;
    made.push_back({k, folder, name, artifact.bytes, labels_of(artifact, slide)});
  }
  return made;
}

}  // namespace slidestream::report
