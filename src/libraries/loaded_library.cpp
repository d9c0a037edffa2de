#include "libraries/loaded_library.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <slidestream/error.hpp>
#include <string_view>

#include "config/suggest.hpp"
#include "runtime/child.hpp"

namespace slidestream::libraries {
namespace {

namespace fs = std::filesystem;

/// The library in a folder, or in the folder of it where the package has it; of several versions the last by name.
std::optional<fs::path> library_in(const LibrarySearch& search, const fs::path& folder) {
  const std::string_view begins = search.file;
  std::optional<fs::path> best;
  for (const fs::path& place : {folder, folder / search.folder}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      const std::string name = entry.path().filename().string();
      const std::string_view ends = std::string_view(name).substr(std::min(name.size(), begins.size()));
      const bool fits = name.starts_with(begins) && (ends.empty() || ends.front() == '.');
      if (fits && (!best || *best < entry.path())) best = entry.path();
    }
    if (best) break;
  }
  return best;
}

/// Bytes that a library's segments reach to in its file (elf(5)); 0: it isn't one that the loader would map.
std::uint64_t end_of_segments(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  Elf64_Ehdr header{};
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof header)) return 0;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return 0;
  std::uint64_t end = 0;
  stream.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!stream.read(reinterpret_cast<char*>(&segment), sizeof segment)) return 0;
    if (segment.p_type == PT_LOAD) end = std::max<std::uint64_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

/// Why a file mustn't be handed to the loader, which would wait for it, or map more than is there and be ended by a
/// signal when it looks at that. Empty: it may, or isn't there, which it says itself.
std::string why_not(const std::string& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (file.find('/') == std::string::npos || !fs::exists(status)) return {};
  if (!fs::is_regular_file(status)) return file + ": not a regular file";
  const std::uint64_t size = fs::file_size(file, error);
  const std::uint64_t wanted = end_of_segments(file);
  if (error || size >= wanted) return {};
  return file + ": it is cut off: " + std::to_string(size) + " bytes of at least " + std::to_string(wanted);
}

void* open_library(const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string loader_message() {
  const char* text = dlerror();
  return one_line(text == nullptr ? "unknown reason" : text);
}

/// What the user named: it or nothing.
LoadedLibrary load_named(const LibrarySearch& search, const std::string& named, const std::string& who) {
  std::error_code error;
  std::string file = named;
  if (fs::is_directory(named, error)) {
    const auto found = library_in(search, named);
    if (!found) throw ConfigError(who + ": " + named + " holds no " + search.file);
    file = found->string();
  }
  const std::string reason = why_not(file);
  void* library = reason.empty() ? open_library(file) : nullptr;
  if (library == nullptr) {
    throw ConfigError(who + ": " + search.product +
                      " can't be loaded: " + (reason.empty() ? loader_message() : reason));
  }
  return {file, library};
}

/// Asks the system's loader, or looks in `folders` in its place. Nothing where none is found.
std::optional<LoadedLibrary> load_of_system(const LibrarySearch& search,
                                            const std::optional<std::vector<std::string>>& folders) {
  for (const char* name : search.names) {
    if (!folders) {
      if (void* library = open_library(name)) return LoadedLibrary{name, library};
      continue;
    }
    for (const std::string& folder : *folders) {
      const std::string file = folder + "/" + name;
      if (!why_not(file).empty()) continue;
      if (void* library = open_library(file)) return LoadedLibrary{file, library};
    }
  }
  return std::nullopt;
}

constexpr auto most_for_python = std::chrono::seconds(60);  ///< on a busy machine, from a slow file system

/// The folder of Python's package, found without importing it; empty: there is none. Nothing: python3 didn't say.
std::optional<std::string> folder_of(const char* package) {
  // -I: the working directory and what PYTHONPATH names are anybody's; the user's own packages are the user's.
  const std::array<std::string, 5> command = {"python3", "-I", "-c",
                                              "import importlib.util as u, site, sys; "
                                              "sys.prefix == sys.base_prefix and "
                                              "sys.path.append(site.getusersitepackages()); "
                                              "s = u.find_spec(sys.argv[1]); "
                                              "print(s.submodule_search_locations[0] if s else '')",
                                              package};
  std::optional<std::string> folder = runtime::output_of(command, most_for_python);
  while (folder && folder->ends_with('\n')) folder->pop_back();
  return folder;
}

std::string names_text(const LibrarySearch& search) {
  std::string text;
  for (const char* name : search.names) text += (text.empty() ? "" : " or ") + std::string(name);
  return text;
}

}  // namespace

std::optional<std::vector<std::string>> folders_for_loader(const char* path) {
  if (path == nullptr || *path == '\0') return std::nullopt;
  std::vector<std::string> folders;
  bool is_relative = false;
  for (std::string_view rest = path;;) {
    const std::size_t end = rest.find_first_of(":;");
    const std::string_view element = rest.substr(0, end);
    if (element.starts_with('/')) {
      folders.emplace_back(element);
    } else if (!element.starts_with("$ORIGIN") && !element.starts_with("${ORIGIN}")) {
      is_relative = true;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (!is_relative) return std::nullopt;
  folders.insert(folders.end(),
                 {"/usr/local/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                  "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"});
  return folders;
}

LoadedLibrary find_library(const LibrarySearch& search, const std::string& named) {
  if (!named.empty()) return load_named(search, named, search.key);
  const char* from_environment = std::getenv(search.variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
  if (from_environment != nullptr && *from_environment != '\0') {
    return load_named(search, from_environment, search.variable);
  }
  const auto folders =
      folders_for_loader(std::getenv("LD_LIBRARY_PATH"));  // NOLINT(concurrency-mt-unsafe): nothing here sets any
  if (const auto library = load_of_system(search, folders)) return *library;
  const std::optional<std::string> package = folder_of(search.package);
  if (package && !package->empty()) {
    if (const auto file = library_in(search, *package)) {
      return load_named(search, file->string(), std::string("Python's package ") + search.package);
    }
  }
  throw ConfigError(
      std::string(search.product) + " isn't there: neither " + search.key + " nor " + search.variable +
      " names its library, the system has no " + names_text(search) + ", and python3 " +
      (package ? std::string("has")
               : "failed, or didn't say within " + std::to_string(most_for_python.count()) + " s that it has") +
      (package ? " no package " : " a package ") + search.package + " (" + search.hint + ")" +
      (folders ? "; LD_LIBRARY_PATH has an empty or relative element, so only its absolute folders and "
                 "the system's usual ones were searched"
               : ""));
}

}  // namespace slidestream::libraries
