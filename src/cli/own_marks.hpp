#pragma once

#include <filesystem>
#include <optional>

/// \file
/// What files and folders say of themselves: whether this program made them, and whether there is something to lose.

namespace slidestream::cli {

/// What the end of a name says of a file or folder. All is false for other names.
struct NamedKind {
  bool is_folder = false;  ///< an image of chunks or instances
  bool is_deep_zoom = false;
  bool is_table = false;
  bool always_says_so = false;  ///< false: a file may be this program's and not say it
};
NamedKind named_kind(const std::filesystem::path& path);

/// What lies there itself, be it a link; not_found also where that can't be said.
std::filesystem::file_type type_at(const std::filesystem::path& path);
bool is_link(const std::filesystem::path& path);

/// Whether this program wrote a file or folder, by what it says of itself. False for kinds that don't say it, such as
/// .npy. An empty file has nothing to lose and counts as its own.
bool is_own(const std::filesystem::path& path);

/// Whether this program wrote an image as a file that folders give as a slide: TIFF, or an instance of DICOM. What
/// `synth` makes is none.
bool is_own_image(const std::filesystem::path& slide);

/// Whether a folder is an image of the kinds that are folders, whoever made it.
bool holds_image(const std::filesystem::path& folder);

/// Whether a folder is such an image, and this program wrote some of it, whatever else somebody put there.
bool holds_own_image(const std::filesystem::path& folder);

/// Whether something is lost with a folder that has no mark. Who writes refuses what no image's folder holds.
bool is_lost_with(const std::filesystem::path& folder);

/// What isn't of this program under the name that an image has while it is written. Those have their mark from the
/// first byte on (`PartialFile`), or are empty. Who writes refuses folders in the place of files, and the other way
/// round.
std::optional<std::filesystem::path> foreign_partial(const std::filesystem::path& partial);

/// Whether a name that an image has while it is written has more of one than an empty file or folder.
bool is_begun(const std::filesystem::path& partial);

}  // namespace slidestream::cli
