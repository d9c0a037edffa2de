#include "slide/tiff/raw_directory.hpp"

#include <tiff.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "config/csv.hpp"
#include "slide/formats.hpp"
#include "slide/tiff/utf16_text.hpp"

namespace slidestream {
namespace {

unsigned type_size(std::uint16_t type) {
  switch (type) {
    case 1:  // BYTE
    case 2:  // ASCII
    case 6:  // SBYTE
    case 7:  // UNDEFINED
      return 1;
    case 3:  // SHORT
    case 8:  // SSHORT
      return 2;
    case 4:   // LONG
    case 9:   // SLONG
    case 11:  // FLOAT
    case 13:  // IFD
      return 4;
    case 5:   // RATIONAL
    case 10:  // SRATIONAL
    case 12:  // DOUBLE
    case 16:  // LONG8
    case 17:  // SLONG8
    case 18:  // IFD8
      return 8;
    default:
      return 0;
  }
}

bool is_of_bytes(std::uint16_t type) { return type_size(type) == 1; }

bool is_unsigned(std::uint16_t type) {
  return type == 1 || type == 3 || type == 4 || type == 13 || type == 16 || type == 18;
}

bool is_signed(std::uint16_t type) { return type == 6 || type == 8 || type == 9 || type == 17; }

/// The integer with a sign that these lowest bytes of `bits` are.
std::int64_t with_sign(std::uint64_t bits, unsigned bytes) {
  const unsigned above = 64 - 8 * bytes;
  return static_cast<std::int64_t>(bits << above) >> above;
}

/// Why a tag isn't there exactly once with a single value; empty: it is, or it has no value at all.
std::string fault_of_count(const RawDirectory& directory, std::uint16_t tag) {
  const RawEntry* entry = directory.find(tag);
  if (entry == nullptr) return "is missing";
  if (directory.has_twice(tag)) return "stands twice";
  if (entry->count > 1) return "has " + std::to_string(entry->count) + " values, expected 1";
  return {};
}

/// What a tag has whose value is of another type or outside the file.
constexpr const char* no_value = "has no value that can be read";

}  // namespace

const RawEntry* RawDirectory::find(std::uint16_t tag) const noexcept {
  const auto found = std::find_if(entries.begin(), entries.end(), [tag](const RawEntry& e) { return e.tag == tag; });
  return found == entries.end() ? nullptr : &*found;
}

bool RawDirectory::has_twice(std::uint16_t tag) const noexcept {
  return std::count_if(entries.begin(), entries.end(), [tag](const RawEntry& e) { return e.tag == tag; }) > 1;
}

bool RawDirectory::has_tiles() const noexcept {
  return find(TIFFTAG_TILEWIDTH) != nullptr || find(TIFFTAG_TILELENGTH) != nullptr;
}

RawTiff::RawTiff(const File& file, OpenBudget& budget) : file_(file), budget_(budget) {
  std::array<std::byte, 16> header{};
  const std::size_t got = file.read_some(0, header);
  const char first = static_cast<char>(header[0]);
  const bool marked = got >= 8 && header[0] == header[1] && (first == 'I' || first == 'M');
  if (marked) {
    little_endian_ = first == 'I';
    const std::uint64_t magic = assemble(header.data() + 2, 2);
    if (magic == 42) {
      first_ = assemble(header.data() + 4, 4);
      return;
    }
    if (magic == 43 && got >= 16 && assemble(header.data() + 4, 2) == 8 && assemble(header.data() + 6, 2) == 0) {
      big_ = true;
      first_ = assemble(header.data() + 8, 8);
      return;
    }
  }
  const std::string name = file.path().string();
  if (file.size() > 0 && (has_suffix(name, ".nii") || has_suffix(name, ".nii.gz"))) {
    throw_slide_error(file.path(), "is no slide, but named as a volume (NIfTI), which `pipeline volume` takes");
  }
  throw_slide_error(file.path(), file.size() == 0 ? "is empty, expected a TIFF or BigTIFF file"
                                                  : "has no TIFF header, expected a TIFF or BigTIFF file");
}

std::uint64_t RawTiff::assemble(const std::byte* from, unsigned bytes) const noexcept {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const unsigned place = little_endian_ ? i : bytes - 1 - i;
    value |= std::to_integer<std::uint64_t>(from[i]) << (8 * place);
  }
  return value;
}

std::uint64_t RawTiff::number_at(std::uint64_t offset, unsigned bytes) const {
  std::array<std::byte, 8> buffer{};
  file_.read(offset, std::span(buffer).first(bytes));
  return assemble(buffer.data(), bytes);
}

RawDirectory RawTiff::directory(std::uint64_t offset) const {
  const unsigned count_bytes = big_ ? 8 : 2;
  const unsigned entry_bytes = big_ ? 20 : 12;
  const unsigned word = big_ ? 8 : 4;
  const std::string where = "directory at byte " + std::to_string(offset);
  if (offset == 0 || !file_.contains(offset, count_bytes)) {
    throw_slide_error(file_.path(), where + " lies outside the file of " + std::to_string(file_.size()) + " bytes");
  }
  const std::uint64_t count = number_at(offset, count_bytes);
  if (count == 0 || count > OpenBudget::most_entries_of_directory) {
    throw_slide_error(file_.path(), where + " has " + std::to_string(count) + " entries, supported are 1 to " +
                                        std::to_string(OpenBudget::most_entries_of_directory));
  }
  budget_.take_directory(count);
  const std::uint64_t entries_at = offset + count_bytes;
  if (!file_.contains(entries_at, count * entry_bytes + word)) {
    throw_slide_error(file_.path(), where + " of " + std::to_string(count) + " entries is cut by the end of the file");
  }
  std::vector<std::byte> bytes(count * entry_bytes + word);
  budget_.take_bytes(bytes.size());
  file_.read(entries_at, bytes);

  RawDirectory result;
  result.offset = offset;
  result.entries.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::byte* at = bytes.data() + i * entry_bytes;
    RawEntry entry;
    entry.tag = static_cast<std::uint16_t>(assemble(at, 2));
    entry.type = static_cast<std::uint16_t>(assemble(at + 2, 2));
    entry.count = assemble(at + 4, word);
    const unsigned size = type_size(entry.type);
    const bool inside = size == 0 || entry.count <= word / size;
    entry.value_at = inside ? entries_at + i * entry_bytes + 4 + word : assemble(at + 4 + word, word);
    result.entries.push_back(entry);
  }
  result.next = assemble(bytes.data() + count * entry_bytes, word);
  return result;
}

std::vector<RawDirectory> RawTiff::main_chain() const {
  std::vector<RawDirectory> chain;
  std::unordered_set<std::uint64_t> seen;
  for (std::uint64_t offset = first_; offset != 0 || chain.empty();) {
    if (!seen.insert(offset).second) {
      throw_slide_error(file_.path(), "directories form a loop: the one at byte " + std::to_string(offset) +
                                          " comes again after directory " + std::to_string(chain.size() - 1));
    }
    chain.push_back(directory(offset));
    offset = chain.back().next;
  }
  return chain;
}

std::vector<RawDirectory> RawTiff::chain_behind(const RawDirectory& first, std::unordered_set<std::uint64_t>& seen,
                                                bool& is_whole) const {
  std::vector<RawDirectory> chain;
  try {
    for (std::uint64_t offset = first.next; offset != 0 && seen.insert(offset).second; offset = chain.back().next) {
      chain.push_back(directory(offset));
    }
  } catch (const StoppedError&) {
    throw;
  } catch (const StorageError&) {
    throw;
  } catch (const SlideError&) {
    is_whole = false;
  }
  return chain;
}

std::optional<std::uint64_t> RawTiff::number(const RawDirectory& directory, std::uint16_t tag) const {
  const RawEntry* entry = directory.find(tag);
  if (entry == nullptr || entry->count == 0 || !is_unsigned(entry->type)) return std::nullopt;
  const unsigned size = type_size(entry->type);
  if (!file_.contains(entry->value_at, size)) return std::nullopt;
  return number_at(entry->value_at, size);
}

std::optional<std::uint64_t> RawTiff::only_number(const RawDirectory& directory, std::uint16_t tag,
                                                  std::string& fault) const {
  std::string of_count = fault_of_count(directory, tag);
  const std::optional<std::uint64_t> value = of_count.empty() ? number(directory, tag) : std::nullopt;
  if (!value) fault = of_count.empty() ? no_value : std::move(of_count);
  return value;
}

std::vector<std::uint64_t> RawTiff::values(const RawEntry& entry, const std::string& name) const {
  std::vector<std::uint64_t> result;
  for_each_value(entry, name, [&result](std::uint64_t value) { result.push_back(value); });
  return result;
}

void RawTiff::for_each_value(const RawEntry& entry, const std::string& name,
                             const std::function<void(std::uint64_t)>& take) const {
  const unsigned size = type_size(entry.type);
  if (!is_unsigned(entry.type)) {
    throw_slide_error(file_.path(), name + " has type " + std::to_string(entry.type) +
                                        ", supported are BYTE, SHORT, LONG, LONG8, IFD and IFD8");
  }
  if (entry.count > file_.size() / size || !file_.contains(entry.value_at, entry.count * size)) {
    throw_slide_error(file_.path(), name + ": " + std::to_string(entry.count) + " values at byte " +
                                        std::to_string(entry.value_at) + " lie outside the file of " +
                                        std::to_string(file_.size()) + " bytes");
  }
  std::vector<std::byte> chunk;
  constexpr std::uint64_t chunk_values = 65536;
  for (std::uint64_t done = 0; done < entry.count; done += chunk_values) {
    const std::uint64_t now = std::min(chunk_values, entry.count - done);
    chunk.resize(now * size);
    budget_.take_bytes(chunk.size());
    file_.read(entry.value_at + done * size, chunk);
    for (std::uint64_t i = 0; i < now; ++i) take(assemble(chunk.data() + i * size, size));
  }
}

std::optional<std::vector<std::byte>> RawTiff::bytes(const RawEntry& entry, std::uint64_t most) const {
  const std::uint64_t count = std::min(entry.count, most);
  if (!is_of_bytes(entry.type) || !file_.contains(entry.value_at, count)) return std::nullopt;
  budget_.take_bytes(count);
  std::vector<std::byte> result(count);
  file_.read(entry.value_at, result);
  return result;
}

std::string RawTiff::text(const RawDirectory& directory, std::uint16_t tag, std::uint64_t most) const {
  const RawEntry* entry = directory.find(tag);
  const auto found = entry == nullptr ? std::nullopt : bytes(*entry, most);
  if (!found) return {};
  if (std::optional<std::string> decoded = text_of_utf16(*found)) return *std::move(decoded);
  const auto size = static_cast<std::size_t>(std::find(found->begin(), found->end(), std::byte{}) - found->begin());
  return std::string(without_bom({reinterpret_cast<const char*>(found->data()), size}));
}

std::optional<float> RawTiff::real(const RawDirectory& directory, std::uint16_t tag) const {
  const RawEntry* entry = directory.find(tag);
  if (entry == nullptr || entry->count == 0) return std::nullopt;
  const unsigned size = type_size(entry->type);
  if (!file_.contains(entry->value_at, size)) return std::nullopt;
  switch (entry->type) {
    case TIFF_RATIONAL: {
      const auto above = static_cast<double>(number_at(entry->value_at, 4));
      const std::uint64_t below = number_at(entry->value_at + 4, 4);
      return below == 0 ? 0.0F : static_cast<float>(above / static_cast<double>(below));
    }
    case TIFF_SRATIONAL: {
      const auto above = static_cast<double>(with_sign(number_at(entry->value_at, 4), 4));
      const std::int64_t below = with_sign(number_at(entry->value_at + 4, 4), 4);
      return below == 0 ? 0.0F : static_cast<float>(above / static_cast<double>(below));
    }
    case TIFF_FLOAT:
      return std::bit_cast<float>(static_cast<std::uint32_t>(number_at(entry->value_at, 4)));
    case TIFF_DOUBLE: {
      const auto value = std::bit_cast<double>(number_at(entry->value_at, 8));
      if (!(std::abs(value) <= std::numeric_limits<float>::max())) return std::nullopt;
      return static_cast<float>(value);
    }
    default:
      if (is_signed(entry->type)) return static_cast<float>(with_sign(number_at(entry->value_at, size), size));
      if (!is_unsigned(entry->type)) return std::nullopt;
      return static_cast<float>(number_at(entry->value_at, size));
  }
}

std::optional<float> RawTiff::only_real(const RawDirectory& directory, std::uint16_t tag, std::string& fault) const {
  std::string of_count = fault_of_count(directory, tag);
  const std::optional<float> value = of_count.empty() ? real(directory, tag) : std::nullopt;
  if (!value) fault = of_count.empty() ? no_value : std::move(of_count);
  return value;
}

}  // namespace slidestream
