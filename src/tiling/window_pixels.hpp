#pragma once

#include <cstdint>
#include <slidestream/image.hpp>

/// \file
/// Pixels of windows in memory. Host memory throughout.

namespace slidestream {

/// Samples of a window in memory: row by row with red, green and blue side by side, or a plane for each.
enum class WindowLayout { interleaved, planar };

/// Writes `count` pixels of RGB to row `y` of a window, from column `x` on.
void copy_pixels(std::uint8_t* window, const Size& size, WindowLayout layout, std::int64_t x, std::int64_t y,
                 const std::uint8_t* from, std::int64_t count);

/// Gives `fill` to what lies right of and below the first `width` x `height` pixels of a window.
void fill_beyond(std::uint8_t* window, const Size& size, WindowLayout layout, std::int64_t width, std::int64_t height,
                 std::uint8_t fill);

/// Makes a window from a level's pixels. Each of its pixels is the mean of an area of `factor` / 65,536 of the level's.
/// \param inside  the part of the window that is inside the image of these areas, in that image
/// \param source  the level's pixels from `AreaResampler::source_of` it on, in rows that are `pitch` bytes apart
void resample_window(std::uint8_t* window, const Size& size, WindowLayout layout, const Rect& inside, const Size& level,
                     std::int64_t factor, const std::uint8_t* source, std::int64_t pitch);

}  // namespace slidestream
