#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace slidestream::report {

/// Refuses a file of a results folder that isn't one that a run wrote: a link, no regular file, or one of another size.
/// No link below the folder's own folders is followed: `images` itself may be one, which runs write through, too.
/// \param folder  of the results. \param file  as the ledger names it: in the folder, or absolute
/// \param bytes  its size as it was written; 0: not known
/// \throws SlideError in one line that names the file and the cause
void check_own_file(const std::filesystem::path& folder, const std::string& file, std::uint64_t bytes);

}  // namespace slidestream::report
