#pragma once

#include <span>
#include <string>
#include <string_view>

namespace slidestream {

/// The candidate with the smallest edit distance to `name`, the first of equals; empty without candidates. Only the
/// first 64 bytes of names are looked at, so that a hostile name costs nothing.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// "; did you mean 'meant'?"
std::string did_you_mean(std::string_view meant);

/// The same with the candidate nearest to `name`; empty where none is like it.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

/// Text on one line, whatever it holds: control characters (`is_control`) become spaces, and what is longer than 300
/// bytes keeps the first 200 and the last 100.
std::string one_line(std::string_view text);

}  // namespace slidestream
