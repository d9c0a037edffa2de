#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "image/mask.hpp"
#include "image/small_level.hpp"
#include "image/views.hpp"

/// \file
/// Where tissue is, found on a small level: what is coloured, as Otsu's threshold tells it from glass.

namespace slidestream::operators {

/// S = (255 (max - min) + max / 2) / max of a pixel's red, green, blue, in integers; 0 where max <= 3: of what is
/// nearly black (borders of scans) the colour is noise. 0 is grey, 255 pure. \param out one channel of uint8 \param in
/// RGB; holds `out.rect`. Host memory; thread-safe. \throws std::invalid_argument when the views don't fit
void saturation(const HostView& out, const ConstHostView& in);

/// The fifth of the nine values around each pixel of an image of one 8-bit channel. Beyond the edges: mirrored with the
/// edge sample repeated (numpy `symmetric`, SciPy's default). Any rectangle gives what the whole gives.
/// \param in holds `out.rect` and one pixel around it, as far as that lies inside the image
/// \throws std::invalid_argument when the views don't fit
void median3x3(const HostView& out, const ConstHostView& in);

/// Otsu's threshold (IEEE Trans. SMC 9, 1979): t for which the variance between the classes "at most t" and "above t"
/// is largest, by exact fractions; the lowest of equals. 0 where all counted values are one, or none is. \param
/// histogram how often each value occurs; at most 2^27 in all
int otsu_threshold(const std::array<std::uint64_t, 256>& histogram);

/// Pixels whose samples are all at most this are black.
inline constexpr int most_black = 3;

/// Thresholds below this are noise of the scanner on glass.
inline constexpr int least_threshold = 15;

struct TissueRule {
  double least_um2 = 16384.0;  ///< specks of tissue smaller than this (256 pixels of 8 um) are dropped
  /// Holes up to this size are filled. The default fills all, 0 none.
  double filled_um2 = std::numeric_limits<double>::infinity();
  int threshold = 0;  ///< t, 1 to 254; 0: Otsu's, at least `least_threshold`
};

/// Saturation, 0 within one pixel of what is nearly black (`most_black`), 3 x 3 median, Otsu's threshold t, at least
/// 15; tissue where S > t. Holes, background that tissue encloses (4-connected, not at the image's edge), are filled up
/// to `filled_um2`. Then specks of tissue (8-connected) smaller than `least_um2` are dropped, and holes filled again,
/// as they may have held specks. What is within one pixel of nearly black ones is taken out at the end. An image of one
/// saturation is all tissue where that is above t, else none. \param rgb the whole small level, host memory \param
/// scale level 0 pixels a pixel of it \param mpp micrometres per pixel of level 0; where it isn't known, the rules in
/// um^2 are off: all holes are filled unless `filled_um2` is 0, and no speck is dropped \throws std::invalid_argument
/// when the view isn't the whole image in RGB
Mask find_tissue(const ConstHostView& rgb, const GridScale& scale, Size level0, const std::optional<double>& mpp,
                 const TissueRule& rule = {});

}  // namespace slidestream::operators
