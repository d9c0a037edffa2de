#include "slide/tiff/plane_levels.hpp"

#include <algorithm>
#include <string>

namespace slidestream {
namespace {

/// The only plane of the image's focus; nothing unless all planes say theirs.
std::optional<std::size_t> plane_by_focus(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes,
                                          const Candidate& image) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::string& focus = main[planes[i]].focus;
    const bool is_it = focus == image.focus;
    if (focus.empty() || (is_it && found)) return std::nullopt;
    if (is_it) found = i;
  }
  return found;
}

}  // namespace

std::optional<std::size_t> plane_of(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes,
                                    const Candidate& image) {
  if (planes.size() == 1) return 0;
  if (!image.focus.empty()) {
    if (const auto found = plane_by_focus(main, planes, image)) return found;
  }
  std::vector<const Candidate*> group;
  for (const Candidate& other : main) {
    if (other.width == image.width && other.height == image.height && other.tiled) group.push_back(&other);
  }
  if (group.size() != planes.size()) return std::nullopt;
  const auto at = std::ranges::find(group, &image);
  if (at == group.end()) return std::nullopt;
  return static_cast<std::size_t>(at - group.begin());
}

bool is_level_of_other_plane(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes,
                             std::size_t plane, const std::vector<const Candidate*>& levels, const Candidate& image) {
  if (!image.tiled || !image.associated.empty() || image.is_beside) return false;
  const std::optional<std::size_t> of = plane_of(main, planes, image);
  if (!of || *of == plane) return false;
  const auto is_as_large = [&image](const Candidate* level) { return level->size() == image.size(); };
  if (std::ranges::any_of(levels, is_as_large)) return true;
  return !image.focus.empty() && has_size_of_level(levels.front()->size(), image.size());
}

}  // namespace slidestream
