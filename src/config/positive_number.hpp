#pragma once

#include <optional>
#include <string_view>

/// \file
/// Numbers in what others wrote: descriptions of slides, XML, lists. One reader for all of them.

namespace slidestream {

/// Without blanks and line ends around it.
std::string_view trimmed(std::string_view text);

/// A positive, finite number and nothing else; a decimal comma counts as a point, and a plus sign may stand before it.
/// Anything else is none.
std::optional<double> positive_number(std::string_view text);

}  // namespace slidestream
