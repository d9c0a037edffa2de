#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>

namespace slidestream {

/// The settings that decide results, as key and TOML value, in the order of the configuration; the program's version
/// comes first. Where the work is done, how much memory it takes and what is done about failures isn't among them.
std::vector<std::pair<std::string, std::string>> deciding_settings(const Config& config);

/// The first of `now` that `before` has otherwise, as "KEY is NOW here and was BEFORE"; nothing when all agree.
std::optional<std::string> first_difference(const std::vector<std::pair<std::string, std::string>>& now,
                                            const std::map<std::string, std::string>& before);

}  // namespace slidestream
