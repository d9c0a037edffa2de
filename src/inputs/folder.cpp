#include "inputs/folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <slidestream/error.hpp>
#include <utility>

#include "slide/formats.hpp"

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

  /// Names in a folder that a format knows by content, whose slides are listed.
  std::set<std::string> list_by_content(const std::string& folder) {
    std::set<std::string> names;
    for (const SlideFormat& format : slide_formats()) {
      if (format.in_folder == nullptr) continue;
      try {
        const SlidesInFolder found = format.in_folder(folder);
        for (const std::string& slide : found.slides) contents_.slides.push_back((fs::path(folder) / slide).string());
        names.insert(found.files.begin(), found.files.end());
      } catch (const DescriptorError&) {
        throw;
      } catch (const SlideError&) {
        // What can't be listed is told of below.
      }
    }
    return names;
  }

  void list(const std::string& folder) {
    const std::set<std::string> listed = list_by_content(folder);
    std::error_code code;
    fs::directory_iterator entries(folder, code);
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
      const std::string name = entries->path().filename().string();
      if (name.starts_with('.')) continue;
      const std::string path = entries->path().string();
      std::error_code ignored;  // what can't be looked at is no folder, and fails as a slide if it is named like one
      if (!entries->is_directory(ignored)) {
        if (listed.contains(name)) continue;
        if (has_slide_suffix(name)) {
          contents_.slides.push_back(path);
        } else {
          note_other(entries->path());
        }
      } else if (!is_part_of_slide(path) && (!entries->is_symlink(ignored) || first_link_to(path))) {
        enter(path);
      }
    }
    if (code) give_up(folder, code);
  }

  /// The number of different suffixes is bounded, whatever a folder holds.
  void note_other(const fs::path& file) {
    constexpr std::size_t most_suffixes = 1000;
    std::string suffix = file.extension().string();
    std::ranges::transform(suffix, suffix.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    auto& others = contents_.other_suffixes;
    if (others.size() < most_suffixes || others.contains(suffix)) ++others[suffix];
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

FolderContents slides_in_folder(const std::string& folder) {
  Walk walk;
  walk.begin(folder);
  return walk.take();
}

}  // namespace slidestream
