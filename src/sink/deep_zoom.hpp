#pragma once

#include <filesystem>
#include <optional>

/// \file
/// The names of a Deep Zoom image, which is a folder and two files. They get their final names one after the other: the
/// folder of tiles, the description NAME.dzi, and the page, which says whose image it is.

namespace slidestream {

/// NAME_files for NAME.dzi.
std::filesystem::path deep_zoom_tiles(const std::filesystem::path& image);

/// NAME.view.html for NAME.dzi.
std::filesystem::path deep_zoom_page(const std::filesystem::path& image);

/// Whether the page is there and this program's: so are the description and the tiles.
bool has_own_page(const std::filesystem::path& image);

/// Whether a writer that was killed gave the tiles their final name, and the page not yet. They are this program's.
bool has_half_its_names(const std::filesystem::path& image);

/// The same, and the description has its final name, too.
bool has_all_names_but_the_page(const std::filesystem::path& image);

/// Of an image that isn't whole, what is another program's. Whatever there is of it, its page is there.
std::optional<std::filesystem::path> foreign_part_of_deep_zoom(const std::filesystem::path& image);

/// Gives the parts of such an image the names that they had before, so that it is like any that isn't whole. \throws
/// InUseError, or OutputError with the name that fails
void take_back_names(const std::filesystem::path& image);

}  // namespace slidestream
