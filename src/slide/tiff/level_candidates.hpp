#pragma once

#include <cstddef>
#include <vector>

#include "slide/tiff/candidate.hpp"

/// \file
/// Which directories may be the slide and its levels, before anyone looks at their pixels.

namespace slidestream {

/// The largest image, whatever it says of itself; of equals one that says nothing, then one with tiles, then the
/// first. Beside tiles, strips with another image's name are none, and in Aperio's files no strips are.
std::size_t largest_image(const std::vector<Candidate>& main);

/// Numbers of the directories that are as large as `one`. Those that say that they are reduced images or masks are
/// none, nor are labels and the like.
std::vector<std::size_t> images_as_large(const std::vector<Candidate>& main, const Candidate& one);

/// Whether an image may be a level, by all but its size.
bool may_be_level(const Candidate& candidate);

/// Those that are smaller versions of the slide, largest first, the first of equals.
std::vector<const Candidate*> reductions(const Candidate& base, const std::vector<Candidate>& subs);

/// Images that say that they are reduced, have no size of the pyramid, and may be levels 2, 4, 8, ... times smaller
/// whose right and lower borders were cut off. Largest first, one of a size, and sixteen at most.
/// \param levels  of the pyramid; one of nearly the same size leaves no place for another
std::vector<const Candidate*> cut_candidates(const Candidate& base, const std::vector<const Candidate*>& levels,
                                             const std::vector<const Candidate*>& images);

/// The levels, and behind each the other images of its size, in the order of `images`: one of them is the level if
/// those before it turn out to show something else. Three of a size at most, and sixteen of all.
std::vector<const Candidate*> with_spares(const std::vector<const Candidate*>& levels,
                                          const std::vector<const Candidate*>& images);

}  // namespace slidestream
