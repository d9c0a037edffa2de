#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "slide/tiff/candidate.hpp"

/// \file
/// Lines about directories that are no levels, and that nobody sees elsewhere.

namespace slidestream {

/// A line for all of them: there may be thousands.
/// \param what, others, smaller  as in `UnreadImages`
void warn_of_unread(const std::vector<const Candidate*>& images, const std::string& what, const std::string& others,
                    std::size_t smaller, std::vector<std::string>& warnings);

/// Those that aren't levels are nowhere else to be seen. One without a size has its line.
void warn_of_subs(const Candidate& base, const std::vector<Candidate>& subs,
                  const std::vector<const Candidate*>& levels, std::vector<std::string>& warnings);

/// Small images of the slide's shape that are no levels: one may be a thumbnail, and several may be a pyramid.
void warn_of_lost_pyramid(const std::vector<const Candidate*>& images, const std::vector<const Candidate*>& levels,
                          std::vector<std::string>& warnings);

}  // namespace slidestream
