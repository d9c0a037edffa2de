#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <slidestream/slide.hpp>
#include <tuple>
#include <vector>

// Tiles that take long to decode, of levels that are compared.

namespace slidestream {

/// Keeps decoded large tiles while a slide is opened: its levels are looked at in many places, which may lie in one
/// tile. Of two levels at a time, those that were read last. One thread.
class LargeTiles {
 public:
  static constexpr std::int64_t least_pixels = std::int64_t{1} << 20;  ///< smaller tiles are decoded for each place
  static constexpr std::int64_t most_pixels = std::int64_t{1} << 24;
  static constexpr std::size_t most_bytes = 4 * most_pixels;  ///< of a level: a tile's luminance and its RGB

  /// Whether tiles of a level are kept.
  static bool keeps(const Level& level) noexcept;

  /// Most bytes that are kept of a level.
  static std::uint64_t bytes_of(const Level& level) noexcept;

  /// As `read_luminance` and `read_rgb` by the format of `out`, with the same pixels.
  void read(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, const HostPixels& out,
            BadTilePolicy on_bad_tile);

  /// Drops tiles of levels from this one on: they change, or become others.
  void forget_from(std::size_t level);

  /// Whole tiles that were decoded so far.
  std::size_t decoded() const noexcept { return decoded_; }

 private:
  struct Tile {
    std::ptrdiff_t pitch = 0;
    std::vector<std::uint8_t> samples;  ///< empty: it is bad, and parts of it may not be
    std::uint64_t used = 0;
  };

  const Tile& tile(const Slide& slide, std::size_t level, std::int64_t index, const PixelFormat& format);
  void make_room(std::size_t level, std::size_t bytes);

  std::map<std::tuple<std::size_t, std::int64_t, std::size_t>, Tile> tiles_;  ///< by level, number, bytes of a pixel
  std::uint64_t uses_ = 0;
  std::size_t decoded_ = 0;
};

/// Reads a rectangle to compare it: as `read_luminance` and `read_rgb` do, with the large tiles that the slide keeps.
void read_compared(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, const HostPixels& out,
                   BadTilePolicy on_bad_tile);

}  // namespace slidestream
