#include "slide/openslide/kinds.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <slidestream/error.hpp>
#include <string_view>

#include "slide/formats.hpp"
#include "slide/open_budget.hpp"
#include "slide/openslide/focal_planes.hpp"
#include "slide/tiff/raw_directory.hpp"
#include "slide/tiff/tiff_container.hpp"

namespace slidestream::openslide {

namespace {

namespace fs = std::filesystem;

constexpr Kind ndpi = {"Hamamatsu NDPI", true, planes_of_ndpi};
constexpr Kind leica = {"Leica SCN", true, planes_of_leica};
constexpr Kind philips = {"Philips TIFF", true};
constexpr Kind ventana = {"Ventana BIF", true};
constexpr Kind trestle = {"Trestle TIFF", true};
constexpr Kind zeiss = {"Zeiss CZI", false};
constexpr Kind mirax = {"3DHISTECH MIRAX", false};
constexpr Kind vms = {"Hamamatsu VMS", false, planes_of_vms};
constexpr Kind vmu = {"Hamamatsu VMU", false, planes_of_vms};
constexpr Kind sakura = {"Sakura SVSLIDE", false};

constexpr std::uint16_t tag_description = 270;
constexpr std::uint16_t tag_software = 305;
constexpr std::uint16_t tag_xmp = 700;
constexpr std::uint16_t tag_ndpi = 65420;

/// Bytes of a text that are looked at: names of vendors stand at its beginning.
constexpr std::uint64_t most_text = std::uint64_t{1} << 16;
/// And of XMP, in which scanners write much before it.
constexpr std::uint64_t most_xmp = std::uint64_t{1} << 24;

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

/// Files above 4 GiB have 64-bit places in a classic TIFF, which no reader of TIFF finds.
bool is_large_ndpi(std::span<const std::byte> first, const File& file) {
  constexpr std::array<unsigned char, 4> start = {'I', 'I', '*', 0};
  constexpr std::size_t entry_bytes = 12;
  if (file.size() >> 32 == 0 || first.size() < 12 || std::memcmp(first.data(), start.data(), start.size()) != 0) {
    return false;
  }
  const auto number = [](std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
  };
  const std::uint64_t at = number(first.subspan(4, 8));
  if (!file.contains(at, 2)) return false;
  std::array<std::byte, 2> count;
  file.read(at, count);
  std::vector<std::byte> entries(entry_bytes * static_cast<std::size_t>(number(count)));
  if (!file.contains(at + 2, entries.size())) return false;
  file.read(at + 2, entries);
  for (std::size_t i = 0; i < entries.size(); i += entry_bytes) {
    if (number(std::span(entries).subspan(i, 2)) == tag_ndpi) return true;
  }
  return false;
}

const Kind* kind_of_tiff(std::span<const std::byte> first, const File& file) {
  if (is_large_ndpi(first, file)) return &ndpi;
  const OpenOptions options;
  OpenBudget budget(file.path(), file.size(), options);
  const RawTiff tiff(file, budget);
  const RawDirectory directory = tiff.directory(tiff.first());
  if (directory.find(tag_ndpi) != nullptr) return &ndpi;
  const std::string description = tiff.text(directory, tag_description, most_text);
  if (contains(description, "http://www.leica-microsystems.com/scn/2010/")) return &leica;
  const std::string software = tiff.text(directory, tag_software, most_text);
  // OpenSlide knows them by tiles, too: what was made of such a file in strips is plain TIFF.
  const bool has_tiles = directory.has_tiles();
  if (has_tiles && software.starts_with("Philips") && contains(description, "<DataObject")) return &philips;
  if (has_tiles && software.starts_with("MedScan") && !description.empty()) return &trestle;
  if (const RawEntry* entry = directory.find(tag_xmp)) {
    const auto xmp = tiff.bytes(*entry, most_xmp);
    if (xmp && contains({reinterpret_cast<const char*>(xmp->data()), xmp->size()}, "<iScan")) return &ventana;
  }
  return nullptr;
}

/// The folder of a MIRAX slide: named as the file, without the suffix.
fs::path folder_of_mirax(const fs::path& path) { return path.parent_path() / path.stem(); }

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

/// The files of a folder, by name.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator entries(folder, code); !code && entries != fs::directory_iterator();
       entries.increment(code)) {
    if (is_file(entries->path())) found.push_back(entries->path());
  }
  std::ranges::sort(found);
  return found;
}

/// The files beside it that a text of "key=value" lines names.
std::vector<fs::path> files_named_in(const fs::path& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  std::ifstream stream(path, std::ios::binary);
  std::string text(most_bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(most_bytes));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  std::vector<fs::path> found;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    line.remove_prefix(equals + 1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const fs::path name(line);
    // Only beside it.
    if (!name.empty() && name == name.filename() && is_file(path.parent_path() / name)) {
      found.push_back(path.parent_path() / name);
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase(found, path);
  return found;
}

}  // namespace

const Kind* kind_of(std::span<const std::byte> first, const File& file) {
  if (is_tiff(first, file)) {
    try {
      return kind_of_tiff(first, file);
    } catch (const StorageError&) {
      throw;
    } catch (const SlideError&) {
      return nullptr;  // Whoever reads TIFF says what is wrong.
    }
  }
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  const std::string path = file.path().string();
  if (text.starts_with("ZISRAWFILE")) return &zeiss;
  if (contains(text, "[Virtual Microscope Specimen]")) return &vms;
  if (contains(text, "[Uncompressed Virtual Microscope Specimen]")) return &vmu;
  if (text.starts_with("SQLite format 3") && has_suffix(path, ".svslide")) return &sakura;
  if (has_suffix(path, ".mrxs") && is_file(folder_of_mirax(file.path()) / "Slidedat.ini")) return &mirax;
  return nullptr;
}

std::vector<fs::path> files_of(const fs::path& path) {
  std::vector<fs::path> files = {path};
  std::vector<fs::path> further;
  const std::string name = path.string();
  if (has_suffix(name, ".mrxs")) further = files_in(folder_of_mirax(path));
  if (has_suffix(name, ".vms") || has_suffix(name, ".vmu")) further = files_named_in(path);
  files.insert(files.end(), further.begin(), further.end());
  return files;
}

bool is_data_folder(const fs::path& folder) {
  return is_file(folder / "Slidedat.ini") && std::ranges::any_of(std::array{".mrxs", ".MRXS"}, [&](const char* suffix) {
           return is_file(fs::path(folder.string() + suffix));
         });
}

}  // namespace slidestream::openslide
