#pragma once

#include <cstdint>
#include <functional>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/stitch.hpp>

#include "image/mask.hpp"
#include "image/small_level.hpp"

/// \file
/// Tissue as a network finds it, on pixels of its own size.

namespace slidestream::operators {

/// What a network looks at, and its tiles there. Neighbours are blended as `StitchWeights::tent` says, labels not, and
/// the last tile of a row or column is moved back into the image.
struct TissueNetworkTiles {
  SmallLevel image;         ///< pixels of the network's size, made as the small level of masks is
  StitchPlan stitch;        ///< tiles of that image
  std::uint64_t bytes = 0;  ///< host memory for its rows, for two rows of tiles, and for a batch
};

/// \param most_bytes  that it may take \throws Error in one line: the slide's pixel size isn't known or coarser than
/// the network's, or the tiles take more memory; SlideError where its pixels aren't square
TissueNetworkTiles plan_tissue_tiles(const SlideInfo& info, const Network& network, std::uint64_t most_bytes);

/// What of a network's values is tissue.
struct TissueChoice {
  int label = 1;             ///< the class that is tissue
  double probability = 0.5;  ///< from which on it is, 0 to 1
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;
};

/// Marks a mask's pixels. Each is what the network gives for the pixel that its centre lies in, of the network's image.
/// A network of one channel gives the probability of class 1, and class 0 has the rest. Of several channels, that of
/// the class is its probability. Probabilities become whole numbers, rint(65535 p), before they are blended, and are
/// compared with 65535 x `probability` then. Labels are tissue where they are the class. The calling thread computes,
/// so that the bits are the same whatever else runs. \param mask  an empty one, host memory \param network  as
/// `open_tissue_network` gives it \param given_up  asked by any thread whether the slide is given up, also while the
/// network computes, which is interrupted then; empty: it never is \return the bad tiles that became white \throws
/// SlideError a tile can't be decoded; StoppedError the slide is given up; Error the network fails, or gives values
/// that are none of these
std::int64_t mark_by_network(Mask& mask, const Slide& slide, const Network& network, const TissueNetworkTiles& tiles,
                             const TissueChoice& choice, const std::function<bool()>& given_up);

}  // namespace slidestream::operators
