#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "report/pictures.hpp"

/// \file
/// Files that operators made of a slide.

namespace slidestream::report {

/// The address of a file in a page: relative to the page's folder, with all but plain characters encoded.
std::string link_to(const std::filesystem::path& file, const std::filesystem::path& page);

/// [[operator, product, address, bytes], ...] of the files that were made of a slide.
/// \param folder  of the run. \param page  that shows them.
nlohmann::ordered_json files_json(const SlideResult& slide, const std::filesystem::path& folder,
                                  const std::filesystem::path& page);

/// Those that pictures can be made of.
std::vector<MadeImage> made_images(const SlideResult& slide, const std::filesystem::path& folder);

}  // namespace slidestream::report
