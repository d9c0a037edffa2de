#include "codec/zstd_compressor.hpp"

#include <zstd.h>

#include <slidestream/error.hpp>
#include <string>

namespace slidestream {

void ZstdCompressor::Deleter::operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }

ZstdCompressor::ZstdCompressor() : context_(ZSTD_createCCtx()) {
  if (!context_) throw Error("libzstd: out of memory");
}

std::span<const std::byte> ZstdCompressor::compress(std::span<const std::byte> bytes) {
  frame_.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t length =
      ZSTD_compressCCtx(context_.get(), frame_.data(), frame_.size(), bytes.data(), bytes.size(), zstd_level);
  if (ZSTD_isError(length) != 0) throw Error(std::string("libzstd: ") + ZSTD_getErrorName(length));
  return std::span(frame_).first(length);
}

std::uint64_t zstd_compressor_bytes(std::uint64_t content) noexcept {
  // libzstd's tables and window at this level take 1.3 MiB, whatever the content.
  constexpr std::uint64_t context = std::uint64_t{2} << 20;
  return context + ZSTD_compressBound(content);
}

}  // namespace slidestream
