#pragma once

#include <vector>

#include "operators/tissue/outlines.hpp"

/// \file
/// Outlines with fewer corners.

namespace slidestream::operators {

/// Leaves corners out (Douglas and Peucker, The Canadian Cartographer 10, 1973) such that every corner left out lies
/// within `tolerance` mask pixels of the new line. Rings that would touch or cross others that way keep more of their
/// corners, so polygons stay valid: rings still meet in the same corners, and in no other places. A tolerance of 0
/// changes nothing.
void simplify_outlines(std::vector<Outline>& outlines, double tolerance);

}  // namespace slidestream::operators
