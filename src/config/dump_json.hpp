#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slidestream {

/// JSON as the program writes it. Bytes that aren't UTF-8 become U+FFFD, and characters that steer a terminal or hide
/// (`is_control`) become \uNNNN; others stay readable. \param indent  spaces a level; -1: all in one line
std::string dump_json(const nlohmann::ordered_json& json, int indent);
std::string dump_json(const nlohmann::json& json, int indent);

}  // namespace slidestream
