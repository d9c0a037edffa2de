#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace slidestream {

/// The header of an NPY 1.0 file: C order, this machine's byte order. `type` is NumPy's kind and size, such as "i8".
std::string npy_header(std::string_view type, std::initializer_list<std::uint64_t> shape);

}  // namespace slidestream
