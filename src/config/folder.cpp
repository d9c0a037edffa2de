#include "config/folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

namespace slidestream {

namespace {

namespace fs = std::filesystem;

using FileId = std::pair<dev_t, ino_t>;

class Walk {
 public:
  void begin(const std::string& folder) {
    // A link to a folder above this one would lead to all that lies beside it.
    std::error_code code;
    fs::path above = fs::canonical(folder, code);
    while (!code && above.has_relative_path()) {
      above = above.parent_path();
      struct ::stat status {};
      if (::stat(above.c_str(), &status) == 0) above_.emplace_back(status.st_dev, status.st_ino);
    }
    enter(folder);
  }

  FolderContents take() {
    std::ranges::sort(contents_.slides);
    return std::move(contents_);
  }

 private:
  void enter(const std::string& folder) {
    struct ::stat status {};
    if (::stat(folder.c_str(), &status) != 0) return give_up(folder, std::error_code(errno, std::generic_category()));
    const FileId id{status.st_dev, status.st_ino};
    if (std::ranges::find(above_, id) != above_.end()) return;
    above_.push_back(id);
    const std::size_t before = contents_.slides.size();
    list(folder);
    if (contents_.slides.size() == before && has_slide_suffix(folder)) contents_.slides.push_back(folder);
    above_.pop_back();
  }

  void give_up(const std::string& folder, const std::error_code& code) {
    contents_.warnings.push_back(folder + ": " + code.message() + "; its slides are missing");
    contents_.slides.push_back(folder);
  }

  void list(const std::string& folder) {
    std::error_code code;
    fs::directory_iterator entries(folder, code);
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
      const std::string name = entries->path().filename().string();
      if (name.starts_with('.')) continue;
      const std::string path = entries->path().string();
      std::error_code ignored;  // what can't be looked at is no folder, and fails as a slide if it is named like one
      if (!entries->is_directory(ignored)) {
        if (has_slide_suffix(name)) contents_.slides.push_back(path);
      } else if (!entries->is_symlink(ignored) || first_link_to(path)) {
        enter(path);
      }
    }
    if (code) give_up(folder, code);
  }

  /// Links among folders could multiply the walk without end: each target is followed once.
  bool first_link_to(const std::string& link) {
    struct ::stat status {};
    return ::stat(link.c_str(), &status) == 0 && followed_.insert({status.st_dev, status.st_ino}).second;
  }

  FolderContents contents_;
  std::vector<FileId> above_;  ///< the folders that we are in, and those above the first
  std::set<FileId> followed_;  ///< targets of links
};

}  // namespace

bool has_slide_suffix(std::string_view path) {
  constexpr std::array<std::string_view, 4> suffixes = {".svs", ".tif", ".tiff", ".btf"};
  return std::ranges::any_of(suffixes, [path](std::string_view suffix) { return has_suffix(path, suffix); });
}

bool has_suffix(std::string_view path, std::string_view suffix) {
  if (path.size() < suffix.size()) return false;
  return std::ranges::equal(path.substr(path.size() - suffix.size()), suffix, [](char have, char want) {
    return (have >= 'A' && have <= 'Z' ? static_cast<char>(have - 'A' + 'a') : have) == want;
  });
}

FolderContents slides_in_folder(const std::string& folder) {
  Walk walk;
  walk.begin(folder);
  return walk.take();
}

}  // namespace slidestream
