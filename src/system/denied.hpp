#pragma once

#include <filesystem>
#include <string>

/// \file
/// Why the system doesn't let this process make or write a file.

namespace slidestream {

/// "FILE has the permissions 0640 and is of user 1 and group 2; this process is of user 3, who can't " and what it
/// can't, such as "write it". Empty where the file can't be looked at.
std::string rights_text(const std::filesystem::path& file, const std::string& what);

/// The first thing on the way to a file that keeps this process from making or replacing it: a folder that it mustn't
/// enter, or write in, or the file itself. As `rights_text` says it; empty: nothing that permissions say.
std::string denied_at(const std::filesystem::path& file);

/// The system's reason for which a file couldn't be made, replaced or written, with `denied_at` where rights are
/// missing. \param code  of errno
std::string reason_of(int code, const std::filesystem::path& file);

}  // namespace slidestream
