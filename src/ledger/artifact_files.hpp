#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_set>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"

/// \file
/// The files of artifacts beside a ledger.

namespace slidestream {

/// Where a file lies that a ledger in the folder lists. Joined results list files of folders in theirs; once moved to
/// `earlier-N`, those are found in the folder above.
std::filesystem::path place_of(const std::filesystem::path& folder, const std::string& file);

/// What is wrong with a file or folder that was made, by kind and size: "FILE is missing", that it is no file, or that
/// its size is another; empty: nothing. Links are followed. Its content isn't read.
/// \param code  gets an errno where it can't be looked at, or isn't there; else 0
std::string fault_of(const std::filesystem::path& file, const Artifact& made, int& code);

/// What is wrong with the first of the files that isn't there as it was made, as `fault_of` says it; empty when all
/// are there. \throws ConfigError where one can't be looked at
std::string first_unmade(const std::filesystem::path& folder, const std::vector<Artifact>& artifacts);

/// How many of the files are links themselves, which `first_unmade` follows. \param first  gets the first one's path if
/// it is empty.
std::size_t links_among(const std::filesystem::path& folder, const std::vector<Artifact>& artifacts,
                        std::string& first);

/// Whether a file or folder is one that was being made of a slide with one of the names:
/// NAME.OPERATOR.partial.EXTENSION or NAME.OPERATOR.partial_files. Earlier versions also had NAME.partial.h5,
/// NAME.partial.pt and NAME.OPERATOR.partial.partial.EXTENSION.
bool is_unfinished(const std::string& file, const std::unordered_set<std::string>& names);

/// A line that says so. \param links  at least one
std::string line_of_links(std::size_t links, const std::string& first);

/// Removes the files that lie in the folder.
void remove_artifacts(const std::filesystem::path& folder, const std::vector<Artifact>& artifacts) noexcept;

/// The folder for files of a slide that failed when it was done again.
inline constexpr const char* earlier_of_failed = "earlier-failed";

/// What became of files that a ledger lists no more.
struct SetAside {
  std::filesystem::path folder;  ///< where they are now; empty: none moved
  std::string refusal;           ///< names the first that stays, and why it does; empty: none is known to stay
};

/// Moves files that a ledger listed and lists no more into `earlier_of_failed`, under the same names. Where one of
/// these is taken there, all move into its folder 2, or the next number: nothing is replaced. Files outside of the
/// ledger's folder (a link leads out of it), those with another ledger, and names that runs give no files aren't
/// touched or told of. No file moves through a link.
SetAside set_aside(const std::filesystem::path& folder, const std::vector<std::string>& files) noexcept;

/// Folders of a run with files of slides.
inline constexpr std::array slide_folders = {"images", "features", "coords"};

/// Files of a run, as its ledger lists them.
struct ListedFiles {
  std::vector<std::filesystem::path> files;  ///< relative to the folder
  std::size_t passed_over = 0;               ///< names in the list that runs give no files
  std::string first_passed_over;             ///< the first of these
};

/// The artifacts that a ledger lists, as far as they lie in `maps` or `slide_folders` of its folder (no link leads out
/// of it) and with no other ledger, unfinished files of its slides' names, files of slides that a process died at
/// (`slides_with_files`), and those of `slide_folders` that are links.
/// \throws OutputError, also where one can't be looked at; UnreadableError where the list is damaged.
ListedFiles files_of_slides(Database& database, const std::filesystem::path& folder);

/// The artifacts and the map that a slide's row lists, also while the slide is to be done again; none where the list of
/// artifacts isn't what was written. Files whose names have passed to another slide aren't among them.
std::vector<std::string> files_of_slide(Database& database, std::int64_t slide);

/// Whether a file or folder of `slide_folders` may be one of the slide with this name, and whole; also where that can't
/// be said.
bool may_have_files(const std::filesystem::path& folder, const std::string& name) noexcept;

/// The path that an artifact of the folder `from` has in a ledger of the folder `to`: absolute unless it lies in there.
std::string artifact_elsewhere(const std::filesystem::path& from, const std::string& file,
                               const std::filesystem::path& to);

}  // namespace slidestream
