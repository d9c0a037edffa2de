#include "sink/tensor_file.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/new_file.hpp"

namespace slidestream {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

/// CRC-32 of zip (polynomial 0xedb88320, reflected).
std::uint32_t crc32(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] >> 1 ^ ((made[i] & 1) != 0 ? 0xedb88320U : 0U);
    }
    return made;
  }();
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) crc = crc >> 8 ^ table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

/// The lowest `bytes` bytes of a number, the lowest first.
std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i & 0xff);
  return text;
}

/// A zip archive without compression. It holds the text between large entries, which the caller writes.
class Archive {
 public:
  /// \param content  of the entry; the caller writes it behind what `take` gives.
  void add(const std::string& name, std::span<const std::byte> content) {
    // PyTorch maps storages: each begins at a multiple of 64, behind an extra field that fills the gap.
    constexpr std::uint64_t header = 30, field = 4, alignment = 64;
    const std::uint64_t begin = written_ + text_.size();
    const std::uint64_t unfilled = begin + header + name.size() + field;
    const std::uint64_t fill = (alignment - unfilled % alignment) % alignment;
    const std::string numbers = little(0, 2) + little(0, 2) + little(0, 2) + little(first_day, 2) +
                                little(crc32(content), 4) + little(content.size(), 4) + little(content.size(), 4) +
                                little(name.size(), 2);
    text_ += "PK\x03\x04" + little(0, 2) + numbers + little(field + fill, 2) + name + "FB" + little(fill, 2) +
             std::string(static_cast<std::size_t>(fill), 'Z');
    directory_ += "PK\x01\x02" + little(0, 2) + little(0, 2) + numbers + little(0, 2) + little(0, 2) + little(0, 2) +
                  little(0, 2) + little(0, 4) + little(begin, 4) + name;
    ++entries_;
  }
  void add_text(const std::string& name, std::string_view content) {
    add(name, std::as_bytes(std::span(content)));
    text_ += content;
  }
  /// What stands in front of `bytes` more, which the caller writes.
  std::string take(std::uint64_t bytes) {
    written_ += text_.size() + bytes;
    return std::move(text_);
  }
  std::string end() {
    const std::uint64_t begin = written_ + text_.size();
    return text_ + directory_ + "PK\x05\x06" + little(0, 2) + little(0, 2) + little(entries_, 2) + little(entries_, 2) +
           little(directory_.size(), 4) + little(begin, 4) + little(0, 2);
  }

 private:
  static constexpr std::uint64_t first_day = 1 << 5 | 1;  ///< 1980-01-01: nothing says when

  std::string text_;
  std::string directory_;
  std::uint64_t written_ = 0;
  std::uint64_t entries_ = 0;
};

/// A whole number that isn't negative, in a pickle of protocol 2.
std::string pickled(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return number < std::int64_t{1} << 31 ? "J" + little(bits, 4) : "\x8a\x08" + little(bits, 8);
}
std::string pickled(std::string_view text) { return "X" + little(text.size(), 4) + std::string(text); }

/// torch._utils._rebuild_tensor_v2(storage, 0, (rows, columns), (columns, 1), False, OrderedDict())
std::string pickled_tensor(std::int64_t rows, std::int64_t columns) {
  const std::string storage = "(" + pickled("storage") + "ctorch\nFloatStorage\n" + pickled("0") + pickled("cpu") +
                              pickled(rows * columns) + "tQ";
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n(" +
         storage + pickled(std::int64_t{0}) + pickled(rows) + pickled(columns) + "\x86" + pickled(columns) +
         pickled(std::int64_t{1}) +
         "\x86\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

}  // namespace

void write_tensor(const std::filesystem::path& file, std::int64_t columns, std::span<const float> values) {
  constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 32) - (1 << 16);
  const auto bytes = std::as_bytes(values);
  if (bytes.size() > most_bytes) {
    throw OutputError(file.string() + ": its features have " + std::to_string(bytes.size()) +
                      " bytes, and a .pt file holds less than 4 GiB; set features.format to \"h5\"");
  }
  Archive archive;
  archive.add_text("archive/data.pkl", pickled_tensor(std::ssize(values) / columns, columns));
  archive.add_text("archive/byteorder", "little");
  archive.add("archive/data/0", bytes);
  const std::string head = archive.take(bytes.size());
  archive.add_text("archive/version", "3\n");
  const std::string tail = archive.end();
  write_new_file(file, {std::as_bytes(std::span(head)), bytes, std::as_bytes(std::span(tail))});
}

}  // namespace slidestream
