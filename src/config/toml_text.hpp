#pragma once

#include <string>
#include <string_view>

#include "config/keys.hpp"

namespace slidestream {

/// The shortest decimal that reads back as the same double, in every locale; as TOML wants it ("1.0", "nan").
std::string to_toml_number(double value);

/// A value as TOML. \throws ConfigError when a string isn't UTF-8, which TOML can't hold.
std::string to_toml_value(const ConfigValue& value);

/// The TOML library follows dotted keys by recursion without a bound, so that enough of them would exhaust the stack.
/// \throws ConfigError that names `origin` for text with too many.
void refuse_deep_keys(std::string_view text, const std::string& origin);

/// Text broken into lines of at most `columns` bytes, each begun with `prefix`.
std::string wrapped(std::string_view text, std::string_view prefix, std::size_t columns);

}  // namespace slidestream
