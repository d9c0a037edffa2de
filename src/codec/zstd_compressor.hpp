#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

typedef struct ZSTD_CCtx_s ZSTD_CCtx;  // NOLINT(modernize-use-using): as zstd.h has it

namespace slidestream {

/// The level of libzstd that everything is compressed at.
inline constexpr int zstd_level = 3;

/// Bytes as frames of libzstd that say how long their content is. One object a thread.
class ZstdCompressor {
 public:
  ZstdCompressor();  ///< \throws Error without memory

  /// Valid until the next call. \throws Error when libzstd fails.
  std::span<const std::byte> compress(std::span<const std::byte> bytes);

 private:
  struct Deleter {
    void operator()(ZSTD_CCtx* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx, Deleter> context_;
  std::vector<std::byte> frame_;
};

/// The most bytes that such an object has after it has compressed so many.
std::uint64_t zstd_compressor_bytes(std::uint64_t content) noexcept;

}  // namespace slidestream
