#include "slide/icc_profile.hpp"

#include <string>
#include <utility>
#include <vector>

#include "colour/colour_steps.hpp"

namespace slidestream {

namespace {

// The header of a profile: ICC.1:2010, section 7.2.
constexpr std::size_t header_bytes = 128;
constexpr std::size_t space_at = 16;
constexpr std::size_t signature_at = 36;

constexpr std::uint64_t largest_profile = std::uint64_t{1} << 24;

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

std::string icc_size_fault(std::uint64_t bytes) {
  if (bytes >= header_bytes && bytes <= largest_profile) return {};
  return "the ICC profile has " + std::to_string(bytes) + " bytes, supported are 128 to 16777216";
}

IccProfile checked_icc_profile(std::vector<std::byte> bytes) {
  IccProfile profile;
  profile.fault = icc_size_fault(bytes.size());
  if (!profile.fault.empty()) return profile;
  if (text_at(bytes, signature_at) != "acsp" || said_size(bytes) < header_bytes || said_size(bytes) > bytes.size()) {
    profile.fault = "the ICC profile of " + std::to_string(bytes.size()) + " bytes is damaged";
    return profile;
  }
  profile.space = text_at(bytes, space_at);
  profile.space.erase(profile.space.find_last_not_of(' ') + 1);
  profile.name = profile_name(bytes);
  profile.bytes = std::move(bytes);
  return profile;
}

IccProfile read_icc_profile(const File& file, std::uint64_t offset, std::uint64_t count) {
  IccProfile profile;
  profile.fault = icc_size_fault(count);
  if (profile.fault.empty() && !file.contains(offset, count)) {
    profile.fault = "the ICC profile of " + std::to_string(count) + " bytes at byte " + std::to_string(offset) +
                    " lies outside the file";
  }
  if (!profile.fault.empty()) return profile;
  std::vector<std::byte> bytes(count);
  file.read(offset, bytes);
  return checked_icc_profile(std::move(bytes));
}

}  // namespace slidestream
