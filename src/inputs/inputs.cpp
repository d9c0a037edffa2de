#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "config/manifest.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"
#include "inputs/folder.hpp"
#include "inputs/inputs.hpp"
#include "slide/formats.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// What an address begins with, such as "https://"; empty: it is a path. What follows may hold a password.
std::string_view scheme_of(std::string_view path) {
  const std::size_t end = path.find("://");
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  };
  if (end == std::string_view::npos || end == 0 || !std::ranges::all_of(path.substr(0, end), is_part)) return {};
  return path.substr(0, end + 3);
}

/// The file behind a path, for telling whether two paths name the same slide: absolute and without links, also while
/// the file, folders above it or what a link leads to aren't there.
std::string identity(const std::string& path) {
  constexpr int most_links = 40;
  std::error_code code;
  const fs::path whole = fs::absolute(path, code);
  if (code) return fs::path(path).lexically_normal().string();
  fs::path found = whole.root_path();
  // What is left to be looked at; the next comes last.
  std::vector<fs::path> left;
  const auto push = [&left](const fs::path& parts) {
    const std::vector<fs::path> names(parts.begin(), parts.end());
    left.insert(left.end(), names.rbegin(), names.rend());
  };
  push(whole.relative_path());
  int links = 0;
  while (!left.empty()) {
    const fs::path name = std::move(left.back());
    left.pop_back();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      found = found.parent_path();
      continue;
    }
    const fs::path target = ++links <= most_links ? fs::read_symlink(found / name, code) : fs::path();
    if (target.empty() || code) {
      --links;
      found /= name;
    } else {
      if (target.is_absolute()) found = target.root_path();
      push(target.relative_path());
    }
  }
  return found.string();
}

class Expander {
 public:
  /// \param results  a folder of results; empty: there is none
  /// \param is_marked  tells a result by its content; may be empty
  explicit Expander(InputKind kind, const fs::path& results = {}, std::function<bool(const fs::path&)> is_marked = {})
      : kind_(kind), is_marked_(std::move(is_marked)) {
    std::error_code code;
    if (!results.empty()) results_ = fs::weakly_canonical(results, code);
  }

  void add_input(const std::string& input) {
    if (input == "-") {
      add_list(input, {});
    } else if (is_folder(input) || !(has_suffix(input, ".list") || has_suffix(input, ".csv"))) {
      add_path(input);
    } else {
      add_list(input, fs::path(input).parent_path());
    }
  }

  static bool exists(const std::string& path) {
    std::error_code code;
    // What can't be asked is for the opening to say.
    return path.empty() || fs::exists(fs::symlink_status(path, code)) || code.value() != ENOENT;
  }

  /// Whether it is there behind links, too.
  static bool leads_to_something(const std::string& path) {
    std::error_code code;
    return path.empty() || fs::exists(fs::status(path, code)) || code.value() != ENOENT;
  }

  /// \throws ConfigError for an address, without what may be secret in it
  static void check_scheme(const std::string& path, const std::string& place) {
    const std::string_view scheme = scheme_of(path);
    if (scheme.empty() || exists(path)) return;
    throw ConfigError(place + std::string(scheme) + "...: addresses aren't read; name a file of a file system");
  }

  ExpandedInputs take() {
    if (left_out_ > 0) {
      inputs_.warnings.push_back(results_.string() + ": " + std::to_string(left_out_) +
                                 (left_out_ == 1 ? " file" : " files") +
                                 " in its folders of results, maps and images, left out of the inputs");
    }
    if (passed_over_ > 0) {
      const bool is_one = passed_over_ == 1;
      inputs_.warnings.push_back(one_line(first_passed_over_) + ": a result of slidestream" +
                                 (is_one ? "" : ", as others in folders are") + "; " + std::to_string(passed_over_) +
                                 (is_one ? " file" : " files") + " passed over; naming " +
                                 (is_one ? "it uses it" : "them uses them"));
    }
    return std::move(inputs_);
  }

 private:
  /// Linux's PATH_MAX.
  static constexpr std::size_t longest_path = 4096;

  /// Which suffixes a folder without slides has, the most frequent first.
  std::string others_text(const FolderContents& contents) const {
    constexpr std::size_t most_named = 5;
    std::vector<std::pair<std::string, std::size_t>> others(contents.other_suffixes.begin(),
                                                            contents.other_suffixes.end());
    if (others.empty()) return {};
    std::ranges::stable_sort(others, std::ranges::greater{}, &std::pair<std::string, std::size_t>::second);
    std::string text;
    for (std::size_t i = 0; i < std::min(others.size(), most_named); ++i) {
      text += (text.empty() ? "" : ", ") + std::to_string(others[i].second) + " " +
              (others[i].first.empty() ? "without a suffix" : one_line(others[i].first));
    }
    if (others.size() > most_named) text += ", and others";
    return ": its files are " + text + "; " + name_of(kind_) + "s end in " + suffixes_text(kind_);
  }
  static bool is_folder(const std::string& path) {
    std::error_code code;
    return fs::is_directory(path, code);
  }

  void add_list(const std::string& input, const fs::path& base) {
    add_entries(entries_of(input, base), input == "-" ? "standard input" : input, base);
  }

  /// The text isn't in memory any more.
  std::vector<ManifestLine> entries_of(const std::string& input, const fs::path& base) {
    const std::string text = read_list(input);
    if (!has_suffix(input, ".csv")) return list_entries(text);
    const auto is_slide = [&base, this](const std::string& cell) {
      if (kind_ == InputKind::volume) return is_named_as(kind_, cell);
      // Neither a path nor something to ask the system about.
      if (cell.empty() || cell.size() > longest_path) return !cell.empty();
      const std::string path = (base / cell).string();
      return has_slide_suffix(path) || exists(path);
    };
    return csv_entries(text, input, is_slide, inputs_.warnings);
  }

  void add_entries(const std::vector<ManifestLine>& entries, const std::string& origin, const fs::path& base) {
    if (entries.empty()) inputs_.warnings.push_back(origin + ": names no " + name_of(kind_));
    for (const ManifestLine& entry : entries) {
      const std::string place = origin + ":" + std::to_string(entry.line);
      if (entry.path.empty()) throw ConfigError(place + ": the path is empty");
      if (entry.path.size() > longest_path) {
        throw ConfigError(place + ": " + std::to_string(entry.path.size()) + " bytes; no path is as long");
      }
      check_scheme(entry.path, place + ": ");
      const std::string path = (base / entry.path).string();
      mpp_ = kind_ == InputKind::slide ? entry.mpp : 0.0;
      place_ = place;
      add_path(path);
      mpp_ = 0.0;
    }
  }

  void add_path(const std::string& path) {
    if (path.empty()) throw ConfigError("a " + name_of(kind_) + "'s path is empty");
    if (!is_folder(path)) {
      // Any file of a slide of several names it.
      return add_slide(kind_ == InputKind::slide ? files_of_slide(path).front().string() : path);
    }
    FolderContents contents = slides_in_folder(path, {kind_, results_});
    for (std::string& warning : contents.warnings) inputs_.warnings.push_back(std::move(warning));
    if (contents.slides.empty())
      inputs_.warnings.push_back(one_line(path) + ": a folder without " + name_of(kind_) + "s" + others_text(contents));
    for (const std::string& slide : contents.slides) {
      if (is_result(slide)) {
        ++left_out_;
      } else if (is_marked_ && is_marked_(slide)) {
        if (passed_over_++ == 0) first_passed_over_ = slide;
      } else {
        add_slide(slide);
      }
    }
  }

  /// Whether it lies where this run's maps and images will, or those of an earlier one were moved to.
  bool is_result(const std::string& slide) const {
    if (results_.empty()) return false;
    const fs::path inside = fs::path(identity(slide)).lexically_relative(results_);
    auto part = inside.begin();
    const auto is_any = [&](std::initializer_list<const char*> names) {
      return part != inside.end() && std::ranges::find(names, part->string()) != names.end();
    };
    if (part != inside.end() && part->string().starts_with("earlier-") && !is_any({"earlier-failed"})) ++part;
    return is_any({"maps", "images", "earlier-failed"}) && ++part != inside.end();
  }

  void add_slide(const std::string& path) {
    std::string canonical = identity(path);
    const auto [first, is_new] = first_names_.try_emplace(file_key(path, canonical), path);
    if (is_new) {
      if (mpp_ > 0.0) inputs_.mpp.emplace(path, mpp_);
      inputs_.slides.push_back(path);
      inputs_.canonical.push_back(std::move(canonical));
    } else {
      check_same_mpp(first->second);
      inputs_.warnings.push_back(path + ": named before" +
                                 (first->second == path ? std::string() : " as " + first->second) + ", counted once");
    }
  }

  /// \throws ConfigError where this line gives another pixel size than an earlier one
  void check_same_mpp(const std::string& first) {
    if (mpp_ == 0.0) return;
    const auto [before, is_new] = inputs_.mpp.emplace(first, mpp_);
    if (is_new || before->second == mpp_) return;
    throw ConfigError(place_ + ": mpp is " + to_toml_number(mpp_) + " for " + one_line(first) + ", and was " +
                      to_toml_number(before->second) + " in an earlier line");
  }

  /// What two names of one file have in common: the path behind links, and of hard links the file's number.
  static std::string file_key(const std::string& path, const std::string& canonical) {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink < 2) return canonical;
    // No absolute path begins so.
    return "file " + std::to_string(status.st_dev) + " " + std::to_string(status.st_ino);
  }

  InputKind kind_;
  ExpandedInputs inputs_;
  fs::path results_;                                          ///< empty: none are known
  std::size_t left_out_ = 0;                                  ///< of what folders hold, as results
  std::function<bool(const fs::path&)> is_marked_;            ///< tells results by their content; may be empty
  std::size_t passed_over_ = 0;                               ///< of what folders hold, by that
  std::string first_passed_over_;                             ///< of these
  double mpp_ = 0.0;                                          ///< of the line that is being added; 0: it doesn't say
  std::string place_;                                         ///< of that line
  std::unordered_map<std::string, std::string> first_names_;  ///< by `file_key`
};

ExpandedInputs expand(const std::vector<std::string>& inputs, Expander expander) {
  for (const std::string& input : inputs) Expander::check_scheme(input, {});
  // One of several that isn't there is a slide that fails. Where nothing is there, the command line has a slip.
  const auto is_there = [](const std::string& input) { return input == "-" || Expander::leads_to_something(input); };
  if (!inputs.empty() && std::ranges::none_of(inputs, is_there)) {
    throw ConfigError(one_line(inputs.front()) + ": " +
                      std::make_error_code(std::errc::no_such_file_or_directory).message() +
                      (inputs.size() > 1 ? "; the other inputs aren't there either" : ""));
  }
  for (const std::string& input : inputs) expander.add_input(input);
  return expander.take();
}

}  // namespace

ExpandedInputs expand_inputs(const std::vector<std::string>& inputs) {
  return expand(inputs, Expander(InputKind::slide));
}

ExpandedInputs expand_inputs(const std::vector<std::string>& inputs, const fs::path& results, InputKind kind,
                             std::function<bool(const fs::path& file)> is_result) {
  return expand(inputs, Expander(kind, results, std::move(is_result)));
}

}  // namespace slidestream
