#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <slidestream/config.hpp>
#include <vector>

#include "image/mask.hpp"
#include "image/small_level.hpp"
#include "image/views.hpp"

/// \file
/// Where tissue is, found on a small level: what is more coloured than glass, and neither ink nor a frame.

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

/// Otsu's threshold is noise of the scanner on glass below this.
inline constexpr int least_threshold = 15;

/// `TissueMethod::fixed` without a threshold: that of CLAM (Lu et al., Nature Biomedical Engineering 5, 2021).
inline constexpr int usual_threshold = 8;

/// `TissueMethod::automatic`: by how much tissue is more saturated than glass, and the least threshold.
inline constexpr int above_glass = 8;
inline constexpr int least_above_glass = 10;
/// Glass isn't more saturated.
inline constexpr int most_glass = 24;

struct TissueRule {
  TissueMethod method = TissueMethod::automatic;
  int threshold = 0;          ///< t, 1 to 254; 0: what `method` says
  double least_um2 = 2048.0;  ///< specks of tissue smaller than this (32 pixels of 8 um) are dropped
  /// Holes up to this size (4,096 pixels) are filled, as CLAM fills them; infinite: all, 0: none.
  double filled_um2 = 262144.0;
  bool drops_ink = true;  ///< strokes of a pen are no tissue
};

/// 1. What is dark (`mark_dark`), and unless the rule keeps it ink (`mark_ink`), is left out.
/// 2. Saturation, 0 where that is, and its 3 x 3 median S.
/// 3. The threshold t. Automatic: S of glass + 8, at least 10; glass has the commonest S at or below Otsu's threshold
///    of what isn't left out, and 0 where that is above 24. Tissue of any strength is found so, while a threshold
///    between two strengths would lose the weaker. Otsu: that threshold, at least 15. Fixed: 8. The rule's own stands
///    in place of each.
/// 4. Tissue where S > t. Automatic, whoever gave t: but for pixels with a neighbour that isn't, where S - glass is
///    less than a third of that of the most saturated neighbour: they are mostly glass.
/// 5. Holes, background that tissue encloses (4-connected, not at the image's edge), are filled up to `filled_um2`.
///    Then specks of tissue (8-connected) smaller than `least_um2` are dropped, and holes filled again, as they may
///    have held specks. What is left out is taken out at the end.
///
/// Integers throughout: the mask depends on the small level alone. \param rgb the whole small level, host memory \param
/// scale level 0 pixels a pixel of it \param mpp micrometres per pixel of level 0; where it isn't known, the rules in
/// um^2 are off: all holes are filled unless `filled_um2` is 0, and no speck is dropped \param ink_pixels  what
/// `mark_ink` returned, if given \throws std::invalid_argument
/// when the view isn't the whole image in RGB
Mask find_tissue(const ConstHostView& rgb, const GridScale& scale, Size level0, const std::optional<double>& mpp,
                 const TissueRule& rule = {}, std::int64_t* ink_pixels = nullptr);

/// Step 5 of `find_tissue`, but that nothing is taken out at the end. \param mpp  as there
void drop_holes_and_specks(Mask& mask, const std::optional<double>& mpp, const TissueRule& rule);

}  // namespace slidestream::operators
