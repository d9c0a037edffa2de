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

/// S = (255 (max - min) + max / 2) / max of a pixel's red, green, blue, in integers; 0 where max = 0. 0 is grey, 255
/// pure. \param out one channel of uint8 \param in RGB; holds `out.rect`. Host memory; thread-safe. \throws
/// std::invalid_argument when the views don't fit
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

/// Thresholds below this are noise of the scanner on glass.
inline constexpr int least_threshold = 15;

struct TissueRule {
  double least_um2 = 16384.0;  ///< specks and holes smaller than this (256 pixels of 8 um) are dropped
  /// Holes up to this size are filled as well: all of them.
  double filled_um2 = std::numeric_limits<double>::infinity();
};

/// Saturation, 3 x 3 median, Otsu's threshold t, at least 15; tissue where S > t. Background that is enclosed by tissue
/// (4-connected, not at the image's edge) is filled. Then specks of tissue (8-connected) smaller than `least_um2` are
/// dropped, and holes (4-connected) smaller than that. An image of one saturation is all tissue where that is above 15,
/// else none.
/// \param rgb the whole small level, host memory
/// \param scale level 0 pixels a pixel of it
/// \param mpp micrometres a pixel of level 0; where it isn't known, 0.25 is taken: the small level is then about 8 um
/// \throws std::invalid_argument when the view isn't the whole image in RGB
Mask find_tissue(const ConstHostView& rgb, const GridScale& scale, Size level0, const std::optional<double>& mpp,
                 const TissueRule& rule = {});

}  // namespace slidestream::operators
