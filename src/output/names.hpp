#pragma once

#include <cstddef>
#include <string>

namespace slidestream {

/// What names of a slide's files begin with: its file's name without suffix, at most `longest` bytes of it, and "slide"
/// where there is none.
std::string file_stem(const std::string& slide, std::size_t longest);

}  // namespace slidestream
