#include "slide/level_coding.hpp"

#include <slidestream/error.hpp>

#include "slide/slide_impl.hpp"

namespace slidestream {

namespace {

constexpr std::size_t item_header = 8;

std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t at) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

bool begins_item(std::span<const std::byte> range) noexcept {
  constexpr std::uint32_t item_tag = 0xE000FFFE;  // as its four bytes read
  return range.size() >= item_header && little_endian(range, 0) == item_tag;
}

/// The first item's value; `rest` becomes what is behind the item.
std::span<const std::byte> take_item(std::span<const std::byte>& rest) {
  if (!begins_item(rest)) throw TileError("no item begins where the offset table says");
  const std::uint32_t length = little_endian(rest, 4);
  if (length > rest.size() - item_header) {
    throw TileError("its item of " + std::to_string(length) + " bytes is longer than the offset table says");
  }
  const std::span<const std::byte> value = rest.subspan(item_header, length);
  rest = rest.subspan(item_header + length);
  return value;
}

}  // namespace

const LevelCoding& coding_of(const Slide& slide, std::size_t level) { return impl_of(slide).codings.at(level); }

std::shared_ptr<const ColourConversion> conversion_of(const Slide& slide) noexcept { return impl_of(slide).conversion; }

const SlideFiles& files_of(const Slide& slide) noexcept { return impl_of(slide).files; }

std::span<const std::byte> coded_piece(const LevelCoding& coding, std::span<const std::byte> range) noexcept {
  return coded_front(coding, range, range.size());
}

std::span<const std::byte> coded_front(const LevelCoding& coding, std::span<const std::byte> front,
                                       std::size_t length) noexcept {
  if (!coding.in_items) return front;
  const bool is_one = begins_item(front) && little_endian(front, 4) == length - item_header;
  return is_one ? front.subspan(item_header) : std::span<const std::byte>();
}

std::span<const std::byte> coded_bytes(const LevelCoding& coding, std::span<const std::byte> range,
                                       std::vector<std::byte>& joined) {
  if (const std::span<const std::byte> piece = coded_piece(coding, range); !piece.empty()) return piece;
  joined.clear();
  while (!range.empty()) {
    const std::span<const std::byte> piece = take_item(range);
    joined.insert(joined.end(), piece.begin(), piece.end());
  }
  return joined;
}

}  // namespace slidestream
