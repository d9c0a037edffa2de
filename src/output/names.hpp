#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace slidestream {

/// What names of a slide's files begin with: its file's name without suffix, at most `longest` bytes of it, and "slide"
/// where there is none. \param portable  as `portable_name` makes it
std::string file_stem(const std::string& slide, std::size_t longest, bool portable);

/// A name that Windows can have: what it refuses becomes _ (: ? < > | * " \ and control characters, a dot or a space at
/// the end), and names of its devices, such as CON, get one.
std::string portable_name(std::string name);

/// A name as it is compared with others, by Unicode's full case folding and canonical decomposition: capital letters
/// become small ones, a sharp s two, and letters with accents a letter and accents. Bytes that aren't UTF-8 stay.
std::string folded_name(std::string_view name);

}  // namespace slidestream
