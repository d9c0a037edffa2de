#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <slidestream/config.hpp>

#include "image/mask.hpp"
#include "image/views.hpp"

/// \file
/// How a slide is stained, after M. Macenko et al., A method for normalizing histology slides for quantitative
/// analysis, ISBI 2009: two colours, and how much of each there is at most.
///
/// Optical density of a sample v is OD = -ln((v + 1) / (w + 1)) for v below the slide's white w of that channel, else
/// 0. Float64 throughout, in one thread and one order.

namespace slidestream::operators {

/// Optical density of red, green and blue.
using Density = std::array<double, 3>;

/// Red, green and blue of light that passed through nothing but glass.
using WhitePoint = std::array<std::uint8_t, 3>;

/// That of the published stains, and of slides without background: Io of the authors' code.
inline constexpr WhitePoint usual_white = {240, 240, 240};

struct StainBasis {
  std::array<Density, 2> colours{};  ///< of unit length: hematoxylin, eosin
  std::array<double, 2> maxima{};    ///< 99th percentile of the amount of each
  WhitePoint white = usual_white;
};

/// What slides are normalised to unless another reference is named: hematoxylin (0.5626, 0.7201, 0.4062) up to 1.9705,
/// eosin (0.2159, 0.8012, 0.5581) up to 1.0308, white 240, as the authors' code has them
/// (github.com/mitkovetta/staining-normalization).
const StainBasis& published_stains();

/// Fewer pixels than this don't tell how a slide is stained.
inline constexpr std::int64_t least_stained_pixels = 1000;

/// The slide's white, per channel: the median (the lower of two) over the background of a small level, that is all
/// pixels outside of the mask whose samples are all at least 170. Pure white is left out, as missing tiles have it,
/// unless fewer than 1,000 other pixels are background. `usual_white` where fewer than 1,000 pixels are background at
/// all. \param rgb  the whole small level, host memory \param tissue  as large as that
WhitePoint measure_white(const ConstHostView& rgb, const Mask& tissue);

/// The stains of a slide, from those of its pixels that have an OD of at least 0.15 in every channel. In the plane of
/// the two eigenvectors of their covariance that have the largest eigenvalues (negated where their first entry is
/// negative), the 1st and the 99th percentile of the angle to the first are the two colours; the one with more red
/// density is hematoxylin. Amounts are least squares in them, and the maximum is their 99th percentile. Percentiles are
/// interpolated linearly, as numpy does. \param rgb  red, green and blue of pixels of tissue (`stained_blocks`) \throws
/// Error naming the cause, without the slide's name: fewer than 1,000 such pixels, or colours that are one
StainBasis fit_stains(std::span<const std::uint8_t> rgb, const WhitePoint& white);

/// From -OD of red, green and blue to the same of the output, in 1/65536: row c, column j.
using StainMatrix = std::array<std::array<std::int32_t, 3>, 3>;

/// R diag(wanted_i max_i(reference) / max_i(slide)) S^+, R and S the 3 x 2 matrices of colours, S^+ the pseudoinverse;
/// wanted_i is 1 for stains that `output` has, else 0.
/// \throws Error when an entry is 1024 or more in magnitude: such stains can't be told apart
StainMatrix stain_matrix(const StainBasis& slide, const StainBasis& reference, StainOutput output);

/// How pixels of a slide become pixels in the stains of a reference.
struct StainMap {
  StainMatrix matrix{};
  WhitePoint from = usual_white;  ///< of the slide
  WhitePoint to = usual_white;    ///< of the reference
};

/// \throws Error as `stain_matrix` does
StainMap stain_map(const StainBasis& slide, const StainBasis& reference, StainOutput output);

}  // namespace slidestream::operators
