#include "sink/zarr_shards.hpp"

namespace slidestream {

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
  std::uint32_t sum = ~std::uint32_t{0};
  for (const std::byte byte : bytes) {
    sum ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? polynomial : 0);
  }
  return ~sum;
}

void ZarrShards::add(const std::string& file, std::span<const std::byte> chunk, std::int64_t count) {
  Shard& shard = begun_[file];
  folder_.append(file, chunk);
  shard.index.insert(shard.index.end(), {shard.bytes, chunk.size()});
  shard.bytes += chunk.size();
  if (shard.index.size() < 2 * static_cast<std::size_t>(count)) return;
  const auto index = std::as_bytes(std::span(shard.index));
  const std::uint32_t sum = crc32c(index);
  folder_.append(file, index);
  folder_.append(file, std::as_bytes(std::span(&sum, 1)));
  folder_.complete(file);
  begun_.erase(file);
}

}  // namespace slidestream
