#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <vector>

// Rectangles of levels, read to be compared.

namespace slidestream {

/// A range of the smaller level's axis in the larger one's pixels, never empty.
struct PixelRange {
  PixelRange(std::int64_t first, std::int64_t last, double factor, std::int64_t size);

  std::int64_t size() const noexcept { return end - begin; }

  std::int64_t begin;
  std::int64_t end;
};

/// Luminance of a rectangle of a level.
struct LevelPicture {
  double mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const;

  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;
};

/// RGB of a rectangle of a level.
struct RgbPicture {
  const std::uint8_t* pixel(std::int64_t x, std::int64_t y) const noexcept {
    return samples.data() + 3 * (y * width + x);
  }

  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> samples;
};

/// Tiles of a level that a rectangle lies in.
std::vector<std::int64_t> tiles_of(const Level& of, std::int64_t left, std::int64_t top, std::int64_t width,
                                   std::int64_t height);

/// \throws SlideError as `read_luminance`
LevelPicture read_picture(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                          std::int64_t width, std::int64_t height, BadTilePolicy on_bad_tile);

/// Likewise; nothing where tiles of it are missing or bad.
std::optional<LevelPicture> read_whole_picture(const Slide& slide, std::size_t level, const PixelRange& columns,
                                               const PixelRange& rows);

/// What `reading` gives; nothing where a tile is bad.
template <class Reading>
auto unless_bad(const Reading& reading) -> std::optional<decltype(reading())> {
  try {
    return reading();
  } catch (const StoppedError&) {
    throw;
  } catch (const StorageError&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace slidestream
