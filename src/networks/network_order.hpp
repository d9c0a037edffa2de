#pragma once

#include <string>
#include <vector>

namespace slidestream::networks {

/// Orders the networks of a folder, one per fragment, by the numbers in their names: runs of digits compare as numbers,
/// the first in a name first. Names without numbers, or which all have the same, are ordered as text.
/// \param folder  for messages. \param names  of files, each once
/// \throws ConfigError naming two networks with the same numbers, or that have not as many of them.
/// And where numbers leave a gap, or begin neither at 0 nor at 1: a network that is missing would shift the others.
std::vector<std::string> in_order(const std::string& folder, const std::vector<std::string>& names);

}  // namespace slidestream::networks
