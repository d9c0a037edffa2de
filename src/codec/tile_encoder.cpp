#include "codec/tile_encoder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <slidestream/error.hpp>

#include "codec/jpeg_compressor.hpp"
#include "codec/zstd_compressor.hpp"

namespace slidestream {

namespace {

/// A tile's rows, where they lie if it is whole, or else in a padded copy.
class WholeTile {
 public:
  WholeTile(PixelFormat format, int side)
      : side_(side),
        pixel_bytes_(format.pixel_bytes()),
        row_bytes_(static_cast<std::size_t>(side) * pixel_bytes_),
        rows_(static_cast<std::size_t>(side)) {}

  std::size_t row_bytes() const noexcept { return row_bytes_; }

  /// Valid until the next call, as long as the tile's pixels are there.
  const std::vector<const std::uint8_t*>& rows(const ConstPixelView<MemorySpace::host>& tile) {
    const bool whole_rows = tile.rect.width == side_;
    if (!whole_rows) padded_.resize(row_bytes_ * static_cast<std::size_t>(side_));
    for (std::int64_t y = 0; y < side_; ++y) {
      const std::uint8_t*& row = rows_[static_cast<std::size_t>(y)];
      if (y >= tile.rect.height) {
        row = rows_[static_cast<std::size_t>(y) - 1];
        continue;
      }
      const auto* from = tile.row<const std::uint8_t>(tile.rect.y + y);
      row = whole_rows ? from : padded_row(from, tile.rect.width, y);
    }
    return rows_;
  }

 private:
  const std::uint8_t* padded_row(const std::uint8_t* from, std::int64_t width, std::int64_t y) {
    std::uint8_t* const row = padded_.data() + static_cast<std::size_t>(y) * row_bytes_;
    const std::size_t there = static_cast<std::size_t>(width) * pixel_bytes_;
    std::memcpy(row, from, there);
    for (std::size_t at = there; at < row_bytes_; ++at) row[at] = row[at - pixel_bytes_];
    return row;
  }

  int side_;
  std::size_t pixel_bytes_;
  std::size_t row_bytes_;
  std::vector<const std::uint8_t*> rows_;
  std::vector<std::uint8_t> padded_;
};

class PlainEncoder final : public TileEncoder {
 public:
  PlainEncoder(PixelFormat format, int side) : whole_(format, side) {}

  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) override {
    const auto& rows = whole_.rows(tile);
    std::vector<std::byte> bytes;
    bytes.reserve(rows.size() * whole_.row_bytes());
    for (const std::uint8_t* row : rows) {
      const auto* first = reinterpret_cast<const std::byte*>(row);
      bytes.insert(bytes.end(), first, first + whole_.row_bytes());
    }
    return bytes;
  }

 private:
  WholeTile whole_;
};

JpegColour colour_of(PixelFormat format, ChromaSubsampling subsampling) {
  if (format.channels == 1) return JpegColour::grey;
  switch (subsampling) {
    case ChromaSubsampling::s422:
      return JpegColour::ycbcr_422;
    case ChromaSubsampling::s444:
      return JpegColour::ycbcr_444;
    case ChromaSubsampling::s420:
      break;
  }
  return JpegColour::ycbcr_420;
}

class JpegTileEncoder final : public TileEncoder {
 public:
  JpegTileEncoder(PixelFormat format, int quality, int side, ChromaSubsampling subsampling)
      : whole_(format, side), compressor_(colour_of(format, subsampling), quality, side) {}

  std::vector<std::byte> tables() override {
    const auto bytes = compressor_.tables();
    return {bytes.begin(), bytes.end()};
  }

  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) override {
    const auto bytes = compressor_.compress(whole_.rows(tile));
    return {bytes.begin(), bytes.end()};
  }

 private:
  WholeTile whole_;
  JpegCompressor compressor_;
};

class JpegFileEncoder final : public TileEncoder {
 public:
  JpegFileEncoder(PixelFormat format, int quality, int side, ChromaSubsampling subsampling)
      : compressor_(colour_of(format, subsampling), quality, side) {}

  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) override {
    rows_.clear();
    for (std::int64_t y = tile.rect.y; y < tile.rect.bottom(); ++y) rows_.push_back(tile.row<const std::uint8_t>(y));
    const auto bytes = compressor_.compress_file(rows_, static_cast<int>(tile.rect.width));
    return {bytes.begin(), bytes.end()};
  }

 private:
  JpegCompressor compressor_;
  std::vector<const std::uint8_t*> rows_;
};

class ZstdEncoder final : public TileEncoder {
 public:
  ZstdEncoder(PixelFormat format, int side) : plain_(format, side) {}

  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& tile) override {
    const std::span<const std::byte> frame = zstd_.compress(plain_.encode(tile));
    return {frame.begin(), frame.end()};
  }

 private:
  PlainEncoder plain_;
  ZstdCompressor zstd_;
};

}  // namespace

const char* name_of(TileCompression compression) noexcept {
  switch (compression) {
    case TileCompression::jpeg:
      return "jpeg";
    case TileCompression::zstd:
      return "zstd";
    case TileCompression::blosc_lz4:
      return "blosc-lz4";
    case TileCompression::copy:
      return "copy";
    case TileCompression::none:
      break;
  }
  return "none";
}

bool can_encode(TileCompression compression, PixelFormat format) noexcept {
  if (compression != TileCompression::jpeg && compression != TileCompression::copy) return true;
  return format.sample == SampleType::uint8 && (format.channels == 1 || format.channels == 3);
}

std::unique_ptr<TileEncoder> make_tile_encoder(TileCompression compression, PixelFormat format, int quality, int side,
                                               ChromaSubsampling subsampling) {
  if (!can_encode(compression, format)) throw Error("JPEG tiles hold 1 or 3 channels of 8 bits, nothing else");
  if (compression == TileCompression::blosc_lz4) throw Error("blosc holds single planes");
  const bool jpeg = compression == TileCompression::jpeg || compression == TileCompression::copy;
  if (jpeg) return std::make_unique<JpegTileEncoder>(format, quality, side, subsampling);
  if (compression == TileCompression::zstd) return std::make_unique<ZstdEncoder>(format, side);
  return std::make_unique<PlainEncoder>(format, side);
}

std::uint64_t encoder_bytes(TileCompression compression, PixelFormat format, int side) noexcept {
  const std::uint64_t pixels = static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side);
  const std::uint64_t tile = pixels * format.pixel_bytes();
  switch (compression) {
    case TileCompression::jpeg:
    case TileCompression::copy:
      // A padded copy, and the JPEG of half as many bytes at most: in libjpeg's buffer, which doubles, and as the tile.
      return 3 * tile;
    case TileCompression::zstd:
      // A padded copy, its rows put together, and the tile, which may be as large.
      return 3 * tile + zstd_compressor_bytes(tile);
    case TileCompression::blosc_lz4:
    case TileCompression::none:
      break;
  }
  return 2 * tile;
}

std::unique_ptr<TileEncoder> make_jpeg_file_encoder(PixelFormat format, int quality, int side,
                                                    ChromaSubsampling subsampling) {
  if (!can_encode(TileCompression::jpeg, format))
    throw Error("JPEG files hold 1 or 3 channels of 8 bits, nothing else");
  return std::make_unique<JpegFileEncoder>(format, quality, side, subsampling);
}

}  // namespace slidestream
