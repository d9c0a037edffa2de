#pragma once

#include <vector>

#include "config/keys.hpp"

namespace slidestream {

/// Those of `[input]` and `[decode]`.
std::vector<ConfigKey> input_keys();

}  // namespace slidestream
