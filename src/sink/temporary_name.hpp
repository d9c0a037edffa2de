#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

/// \file
/// Names that this program alone uses, for what has no mark yet of whose it is. What has one is nobody else's.

namespace slidestream {

/// All of them begin and end so. Between are numbers, with a `-` after each but the last: the process, its start in
/// ticks of the machine's clock, and a count. Where the start isn't known, and in names of earlier versions, it is
/// missing.
inline constexpr std::string_view temporary_prefix = ".slidestream-";
inline constexpr std::string_view temporary_suffix = ".tmp";

/// Which process a temporary name is of.
struct NamedProcess {
  std::int64_t pid = 0;
  std::int64_t start = 0;  ///< clock ticks since the machine's start; 0: the name doesn't say it
};

/// Nothing for a name that isn't a temporary one.
std::optional<NamedProcess> process_in(std::string_view name);

/// A name in the folder of `file`, for what gets the name of `file` later: short whatever that one's length, and
/// different for every file of every process.
std::filesystem::path temporary_name(const std::filesystem::path& file);

}  // namespace slidestream
