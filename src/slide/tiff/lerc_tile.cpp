#include "slide/tiff/lerc_tile.hpp"

#include <tiffio.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <slidestream/error.hpp>
#include <string_view>

namespace slidestream {
namespace {

constexpr std::string_view second_kind = "Lerc2 ";
using Front = std::array<char, second_kind.size()>;

/// What can't be unpacked gives no front.
Front inflated_front(std::span<const std::byte> tile) {
  Front front{};
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(tile.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(tile.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(front.data());
  stream.avail_out = static_cast<uInt>(front.size());
  inflate(&stream, Z_NO_FLUSH);
  inflateEnd(&stream);
  return front;
}

Front zstd_front(std::span<const std::byte> tile) {
  Front front{};
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_inBuffer in{tile.data(), tile.size(), 0};
  ZSTD_outBuffer out{front.data(), front.size(), 0};
  // One that fails leaves its place where it was.
  while (out.pos < out.size && in.pos < in.size) {
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (left == 0 || ZSTD_isError(left) != 0) break;
  }
  return front;
}

Front front_of(std::span<const std::byte> tile, int packing) {
  if (packing == LERC_ADD_COMPRESSION_DEFLATE) return inflated_front(tile);
  if (packing == LERC_ADD_COMPRESSION_ZSTD) return zstd_front(tile);
  Front front{};
  std::memcpy(front.data(), tile.data(), std::min(front.size(), tile.size()));
  return front;
}

}  // namespace

void check_lerc_tile(std::span<const std::byte> tile, int packing) {
  const Front front = front_of(tile, packing);
  if (std::string_view(front.data(), front.size()) != second_kind) throw TileError("isn't LERC of the second kind");
}

}  // namespace slidestream
