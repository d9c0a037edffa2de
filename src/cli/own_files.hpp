#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <slidestream/error.hpp>

#include "config/suggest.hpp"
#include "system/there.hpp"

/// \file
/// Which of the files that are to be written are there already, and whose they are.

namespace slidestream::cli {

/// What each line about a file has that a slide may not replace, and that --overwrite lets it replace.
inline constexpr const char* offer_to_overwrite = "; --overwrite replaces it";

/// Why a file or link isn't replaced, and how it would be, in a line.
std::string refusal(const std::filesystem::path& path);

/// \throws Fault where storage doesn't say what has the name: it isn't taken for absent, and replaced. Where rights are
/// missing nothing can be replaced, and who writes says so.
template <class Fault>
void check_visible(const std::filesystem::path& path, const std::error_code& code) {
  if (!code || says_absent(code) || code == std::errc::permission_denied) return;
  throw Fault(one_line(path.string()) + ": can't be looked at: " + code.message());
}

template <class Fault>
void check_visible(const std::filesystem::path& path) {
  std::error_code code;
  [[maybe_unused]] const std::filesystem::file_status status = std::filesystem::symlink_status(path, code);
  check_visible<Fault>(path, code);
}

/// Refuses to write over what this program didn't write. \throws ConfigError with what to do.
/// \param overwrite  whatever is there may be replaced.
void check_target(const std::filesystem::path& path, bool overwrite);

enum class PageOf { report, image };

/// The same for an HTML page: a report doesn't replace the page of a Deep Zoom image, whose part that is, nor is a
/// report replaced by one.
void check_page_target(const std::filesystem::path& page, PageOf of, bool overwrite);

/// The same as `check_target` for the name that an image has while it is written, and what goes with it. A file that
/// this program left there says so, or is empty.
void check_partial_target(const std::filesystem::path& partial, bool overwrite);

/// The same for what may also be a folder, which is replaced as a whole.
void check_folder_target(const std::filesystem::path& path, bool overwrite);

/// The same for the file of progress, which is removed and made again while a run works. Pipes, sockets and devices are
/// refused in any case. A folder isn't: it stays, and the run says that it can't write the file.
void check_progress_target(const std::filesystem::path& path, bool overwrite);

/// Refuses folders, pipes and devices that have names of maps: no map takes their place, and who writes it says so only
/// when all is computed. \throws ConfigError
/// \param folder  of all results
void check_map_places(const std::filesystem::path& folder, const std::vector<std::string>& maps);

}  // namespace slidestream::cli
