#include "codec/jp2_file.hpp"

#include <cstdint>

namespace slidestream {
namespace {

/// A big-endian number; none where it isn't all there.
std::optional<std::uint64_t> number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t length) noexcept {
  if (at > bytes.size() || length > bytes.size() - at) return std::nullopt;
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.subspan(at, length)) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

constexpr std::uint64_t box(const char (&name)[5]) noexcept {
  std::uint64_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<unsigned char>(name[i]);
  return type;
}

/// Calls `visit(type, contents)` for the boxes of a file, or of another box, until it gives false. False as well where
/// one is cut.
template <class Visit>
bool for_each_box(std::span<const std::byte> bytes, const Visit& visit) noexcept {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t left = bytes.size() - at;
    const auto type = number_at(bytes, at + 4, 4);
    auto length = number_at(bytes, at, 4);
    std::uint64_t header = 8;
    if (length == 1U) {
      length = number_at(bytes, at + 8, 8);
      header = 16;
    } else if (length == 0U) {
      length = left;
    }
    if (!type || !length || *length < header || *length > left) return false;
    if (!visit(*type, bytes.subspan(at + header, *length - header))) return false;
    at += *length;
  }
  return true;
}

bool read_channels(std::span<const std::byte> definitions, Jp2File& file) noexcept {
  const auto count = number_at(definitions, 0, 2);
  if (!count) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto channel = number_at(definitions, 2 + 6 * i, 2);
    const auto type = number_at(definitions, 4 + 6 * i, 2);
    const auto colour = number_at(definitions, 6 + 6 * i, 2);
    if (!channel || !type || !colour) return false;
    if (*type == 0 && *colour >= 1 && *colour <= 3 && *channel != *colour - 1) file.reorders_channels = true;
  }
  return true;
}

/// ISO/IEC 15444-1, I.5.3.3, and 15444-2, M.11.7.3. That colours are sRGB says nothing: encoders write it of any three
/// components.
bool read_colours(std::span<const std::byte> colours, Jp2File& file) noexcept {
  constexpr std::uint64_t enumerated = 1, cmyk = 12, ycck = 13, lab = 14, srgb = 16, grey = 17, sycc = 18;
  const auto method = number_at(colours, 0, 1);
  if (!method || *method != enumerated) return method.has_value();
  const auto kind = number_at(colours, 3, 4);
  if (!kind) return false;
  const char* const name = kind == cmyk ? "CMYK" : kind == ycck ? "YCCK" : kind == lab ? "CIELab" : nullptr;
  if (file.unsupported == nullptr) file.unsupported = name;
  file.says_grey = file.says_grey || kind == grey;
  file.says_ycbcr = file.says_ycbcr || kind == sycc;
  file.says_others = file.says_others || (kind != grey && kind != srgb);
  return true;
}

}  // namespace

bool is_jp2_file(std::span<const std::byte> bytes) noexcept {
  return number_at(bytes, 0, 4) == 12U && number_at(bytes, 4, 4) == box("jP  ") &&
         number_at(bytes, 8, 4) == 0x0D0A870AU;
}

std::optional<Jp2File> read_jp2_file(std::span<const std::byte> bytes) noexcept {
  Jp2File file;
  const auto read_header = [&file](std::uint64_t type, std::span<const std::byte> contents) {
    file.has_palette = file.has_palette || type == box("pclr");
    file.describes_channels = file.describes_channels || type == box("cmap") || type == box("cdef");
    if (type == box("cdef")) return read_channels(contents, file);
    return type != box("colr") || read_colours(contents, file);
  };
  bool is_header_sound = true;
  const bool are_whole = for_each_box(bytes, [&](std::uint64_t type, std::span<const std::byte> contents) {
    if (type == box("jp2c") && file.codestream.empty()) file.codestream = contents;
    if (type == box("jp2h")) is_header_sound = for_each_box(contents, read_header);
    return is_header_sound;
  });
  // Bytes that are no box may follow the codestream, such as the one that makes a DICOM fragment even.
  const bool is_sound = is_header_sound && (are_whole || !file.codestream.empty());
  return is_sound ? std::optional(file) : std::nullopt;
}

}  // namespace slidestream
