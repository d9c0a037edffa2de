#include "sink/file_marks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <system_error>

namespace slidestream {

namespace {

/// Reads no more than it needs: a file may have any content.
class TiffDescription {
 public:
  explicit TiffDescription(const std::filesystem::path& file) : in_(file, std::ios::binary) {}

  std::string text() {
    const std::string head = bytes_at(0, 16);
    if (head.size() < 16) return {};
    little_ = head.starts_with("II");
    if (!little_ && !head.starts_with("MM")) return {};
    const std::uint64_t kind = number(head, 2, 2);
    if (kind != 42 && kind != 43) return {};
    big_ = kind == 43;
    return big_ ? description(number(head, 8, 8)) : description(number(head, 4, 4));
  }

 private:
  static constexpr std::uint64_t description_tag = 270;
  static constexpr std::uint64_t most_entries = 4096;
  static constexpr std::uint64_t most_text = std::uint64_t{1} << 20;

  std::string bytes_at(std::uint64_t offset, std::uint64_t count) {
    std::string bytes(count, '\0');
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(bytes.data(), static_cast<std::streamsize>(count));
    if (!in_) bytes.clear();
    return bytes;
  }

  std::uint64_t number(const std::string& bytes, std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = at + (little_ ? size - 1 - i : i);
      value = value << 8 | static_cast<unsigned char>(bytes[place]);
    }
    return value;
  }

  std::string description(std::uint64_t directory) {
    const std::size_t count_size = big_ ? 8 : 2;
    const std::size_t entry_size = big_ ? 20 : 12;
    const std::size_t field = big_ ? 8 : 4;
    const std::string count = bytes_at(directory, count_size);
    if (count.empty()) return {};
    const std::uint64_t entries = number(count, 0, count_size);
    if (entries > most_entries) return {};
    const std::string table = bytes_at(directory + count_size, entries * entry_size);
    for (std::size_t at = 0; at + entry_size <= table.size(); at += entry_size) {
      if (number(table, at, 2) != description_tag) continue;
      const std::uint64_t length = std::min(number(table, at + 4, field), most_text);
      const std::size_t value = at + 4 + field;
      return length <= field ? table.substr(value, length) : bytes_at(number(table, value, field), length);
    }
    return {};
  }

  std::ifstream in_;
  bool little_ = true;
  bool big_ = false;
};

}  // namespace

std::string tiff_description(const std::filesystem::path& file) { return TiffDescription(file).text(); }

std::string first_bytes_of(const std::filesystem::path& file, std::size_t most) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!std::filesystem::is_regular_file(file, code)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return bytes;
}

bool has_mark(const std::filesystem::path& file, std::string_view mark, std::size_t most) {
  return first_bytes_of(file, most).find(mark) != std::string::npos;
}

bool is_empty_file(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::is_regular_file(path, code) && std::filesystem::file_size(path, code) == 0;
}

}  // namespace slidestream
