#pragma once

#include <vector>

#include "config/keys.hpp"

namespace slidestream {

/// Those of `[tissue]`.
std::vector<ConfigKey> tissue_keys();

}  // namespace slidestream
