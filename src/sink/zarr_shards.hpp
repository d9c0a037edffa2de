#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sink/partial_folder.hpp"

/// \file
/// Files that hold the chunks of a row: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/

namespace slidestream {

/// Chunks one behind the other, then where each begins and how long it is (64-bit little-endian numbers), then the
/// CRC-32C of that. A shard appears when its last chunk is there.
class ZarrShards {
 public:
  explicit ZarrShards(PartialFolder& folder) : folder_(folder) {}

  /// The next chunk of the shard `file`, which gets `count` of them. \throws OutputError.
  void add(const std::string& file, std::span<const std::byte> chunk, std::int64_t count);

 private:
  PartialFolder& folder_;
  struct Shard {
    std::vector<std::uint64_t> index;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Shard> begun_;  ///< by file
};

/// CRC-32C (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

}  // namespace slidestream
