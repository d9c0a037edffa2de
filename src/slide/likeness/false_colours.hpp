#pragma once

#include <array>
#include <vector>

namespace slidestream {

/// Means of red, green and blue, or what stands in their place.
using MeanColour = std::array<double, 3>;

/// Colours of a place in both levels.
struct ColourPair {
  MeanColour small;
  MeanColour large;
};

/// The mean colour of places in one of the levels.
MeanColour mean_of(const std::vector<ColourPair>& pairs, MeanColour ColourPair::*which);

/// Whether red, green or blue of the smaller level doesn't go with that of the larger, or its glass is a mid-tone with
/// a colour, and all beside it is faint. Levels that are darker, paler or tinted, or of another gamma, have neither.
bool have_false_colours(const std::vector<ColourPair>& pairs);

}  // namespace slidestream
