#include "codec/planar_encoder.hpp"

#include <blosc.h>

#include <cstdint>
#include <cstring>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "codec/zstd_compressor.hpp"

namespace slidestream {

namespace {

/// In front of each plane, where there are several: its length.
constexpr std::size_t length_bytes = sizeof(std::uint64_t);

class PlanarEncoder final : public TileEncoder {
 public:
  PlanarEncoder(TileCompression compression, PixelFormat format, int side, std::vector<std::byte> fill)
      : compression_(compression),
        format_(format),
        side_(side),
        fill_(std::move(fill)),
        plane_(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * bytes_of(format.sample)) {}

  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) override {
    std::vector<std::byte> all;
    if (compression_ == TileCompression::none) {
      all.reserve(static_cast<std::size_t>(format_.channels) * (length_bytes + plane_.size()));
    }
    for (int channel = 0; channel < format_.channels; ++channel) {
      switch (bytes_of(format_.sample)) {
        case 1:
          gather<std::uint8_t>(tile, channel);
          break;
        case 2:
          gather<std::uint16_t>(tile, channel);
          break;
        default:
          gather<std::uint32_t>(tile, channel);
      }
      const std::span<const std::byte> plane = compressed();
      const std::uint64_t length = plane.size();
      const auto* first = reinterpret_cast<const std::byte*>(&length);
      if (format_.channels > 1) all.insert(all.end(), first, first + length_bytes);
      all.insert(all.end(), plane.begin(), plane.end());
    }
    return all;
  }

 private:
  /// A channel of the tile into `plane_`. `T` is as wide as a sample.
  template <class T>
  void gather(const ConstPixelView<MemorySpace::host>& tile, int channel) {
    T fill;
    std::memcpy(&fill, fill_.data(), sizeof fill);
    auto* to = reinterpret_cast<T*>(plane_.data());
    for (std::int64_t y = 0; y < side_; ++y, to += side_) {
      const std::int64_t width = y < tile.rect.height ? tile.rect.width : 0;
      const T* from = width > 0 ? tile.row<const T>(tile.rect.y + y) + channel : nullptr;
      for (std::int64_t x = 0; x < width; ++x) to[x] = from[x * format_.channels];
      for (std::int64_t x = width; x < side_; ++x) to[x] = fill;
    }
  }

  std::span<const std::byte> compressed() {
    if (compression_ == TileCompression::none) return plane_;
    if (compression_ == TileCompression::zstd) return zstd_.compress(plane_);
    frame_.resize(plane_.size() + BLOSC_MAX_OVERHEAD);
    const int shuffle = bytes_of(format_.sample) > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE;
    // One thread and nothing of the environment: what comes out depends on what goes in alone.
    const int length = blosc_compress_ctx(5, shuffle, bytes_of(format_.sample), plane_.size(), plane_.data(),
                                          frame_.data(), frame_.size(), BLOSC_LZ4_COMPNAME, 0, 1);
    if (length <= 0) throw Error("libblosc: error " + std::to_string(length));
    return std::span(frame_).first(static_cast<std::size_t>(length));
  }

  TileCompression compression_;
  PixelFormat format_;
  std::int64_t side_;
  std::vector<std::byte> fill_;
  std::vector<std::byte> plane_;
  std::vector<std::byte> frame_;
  ZstdCompressor zstd_;
};

}  // namespace

std::unique_ptr<TileEncoder> make_planar_encoder(TileCompression compression, PixelFormat format, int side,
                                                 std::vector<std::byte> fill) {
  if (compression == TileCompression::jpeg) throw Error("JPEG has no planes");
  return std::make_unique<PlanarEncoder>(compression, format, side, std::move(fill));
}

std::uint64_t planar_encoder_bytes(TileCompression compression, PixelFormat format, int side) noexcept {
  const std::uint64_t pixels = static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side);
  const std::uint64_t plane = pixels * static_cast<std::uint64_t>(bytes_of(format.sample));
  // libblosc has no larger frames than libzstd, and less beside them.
  const std::uint64_t frame = compression == TileCompression::none ? 0 : zstd_compressor_bytes(plane);
  // The tile is copied as it grows.
  return plane + frame + 2 * static_cast<std::uint64_t>(format.channels) * plane;
}

std::vector<std::span<const std::byte>> planes_of(std::span<const std::byte> tile, int channels) {
  if (channels == 1) return {tile};
  std::vector<std::span<const std::byte>> planes;
  for (int channel = 0; channel < channels; ++channel) {
    std::uint64_t length = 0;
    std::memcpy(&length, tile.data(), length_bytes);
    planes.push_back(tile.subspan(length_bytes, length));
    tile = tile.subspan(length_bytes + length);
  }
  return planes;
}

}  // namespace slidestream
