#include "slide/tiff/tiff_container.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "slide/icc_profile.hpp"

namespace slidestream {

bool is_tiff(std::span<const std::byte> first, const File&) {
  using Start = std::array<unsigned char, 4>;
  constexpr std::array<Start, 4> starts = {Start{'I', 'I', '*', 0}, Start{'M', 'M', 0, '*'}, Start{'I', 'I', '+', 0},
                                           Start{'M', 'M', 0, '+'}};
  return first.size() >= 4 && std::ranges::any_of(starts, [&first](const Start& start) {
           return std::memcmp(first.data(), start.data(), start.size()) == 0;
         });
}

IccProfile icc_profile_of(const File& file, const RawEntry& entry) {
  constexpr std::array<std::uint16_t, 2> byte_types = {1, 7};  // BYTE, UNDEFINED
  if (entry.count == 0) return {};
  if (entry.type != byte_types[0] && entry.type != byte_types[1]) {
    IccProfile profile;
    profile.fault = "the ICC profile has type " + std::to_string(entry.type) + ", supported are BYTE and UNDEFINED";
    return profile;
  }
  return read_icc_profile(file, entry.value_at, entry.count);
}

IccProfile TiffContainer::icc_profile(std::size_t level) const {
  const RawEntry& own = levels_.at(level).icc;
  return icc_profile_of(file_, own.count == 0 ? levels_.front().icc : own);
}

std::uint64_t TiffContainer::kept_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const LevelPlace& level : levels_) bytes += level.planes.kept_bytes();
  return bytes;
}

void TiffContainer::make_associated(std::size_t level) {
  associated_.push_back(levels_.at(level).directory);
  levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(level));
}

}  // namespace slidestream
