#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <span>

namespace slidestream {

struct TileJob;

/// Samples of one tile that isn't large, kept from tile to tile by a thread. Not a vector, which would clear them.
struct TileScratch {
  std::unique_ptr<std::byte[]> samples;
  std::size_t capacity = 0;
};

/// An open container: what a slide asks of it after it was opened. Immutable then, and used by any number of threads.
class Container {
 public:
  Container() = default;
  virtual ~Container() = default;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  /// `Slide::icc_profile`.
  virtual IccProfile icc_profile(std::size_t level) const = 0;

  /// `Slide::read_associated`; the number is valid. `slide` has its name, and the memory to decode it.
  virtual AssociatedImage read_associated(const Slide::Impl& slide, std::size_t index) const = 0;

  /// Whether the container only guesses which images are levels: then those that don't look like the slide are none.
  virtual bool guesses_levels() const noexcept { return false; }
  /// While it is opened: a level that it guessed becomes the last associated image.
  virtual void make_associated(std::size_t level);

  /// Bytes that it keeps for decoding while it is open, at most.
  virtual std::uint64_t kept_bytes() const noexcept { return 0; }

  /// Decodes a tile in a codec that is the container's own. \throws TileError
  virtual void decode(const TileJob& job, std::span<const std::byte> bytes, TileScratch& scratch) const;
};

}  // namespace slidestream
