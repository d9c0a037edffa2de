#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <system_error>
#include <unordered_map>

#include "config/folder.hpp"
#include "config/manifest.hpp"
#include "config/suggest.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

std::string read_stream(std::istream& in) {
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer), in.gcount() > 0) text.append(buffer, static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string read_manifest(const std::string& path) {
  std::error_code code;
  const auto status = fs::status(path, code);
  // A named pipe would wait for a writer.
  if (fs::exists(status) && !fs::is_regular_file(status)) throw ConfigError(path + ": not a regular file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(path + ": " + std::strerror(errno));
  std::string text = read_stream(in);
  if (in.bad()) throw ConfigError(path + ": " + std::strerror(errno));
  return text;
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
  void add_input(const std::string& input) {
    if (input == "-") {
      add_entries(list_entries(read_stream(std::cin)), "standard input", {});
    } else if (!has_slide_suffix(input) && !exists(input)) {
      throw ConfigError(input + ": " + std::make_error_code(std::errc::no_such_file_or_directory).message());
    } else if (is_folder(input) || !(has_suffix(input, ".list") || has_suffix(input, ".csv"))) {
      add_path(input);
    } else {
      const std::string text = read_manifest(input);
      add_entries(has_suffix(input, ".list") ? list_entries(text) : csv_entries(text, input), input,
                  fs::path(input).parent_path());
    }
  }

  ExpandedInputs take() { return std::move(inputs_); }

 private:
  /// Linux's PATH_MAX.
  static constexpr std::size_t longest_path = 4096;

  static bool exists(const std::string& path) {
    std::error_code code;
    // What can't be asked is for the opening to say.
    return path.empty() || fs::exists(fs::symlink_status(path, code)) || code.value() != ENOENT;
  }
  static bool is_folder(const std::string& path) {
    std::error_code code;
    return fs::is_directory(path, code);
  }

  void add_entries(const std::vector<ManifestLine>& entries, const std::string& origin, const fs::path& base) {
    if (entries.empty()) inputs_.warnings.push_back(origin + ": names no slide");
    for (const ManifestLine& entry : entries) {
      const std::string place = origin + ":" + std::to_string(entry.line);
      if (entry.path.empty()) throw ConfigError(place + ": the path is empty");
      // The system ends a path at a NUL: it would be another file's.
      if (entry.path.find('\0') != std::string::npos) throw ConfigError(place + ": a NUL byte; expected a text file");
      if (entry.path.size() > longest_path) {
        throw ConfigError(place + ": " + std::to_string(entry.path.size()) + " bytes; no path is as long");
      }
      add_path((base / entry.path).string());
    }
  }

  void add_path(const std::string& path) {
    if (path.empty()) throw ConfigError("a slide's path is empty");
    if (!is_folder(path)) return add_slide(path);
    FolderContents contents = slides_in_folder(path);
    for (std::string& warning : contents.warnings) inputs_.warnings.push_back(std::move(warning));
    if (contents.slides.empty()) inputs_.warnings.push_back(one_line(path) + ": a folder without slides");
    for (const std::string& slide : contents.slides) add_slide(slide);
  }

  void add_slide(const std::string& path) {
    std::string canonical = identity(path);
    const auto [first, is_new] = first_names_.try_emplace(canonical, path);
    if (is_new) {
      inputs_.slides.push_back(path);
      inputs_.canonical.push_back(std::move(canonical));
    } else {
      inputs_.warnings.push_back(path + ": named before" +
                                 (first->second == path ? std::string() : " as " + first->second) + ", counted once");
    }
  }

  ExpandedInputs inputs_;
  std::unordered_map<std::string, std::string> first_names_;  ///< by identity
};

}  // namespace

ExpandedInputs expand_inputs(const std::vector<std::string>& inputs) {
  Expander expander;
  for (const std::string& input : inputs) expander.add_input(input);
  return expander.take();
}

}  // namespace slidestream
