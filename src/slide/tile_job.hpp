#pragma once

#include <chrono>
#include <slidestream/slide.hpp>
#include <string>

#include "codec/tile_rule.hpp"
#include "slide/decode_memory.hpp"
#include "slide/slide_impl.hpp"

namespace slidestream {

/// One tile to decode: what its decoder must know, and where its pixels go.
struct TileJob {
  const Slide& slide;
  std::size_t level_index;
  const Level& level;
  const LevelCoding& coding;
  std::int64_t index;   ///< of the tile
  TileDemand demand;    ///< what the tile must be, for pixels of `out`'s format
  std::int64_t from_x;  ///< first tile pixel wanted
  std::int64_t from_y;
  const HostPixels& out;
  /// Where the luminance of the same rectangle goes as well, when `out` is RGB; null where it isn't wanted.
  const HostPixels* luminance = nullptr;
  /// Whose memory and patience decoding has; null: no limit.
  const Slide::Impl* limits = nullptr;
  /// Bytes that the caller has for the tile, beside what decoding it takes.
  std::uint64_t beside = 0;
  /// The memory that decoding takes is taken already, with that of other tiles.
  bool has_memory = false;

  /// Row `y` of the tile in `out`; null when it isn't wanted.
  std::uint8_t* row(std::int64_t y) const noexcept { return row_of(out, y); }
  std::uint8_t* luminance_row(std::int64_t y) const noexcept {
    return luminance == nullptr ? nullptr : row_of(*luminance, y);
  }

 private:
  std::uint8_t* row_of(const HostPixels& pixels, std::int64_t y) const noexcept {
    if (y < from_y || y >= from_y + pixels.height) return nullptr;
    return pixels.data + (y - from_y) * pixels.pitch;
  }
};

/// Memory for decoding the tile, of the `DecodeMemory` of `limits`; none where there is none, or with `has_memory`.
/// \throws SlideError when that is never as much, StoppedError when the slide's work is given up.
DecodeMemory::Lease memory_for(const TileJob& job, std::uint64_t bytes);

/// The same for who has no job yet.
DecodeMemory::Lease memory_for(const Slide::Impl& slide, std::size_t level, std::int64_t tile, std::uint64_t bytes);

/// The same for what is no tile, such as "the table of its ICC profile". None where `bytes` is 0.
/// \param or_else  more advice, behind a comma
DecodeMemory::Lease memory_for(const Slide::Impl& slide, const std::string& what, std::uint64_t bytes,
                               const std::string& or_else = {});

/// For a tile's compressed bytes, before the memory to decode them, which then is checked together with it. None where
/// the thread holds such memory. \throws what `memory_for` throws
DecodeMemory::Lease memory_for_input(const Slide::Impl& slide, std::size_t level, std::int64_t tile,
                                     std::uint64_t bytes);

/// Lets the caller of the slide give up a tile that takes long. A tile that takes a second or less is always finished.
class Patience {
 public:
  explicit Patience(const TileJob& job) noexcept : job_(job) {}
  bool is_over() const;
  /// \throws StoppedError when it is over.
  void check() const;

 private:
  const TileJob& job_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// What the pixels are of a frame that the rule takes; `coded` is what the frame is called. \throws TileError.
PixelsOf check_frame(const TileJob& job, const CodedFrame& frame, const char* coded);

/// Makes white what lies beyond the decoded `width` x `height` of an edge tile.
void whiten_beyond(const TileJob& job, std::int64_t width, std::int64_t height);

}  // namespace slidestream
