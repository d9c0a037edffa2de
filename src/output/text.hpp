#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <slidestream/results.hpp>

namespace slidestream {

/// The shortest decimal that reads back as the same double, in every locale.
std::string to_decimal(double value);

std::string to_decimal(Int128 value);

/// 16 digits, small letters: how a digest is written.
std::string to_hexadecimal(std::uint64_t value);

/// A field of an RFC 4180 record: in quotes when it needs them.
std::string csv_field(std::string_view text);

}  // namespace slidestream
