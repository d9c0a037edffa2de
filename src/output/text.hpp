#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <slidestream/results.hpp>

#include "config/csv.hpp"

namespace slidestream {

/// The shortest decimal that reads back as the same double, in every locale.
std::string to_decimal(double value);

std::string to_decimal(Int128 value);

/// 16 digits, small letters: how a digest is written.
std::string to_hexadecimal(std::uint64_t value);

/// A name or text for JSON: bytes that aren't UTF-8 become \xNN. Two texts may become the same.
std::string json_text(std::string_view text);

}  // namespace slidestream
