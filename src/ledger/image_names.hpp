#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "output/names.hpp"

namespace slidestream {

struct ManifestEntry;

/// Fills in the empty ones of `names`, one for each slide of the manifest: what the names of its images begin with.
/// That is the file's stem for the first slide that has it, and for the others the stem with 8 hexadecimal digits of
/// XXH64 of the canonical path (16, and a number, where even that is taken); so for stems that end in ".partial". Each
/// name is there once, also where a file system doesn't tell capital from small letters. `others` are names that slides
/// outside the manifest have. \param portable  names are valid on Windows, too (`portable_name`).
void fill_image_names(const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& others,
                      std::vector<std::string>& names, bool portable = true);

/// Whether `fill_image_names` may give a slide that name. One that was named by another path then, such as a link, has
/// the stem of that or of the canonical path.
bool may_name_images(std::string_view name, const ManifestEntry& slide, bool portable);

/// Whether it can be such a name: it is one in a folder.
bool is_image_name(std::string_view name);

}  // namespace slidestream
