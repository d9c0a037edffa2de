#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace slidestream {

/// Length of the UTF-8 sequence at the start of `text`, which isn't empty; 0 when it isn't one.
std::size_t utf8_length(std::string_view text);

/// The first code point of `text`, which begins with a sequence of `length` bytes.
char32_t code_point(std::string_view text, std::size_t length);

/// Appends a code point, at most U+10FFFF.
void append_utf8(std::string& to, char32_t point);

/// Whether a code point steers a terminal, or hides, rather than being shown: C0 and C1 controls, separators of lines,
/// what turns the direction of text, and other characters of Unicode's category Cf or without width, such as variation
/// selectors.
bool is_control(char32_t point);

/// Text that doesn't steer a terminal, whatever it holds: each control character becomes `instead`, and so does each
/// byte of broken UTF-8 that a terminal might take for a C1 control.
std::string printable(std::string_view text, char instead = '?');

}  // namespace slidestream
