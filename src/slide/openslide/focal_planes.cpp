#include "slide/openslide/focal_planes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "config/positive_number.hpp"
#include "slide/open_budget.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream::openslide {

namespace {

constexpr std::uint16_t tag_scn_description = 270;
constexpr std::uint16_t tag_source_lens = 65421;
constexpr std::uint16_t tag_z_offset = 65424;

constexpr std::uint64_t type_signed_long = 9;
constexpr std::uint64_t type_float = 11;

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

struct NdpiDirectory {
  float lens = 0.0F;           ///< its magnification; negative: the macro image and the map
  std::uint32_t z_offset = 0;  ///< as its bytes are
  std::uint64_t next = 0;
};

/// None where the file hasn't got its bytes.
std::optional<NdpiDirectory> ndpi_directory(const File& file, std::uint64_t at) {
  constexpr std::size_t entry_bytes = 12;
  constexpr std::size_t place_bytes = 8;
  std::array<std::byte, 2> count_bytes;
  if (!file.contains(at, count_bytes.size())) return std::nullopt;
  file.read(at, count_bytes);
  const std::uint64_t count = little_endian(count_bytes);
  if (count == 0 || count > OpenBudget::most_entries_of_directory) return std::nullopt;
  std::vector<std::byte> bytes(count * entry_bytes + place_bytes);
  if (!file.contains(at + count_bytes.size(), bytes.size())) return std::nullopt;
  file.read(at + count_bytes.size(), bytes);
  NdpiDirectory directory;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> entry = std::span(bytes).subspan(i * entry_bytes, entry_bytes);
    const std::uint64_t tag = little_endian(entry.first(2));
    const std::uint64_t type = little_endian(entry.subspan(2, 2));
    const auto value = static_cast<std::uint32_t>(little_endian(entry.subspan(8, 4)));
    if (tag == tag_source_lens && type == type_float) directory.lens = std::bit_cast<float>(value);
    if (tag == tag_z_offset && type == type_signed_long) directory.z_offset = value;
  }
  directory.next = little_endian(std::span(bytes).last(place_bytes));
  return directory;
}

/// A whole number; 0 for another text.
std::size_t count_in(std::string_view text) {
  std::size_t count = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), count);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() ? count : 0;
}

}  // namespace

std::size_t planes_of_ndpi(const File& file) {
  // A classic TIFF, but the places of directories have 8 bytes.
  std::array<std::byte, 12> header;
  if (file.read_some(0, header) != header.size() || header[0] != std::byte{'I'}) return 0;
  std::unordered_set<std::uint64_t> seen;
  std::set<std::uint32_t> offsets;
  for (std::uint64_t at = little_endian(std::span(header).last(8)); at != 0;) {
    if (!seen.insert(at).second || seen.size() > OpenBudget::most_directories) return 0;
    const std::optional<NdpiDirectory> directory = ndpi_directory(file, at);
    if (!directory) return 0;
    if (directory->lens > 0.0F) offsets.insert(directory->z_offset);
    at = directory->next;
  }
  return offsets.size();
}

std::size_t planes_of_leica(const File& file) {
  std::string text;
  try {
    const OpenOptions options;
    OpenBudget budget(file.path(), file.size(), options);
    const RawTiff tiff(file, budget);
    text = tiff.text(tiff.directory(tiff.first()), tag_scn_description, OpenBudget::most_description);
  } catch (const StorageError&) {
    throw;
  } catch (const SlideError&) {
    return 0;
  }
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size())) return 0;
  std::set<std::string> planes;
  for (const pugi::xml_node& image : document.document_element().child("collection").children("image")) {
    for (const pugi::xml_node& dimension : image.child("pixels").children("dimension")) {
      planes.insert(dimension.attribute("z").as_string("0"));
    }
  }
  return planes.size();
}

std::size_t planes_of_vms(const File& file) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  std::vector<std::byte> bytes(most_bytes);
  const std::size_t read = file.read_some(0, bytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), read);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line.substr(0, equals)) != "NoLayers") continue;
    return count_in(trimmed(line.substr(equals + 1)));
  }
  return 0;
}

std::size_t planes_by_properties(const std::function<std::string(const std::string&)>& property) {
  constexpr std::size_t most = 4096;  // of hierarchies, and of values
  const std::size_t layers = count_in(property("ventana.Z-layers"));
  if (layers > 0) return layers;
  const std::string hierarchical = "mirax.HIERARCHICAL.HIER_";
  const std::size_t hierarchies = std::min(most, count_in(property(hierarchical + "COUNT")));
  for (std::size_t i = 0; i < hierarchies; ++i) {
    const std::string hierarchy = hierarchical + std::to_string(i);
    if (property(hierarchy + "_NAME") != "Microscope focus level") continue;
    const std::size_t values = std::min(most, count_in(property(hierarchy + "_COUNT")));
    std::size_t planes = 0;
    for (std::size_t value = 0; value < values; ++value) {
      if (property(hierarchy + "_VAL_" + std::to_string(value)).starts_with("ZStackLevel")) ++planes;
    }
    return planes;
  }
  return 0;
}

}  // namespace slidestream::openslide
