#pragma once

#include <vector>

#include "config/keys.hpp"

namespace slidestream {

/// Those of `[model]` and `[features]`.
std::vector<ConfigKey> model_keys();

}  // namespace slidestream
