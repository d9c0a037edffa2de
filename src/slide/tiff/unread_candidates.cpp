#include "slide/tiff/unread_candidates.hpp"

#include <tiff.h>

#include <algorithm>

#include "slide/tiff/pyramid.hpp"
#include "slide/unread_images.hpp"

namespace slidestream {

void warn_of_unread(const std::vector<const Candidate*>& images, const std::string& what, const std::string& others,
                    std::size_t smaller, std::vector<std::string>& warnings) {
  if (images.empty()) return;
  const Candidate& first = *images.front();
  warnings.push_back(unread_line({first.width, first.height, what, images.size() - 1, others, smaller}));
}

void warn_of_subs(const Candidate& base, const std::vector<Candidate>& subs,
                  const std::vector<const Candidate*>& levels, std::vector<std::string>& warnings) {
  std::vector<const Candidate*> unread;
  std::vector<const Candidate*> in_strips;
  std::vector<const Candidate*> without_pixels;
  for (const Candidate& sub : subs) {
    if (!sub.fault.empty() || std::ranges::find(levels, &sub) != levels.end()) continue;
    const bool is_in_strips = !sub.tiled && sub.associated.empty() && is_reduction(base.size(), sub.size());
    const RawEntry* strips = sub.raw.find(TIFFTAG_STRIPOFFSETS);
    const bool has_pixels = strips != nullptr && strips->count > 0;
    (!is_in_strips ? unread : has_pixels ? in_strips : without_pixels).push_back(&sub);
  }
  warn_of_unread(unread, "is a SubIFD and no level of the slide", " more of them", 0, warnings);
  warn_of_unread(without_pixels, "is a SubIFD without tiles or strips", " more of them", 0, warnings);
  warn_of_unread(in_strips, "is a SubIFD in strips, and levels need tiles", " more of them", 0, warnings);
}

void warn_of_lost_pyramid(const std::vector<const Candidate*>& images, const std::vector<const Candidate*>& levels,
                          std::vector<std::string>& warnings) {
  std::vector<const Candidate*> lost;
  for (const Candidate* image : images) {
    const auto is_as_large = [image](const Candidate* other) { return other->size() == image->size(); };
    if (!has_shape_of(levels.front()->size(), image->size())) continue;
    if (std::ranges::any_of(levels, is_as_large) || std::ranges::any_of(lost, is_as_large)) continue;
    lost.push_back(image);
  }
  if (lost.size() < 2) return;
  warn_of_unread(lost, "has the slide's shape, but is no level of it", " more of them", 0, warnings);
}

}  // namespace slidestream
