#include "colour/profile_head.hpp"

#include <algorithm>
#include <optional>

namespace slidestream {

namespace {

constexpr std::uint32_t signature(const char (&text)[5]) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[i]);
  return value;
}

/// Numbers of a profile, the highest byte first; behind its end they are 0.
class Head {
 public:
  explicit Head(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const noexcept { return bytes_.size(); }

  std::uint32_t number(std::uint64_t at, int width) const noexcept {
    std::uint32_t value = 0;
    for (std::uint64_t i = at; i < at + static_cast<std::uint64_t>(width); ++i) {
      value = value << 8 | (i < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[i]) : 0U);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Where the first tag of this name begins, among as many as Little CMS reads. ICC.1:2010, section 7.3.
std::optional<std::uint64_t> place_of(const Head& head, std::uint32_t name) noexcept {
  constexpr std::uint32_t most_tags = 100;
  const std::uint64_t tags = std::min(head.number(128, 4), most_tags);
  for (std::uint64_t i = 0; i < tags; ++i) {
    const std::uint64_t entry = 132 + 12 * i;
    const std::uint64_t at = head.number(entry + 4, 4), size = head.number(entry + 8, 4);
    if (head.number(entry, 4) == name && at != 0 && size != 0 && at + size <= head.size()) return at;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t table_numbers(std::span<const std::byte> profile) noexcept {
  const Head head(profile);
  auto tag = place_of(head, signature("A2B1"));
  if (!tag) tag = place_of(head, signature("A2B0"));
  if (!tag) return 0;
  const std::uint64_t channels = head.number(*tag + 8, 1);
  std::uint64_t numbers = head.number(*tag + 9, 1);
  std::uint64_t begin = 0;
  std::uint64_t width = 0;
  // Of mAB the sides stand in front of the table, one a channel; else there is one for all.
  bool has_sides = false;
  std::uint64_t sides = *tag + 10;
  const std::uint32_t type = head.number(*tag, 4);
  if (type == signature("mft1")) {
    begin = *tag + 48 + 256 * channels;
    width = 1;
  } else if (type == signature("mft2")) {
    begin = *tag + 52 + 2 * channels * head.number(*tag + 48, 2);
    width = 2;
  } else if (type == signature("mAB ") && head.number(*tag + 24, 4) != 0) {
    has_sides = true;
    sides = *tag + head.number(*tag + 24, 4);
    begin = sides + 20;
    width = head.number(sides + 16, 1);
  }
  // Little CMS has up to 15 channels, and mAB numbers of one or two bytes.
  if (channels > 15 || width < 1 || width > 2 || begin > head.size()) return 0;
  const std::uint64_t most = (head.size() - begin) / width;
  for (std::uint64_t c = 0; c < channels && numbers <= most; ++c) {
    numbers *= head.number(has_sides ? sides + c : sides, 1);
  }
  return numbers <= most ? numbers : 0;
}

std::uint64_t reading_bytes(std::span<const std::byte> profile) noexcept {
  constexpr std::uint64_t besides = std::uint64_t{1} << 20;
  const std::uint64_t numbers = table_numbers(profile);
  // Little CMS has them in 16 bits, up to twice, and once when they get 32 bits here.
  return numbers == 0 ? 0 : profile.size() + (2 + 4) * numbers + besides;
}

std::uint64_t most_library_bytes(std::span<const std::byte> profile) noexcept {
  constexpr std::uint64_t besides = std::uint64_t{8} << 20;
  return profile.size() + 4 * table_numbers(profile) + besides;
}

}  // namespace slidestream
