#pragma once

#include <vector>

#include "config/keys.hpp"

namespace slidestream {

/// The keys of `[volume]`.
std::vector<ConfigKey> volume_keys();

}  // namespace slidestream
