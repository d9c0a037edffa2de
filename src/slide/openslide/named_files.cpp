#include "slide/openslide/named_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/file.hpp"
#include "slide/formats.hpp"

namespace slidestream::openslide {

namespace {

namespace fs = std::filesystem;

/// Bytes of an index. OpenSlide itself takes 64 KiB of VMS and VMU, and 1 MiB of Slidedat.ini.
constexpr std::uint64_t most_index = std::uint64_t{1} << 20;

/// What stands there instead of a file, such as "a FIFO"; null: a file, a folder or nothing, of which none waits.
const char* what_waits_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return nullptr;
  return kind_of_file(status.st_mode);
}

std::string fault_of(const std::string& name, const char* kind) { return "names " + name + ", which is " + kind; }

std::string text_of(const fs::path& path) {
  const File file(path);
  std::string text(static_cast<std::size_t>(std::min(file.size(), most_index)), '\0');
  text.resize(file.read_some(0, std::as_writable_bytes(std::span(text))));
  return text;
}

/// As GLib reads values of a key file.
std::string unescaped(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      value += text[i];
      continue;
    }
    switch (text[++i]) {
      case 's':
        value += ' ';
        break;
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case 'r':
        value += '\r';
        break;
      default:
        value += text[i];
    }
  }
  return value;
}

/// Whether a key's value may be a file's name: ImageFile(1,0), MapFile, OptimisationFile, MacroImage; FILE_0,
/// INDEXFILE.
bool may_name_file(std::string_view key) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("file") != std::string::npos || lower.find("image") != std::string::npos;
}

/// Of a text of "key=value" lines, whose names are of files in `folder`.
std::string fault_of_index(std::string_view text, const fs::path& folder) {
  std::set<std::string> seen;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || !may_name_file(line.substr(0, equals))) continue;
    std::string_view value = line.substr(equals + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t\v\f\r"), value.size()));
    // Versions of GLib differ in what they leave at the end.
    for (const std::string_view spelt : {value, value.substr(0, value.find_last_not_of('\r') + 1), trimmed(value)}) {
      const std::string name = unescaped(spelt);
      if (name.empty() || !seen.insert(name).second) continue;
      // One that begins with a slash is below the folder, too.
      if (const char* kind = what_waits_at(folder.string() + "/" + name)) return fault_of(name, kind);
    }
  }
  return {};
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

bool is_dicom(const fs::path& path) {
  constexpr std::string_view mark = "DICM";
  std::string found(mark.size(), '\0');
  return File(path).read_some(128, std::as_writable_bytes(std::span(found))) == mark.size() && found == mark;
}

}  // namespace

std::string fault_of_named_files(const fs::path& path) {
  if (has_suffix(path.string(), ".mrxs")) {
    const fs::path folder = folder_of(path) / path.stem();
    const std::string index = (folder / "Slidedat.ini").string();
    const std::string name = path.stem().string() + "/Slidedat.ini";
    if (const char* kind = what_waits_at(index)) return fault_of(name, kind);
    std::error_code code;
    const std::uintmax_t bytes = fs::file_size(index, code);
    if (code) return {};
    if (bytes > most_index) return "names " + name + ", which has more than 1 MiB";
    return fault_of_index(text_of(index), folder);
  }
  // OpenSlide knows these by what is in them, whatever they are called.
  std::error_code code;
  const std::uintmax_t bytes = fs::file_size(path, code);
  if (code || bytes > most_index) return {};
  const std::string text = text_of(path);
  return text.find("Virtual Microscope Specimen]") == std::string::npos ? std::string()
                                                                        : fault_of_index(text, folder_of(path));
}

std::string fault_of_files_beside(const fs::path& path, const std::function<const char*()>& vendor) {
  const fs::path macro = fs::path(path).replace_extension(".Full");
  if (const char* kind = what_waits_at(macro.string())) {
    const char* name = vendor();
    if (name != nullptr && std::string_view(name) == "trestle") return fault_of(macro.filename().string(), kind);
  }
  if (!is_dicom(path)) return {};
  std::error_code code;
  for (fs::directory_iterator entries(folder_of(path), code); !code && entries != fs::directory_iterator();
       entries.increment(code)) {
    const fs::path& file = entries->path();
    if (const char* kind = what_waits_at(file.string())) {
      return "lies beside " + file.filename().string() + ", which is " + kind;
    }
  }
  return {};
}

}  // namespace slidestream::openslide
