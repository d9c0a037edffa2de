#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sink/content_hash.hpp"

namespace slidestream {

/// A number of 128 bits that stands for bytes: two values of XXH64, one of them behind 32 bytes of its own.
class DicomHash {
 public:
  DicomHash();
  void add(std::span<const std::byte> bytes) noexcept;
  std::array<std::uint64_t, 2> value() const noexcept;
  std::string hexadecimal() const;  ///< the first half, as 16 digits

 private:
  ContentHash first_;
  ContentHash second_;
};

/// A UID that tells content and role from others, of a length that only `root` decides.
/// \param root  empty: "2.25", below which a UUID of version 8 stands as a number (PS3.5, B.2).
std::string dicom_uid(const std::string& root, const DicomHash& content, std::string_view role);

}  // namespace slidestream
