#pragma once

#include <filesystem>
#include <string>

#include "sink/image_sink.hpp"

/// \file
/// A page that shows the tiles beside it.

namespace slidestream {

/// One HTML file with everything in it, which asks for nothing but tiles: FOLDER/LEVEL/COLUMN_ROW.jpg, level 0 the
/// smallest, and asks again for those that aren't there yet. \param folder  where they lie when the image is whole.
/// \param partial_folder  and until then; both beside the page.
std::string view_page(const PyramidLayout& layout, const ImageDescription& description, const std::string& folder,
                      const std::string& partial_folder);

/// Whether what has this name is such a page, of any version; true where there is nothing, or an empty file.
bool is_view_page(const std::filesystem::path& file);

}  // namespace slidestream
