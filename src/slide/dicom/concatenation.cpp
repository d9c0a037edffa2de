#include "slide/dicom/concatenation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "config/quoted_text.hpp"

namespace slidestream::dicom {

void check_parts(const std::vector<OpenFile*>& files) {
  if (files.front()->instance.concatenation.empty()) return;
  std::int64_t expected = 1;
  std::int64_t parts = 0;
  for (const OpenFile* file : files) {
    const Instance& instance = file->instance;
    const Refusal refuse(*file);
    if (expected > 1 && instance.part == expected - 1) {
      refuse("InConcatenationNumber (0020,9162) is " + std::to_string(instance.part) + ", as in another file");
    }
    if (instance.part != expected) refuse("part " + std::to_string(expected) + " of its concatenation is missing");
    if (parts != 0 && instance.parts != 0 && instance.parts != parts) {
      refuse("InConcatenationTotalNumber (0020,9163) is " + std::to_string(instance.parts) + ", and " +
             std::to_string(parts) + " in a part before");
    }
    if (instance.parts != 0) parts = instance.parts;
    ++expected;
  }
  if (parts != 0 && parts != static_cast<std::int64_t>(files.size())) {
    Refusal{*files.back()}("its concatenation has " + std::to_string(parts) + " parts, and " +
                           std::to_string(files.size()) + " are there");
  }
}

void check_organisation(const OpenFile& part, const Instance& first) {
  const std::string& own = part.instance.organisation;
  // One that says nothing goes by the places of its frames.
  if (own.empty() || first.organisation.empty() || own == first.organisation) return;
  Refusal{part}("DimensionOrganizationType (0020,9311) is " + shown_code(own) + ", and " +
                shown_code(first.organisation) + " in the first part");
}

std::string compare_orientations(const std::vector<OpenFile*>& files) {
  constexpr double least_turn = 0.1;  // cosines of about 6 degrees, and of rounding
  const Instance* said = nullptr;
  for (const OpenFile* file : files) {
    const Instance& part = file->instance;
    if (!part.orientation) continue;
    if (said == nullptr) said = &part;
    const bool differ = !std::equal(part.orientation->begin(), part.orientation->end(), said->orientation->begin(),
                                    [](double a, double b) { return std::abs(a - b) < least_turn; });
    if (!differ) continue;
    return "its ImageOrientationSlide (0048,0102) of part " + std::to_string(part.part) + " isn't that of part " +
           std::to_string(said->part) + ": the pixels of all parts are read as they are stored";
  }
  return {};
}

std::string compare_count(const std::vector<OpenFile*>& files, const Level& level, const LevelCoding& coding) {
  const Instance& first = files.front()->instance;
  const bool says_count =
      std::any_of(files.begin(), files.end(), [](const OpenFile* file) { return file->instance.parts != 0; });
  if (first.concatenation.empty() || says_count || first.organisation == "TILED_FULL") return {};
  const auto lacking =
      std::count_if(coding.tiles.begin(), coding.tiles.end(), [](const TileRange& tile) { return tile.offset == 0; });
  if (lacking == 0) return {};
  return "the concatenation of its image of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
         " pixels doesn't say how many parts it has, and " + std::to_string(lacking) + " of " +
         std::to_string(coding.tiles.size()) + " tiles have no frame: they are white, and a part may be missing";
}

}  // namespace slidestream::dicom
