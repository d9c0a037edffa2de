#include "inputs/folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>

#include "slide/formats.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

using FileId = std::pair<dev_t, ino_t>;

/// Whether a folder has the ledger of a run: SQLite's file with this program's number. Until a write-ahead log is
/// folded in, the number is in the log.
bool holds_ledger(const fs::path& folder) {
  constexpr std::string_view magic = "SQLite format 3";
  constexpr std::string_view application = "SlSt";
  constexpr std::size_t application_at = 68;
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!fs::is_regular_file(folder / "run.sqlite", code)) return false;
  std::array<char, 100> head{};
  std::ifstream in(folder / "run.sqlite", std::ios::binary);
  if (!in.read(head.data(), head.size())) return false;
  const std::string_view text(head.data(), head.size());
  if (!text.starts_with(magic)) return false;
  return text.substr(application_at, application.size()) == application || fs::exists(folder / "run.sqlite-wal", code);
}

/// Files below a folder that are named like slides, or volumes.
std::size_t count_named_as(InputKind kind, const fs::path& folder) {
  std::size_t count = 0;
  std::error_code code;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied, code);
  for (; !code && entries != fs::recursive_directory_iterator(); entries.increment(code)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored) && is_named_as(kind, entries->path().filename().string())) ++count;
  }
  return count;
}

class Walk {
 public:
  explicit Walk(const FolderSearch& search) : kind_(search.kind) {
    struct ::stat status {};
    if (search.results.empty() || ::stat(search.results.c_str(), &status) != 0) return;
    own_results_ = FileId(status.st_dev, status.st_ino);
  }

  void begin(const std::string& folder) {
    // A link to a folder above this one would lead to all that lies beside it.
    std::error_code code;
    fs::path above = fs::canonical(folder, code);
    while (!code && above.has_relative_path()) {
      above = above.parent_path();
      struct ::stat status {};
      if (::stat(above.c_str(), &status) == 0) above_.emplace_back(status.st_dev, status.st_ino);
    }
    enter(folder, holds_ledger(folder));
    while (!open_.empty()) go_on();
  }

  FolderContents take() {
    auto& found = contents_.slides;
    if (kind_ == InputKind::slide) {
      std::ranges::sort(found);
    } else {
      std::ranges::sort(found, [](const std::string& a, const std::string& b) { return fs::path(a) < fs::path(b); });
    }
    return std::move(contents_);
  }

 private:
  /// A folder that the walk is in. Walking by calls would take stack per level.
  struct Open {
    std::string folder;
    bool is_results = false;  ///< it has a ledger, and is searched nevertheless
    std::size_t slides_before = 0;
    std::vector<fs::path> left;  ///< folders in it that are to be looked at, the next one last
  };

  void enter(const std::string& folder, bool is_results) {
    struct ::stat status {};
    if (::stat(folder.c_str(), &status) != 0) return give_up(folder, std::error_code(errno, std::generic_category()));
    const FileId id{status.st_dev, status.st_ino};
    if (std::ranges::find(above_, id) != above_.end()) return;
    above_.push_back(id);
    const std::size_t before = contents_.slides.size();
    open_.push_back({folder, is_results, before, list(folder)});
  }

  /// One step: into a folder of the innermost one, or out of that.
  void go_on() {
    Open& inner = open_.back();
    if (!inner.left.empty()) {
      const fs::path path = std::move(inner.left.back());
      inner.left.pop_back();
      std::error_code ignored;
      const bool has_ledger = holds_ledger(path);
      const bool is_product = inner.is_results && is_named_as_of_run(path);
      if (is_product || (has_ledger && !is_own_results(path)) || leads_into_results(path)) {
        pass_over(path.string());
      } else if (!is_part(path) && (!fs::is_symlink(path, ignored) || first_link_to(path.string()))) {
        enter(path.string(), has_ledger);
      }
      return;
    }
    const bool may_be_slide = kind_ == InputKind::slide && has_slide_suffix(inner.folder);
    if (may_be_slide && contents_.slides.size() == inner.slides_before) {
      contents_.slides.push_back(inner.folder);
    }
    above_.pop_back();
    open_.pop_back();
  }

  void give_up(const std::string& folder, const std::error_code& code) {
    contents_.warnings.push_back(folder + ": " + code.message() + "; its " + name_of(kind_) + "s are missing");
    contents_.slides.push_back(folder);
  }

  /// Names in a folder that a format knows by content, whose slides are listed.
  std::set<std::string> list_by_content(const std::string& folder) {
    std::set<std::string> names;
    if (kind_ != InputKind::slide) return names;
    for (const SlideFormat& format : slide_formats()) {
      if (format.in_folder == nullptr) continue;
      try {
        const SlidesInFolder found = format.in_folder(folder);
        for (const std::string& slide : found.slides) contents_.slides.push_back((fs::path(folder) / slide).string());
        names.insert(found.files.begin(), found.files.end());
        warn_of_no_slides(folder, found.no_slides);
      } catch (const DescriptorError&) {
        throw;
      } catch (const SlideError&) {
        // What can't be listed is told of below.
      }
    }
    return names;
  }

  /// One line: a folder may have thousands.
  void warn_of_no_slides(const std::string& folder, const std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::size_t more = names.size() - 1;
    contents_.warnings.push_back(
        (fs::path(folder) / names.front()).string() + ": is no image of a slide: it is passed over" +
        (more == 0 ? std::string()
                   : (more == 1 ? ", as is " : ", as are ") + std::to_string(more) + " more of its folder"));
  }

  /// Takes the files of a folder. \returns the folders in it: none is held open while those are looked at
  std::vector<fs::path> list(const std::string& folder) {
    const std::set<std::string> listed = list_by_content(folder);
    std::vector<fs::path> folders;
    std::error_code code;
    fs::directory_iterator entries(folder, code);
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
      const std::string name = entries->path().filename().string();
      if (name.starts_with('.')) continue;
      std::error_code ignored;  // what can't be looked at is no folder, and fails as a slide if it is named like one
      if (entries->is_directory(ignored)) {
        folders.push_back(entries->path());
      } else if (listed.contains(name)) {
        continue;
      } else if (is_named_as(kind_, name)) {
        contents_.slides.push_back(entries->path().string());
      } else {
        note_other(entries->path());
      }
    }
    if (code) give_up(folder, code);
    std::ranges::reverse(folders);
    return folders;
  }

  /// Whether it is this run's folder of results. Slides beside the results were its inputs before it had a ledger.
  bool is_own_results(const fs::path& folder) const {
    struct ::stat status {};
    return own_results_ && ::stat(folder.c_str(), &status) == 0 &&
           *own_results_ == FileId(status.st_dev, status.st_ino);
  }

  bool is_part(const fs::path& folder) const { return kind_ == InputKind::slide && is_part_of_slide(folder); }

  /// Images, or maps as TIFF, would be slides again.
  static bool is_named_as_of_run(const fs::path& folder) {
    const std::string name = folder.filename().string();
    return name == "images" || name == "maps" || name == "earlier-failed";
  }

  /// Whether a link leads to what lies among a run's results, which the walk to it would have passed over.
  static bool leads_into_results(const fs::path& link) {
    std::error_code code;
    if (!fs::is_symlink(link, code)) return false;
    fs::path at = fs::canonical(link, code);
    for (; !code && at.has_relative_path(); at = at.parent_path()) {
      if (is_named_as_of_run(at) && holds_ledger(at.parent_path())) return true;
    }
    return false;
  }

  void pass_over(const std::string& folder) {
    const std::size_t count = count_named_as(kind_, folder);
    if (count == 0) return;
    contents_.warnings.push_back(folder + ": has results of an earlier run; " + std::to_string(count) +
                                 (count == 1 ? " file" : " files") + " in it named like " + name_of(kind_) +
                                 "s passed over; naming them" +
                                 // Folders give no volumes with the mark of a result.
                                 (kind_ == InputKind::slide ? ", or their folder," : "") + " uses them");
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
  InputKind kind_;
  std::optional<FileId> own_results_;  ///< this run's folder of results, if it is there
  std::vector<Open> open_;             ///< the folders that we are in, the first one first
  std::vector<FileId> above_;          ///< the folders that we are in, and those above the first
  std::set<FileId> followed_;          ///< targets of links
};

}  // namespace

FolderContents slides_in_folder(const std::string& folder, const FolderSearch& search) {
  Walk walk(search);
  walk.begin(folder);
  return walk.take();
}

}  // namespace slidestream
