#include <array>
#include <cstring>
#include <string>

#include "slide/slide_impl.hpp"

namespace slidestream {

namespace {

// The header of a profile: ICC.1:2010, section 7.2.
constexpr std::size_t header_bytes = 128;
constexpr std::size_t space_at = 16;
constexpr std::size_t signature_at = 36;

constexpr std::uint64_t largest_profile = std::uint64_t{1} << 24;
constexpr std::array<std::uint16_t, 2> byte_types = {1, 7};  // BYTE, UNDEFINED

std::string text_at(const std::vector<std::byte>& bytes, std::size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

/// The whole profile's size, as it says itself.
std::uint64_t said_size(const std::vector<std::byte>& bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return size;
}

}  // namespace

IccProfile Slide::icc_profile(std::size_t level) const {
  RawEntry entry = impl_->details.at(level).icc;
  if (entry.count == 0) entry = impl_->details.front().icc;
  IccProfile profile;
  if (entry.count == 0) return profile;
  const std::string size = std::to_string(entry.count) + " bytes";
  if (entry.type != byte_types[0] && entry.type != byte_types[1]) {
    profile.fault = "the ICC profile has type " + std::to_string(entry.type) + ", supported are BYTE and UNDEFINED";
  } else if (entry.count < header_bytes || entry.count > largest_profile) {
    profile.fault = "the ICC profile has " + size + ", supported are 128 to 16777216";
  } else if (!impl_->file.contains(entry.value_at, entry.count)) {
    profile.fault =
        "the ICC profile of " + size + " at byte " + std::to_string(entry.value_at) + " lies outside the file";
  }
  if (!profile.fault.empty()) return profile;
  std::vector<std::byte> bytes(entry.count);
  impl_->file.read(entry.value_at, bytes);
  if (text_at(bytes, signature_at) != "acsp" || said_size(bytes) < header_bytes || said_size(bytes) > entry.count) {
    profile.fault = "the ICC profile of " + size + " is damaged";
    return profile;
  }
  profile.space = text_at(bytes, space_at);
  profile.space.erase(profile.space.find_last_not_of(' ') + 1);
  profile.bytes = std::move(bytes);
  return profile;
}

}  // namespace slidestream
