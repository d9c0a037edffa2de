#include "slide/tiff/level_candidates.hpp"

#include <tiff.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "slide/padded_level.hpp"

namespace slidestream {
namespace {

// Each may be decoded whole to be compared. With all of them a slide has fewer levels than it may have.
constexpr std::size_t most_spares_of_a_size = 3;
constexpr std::size_t most_spares = 16;

/// Of images that may be levels: larger ones are none.
Size signed_size(const Candidate& image) {
  return {static_cast<std::int64_t>(image.width), static_cast<std::int64_t>(image.height)};
}

}  // namespace

std::size_t largest_image(const std::vector<Candidate>& main) {
  const bool has_tiles = std::ranges::any_of(main, [](const Candidate& c) { return c.tiled && c.associated.empty(); });
  const bool is_aperios = has_tiles && main.front().is_aperios;
  const auto rank = [&](const Candidate& c) {
    const bool is_candidate = c.tiled || !has_tiles || (c.associated.empty() && !is_aperios);
    const double area = static_cast<double>(c.width) * static_cast<double>(c.height);
    return std::tuple(is_candidate, area, c.associated.empty(), c.tiled);
  };
  const auto found =
      std::ranges::max_element(main, [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return static_cast<std::size_t>(found - main.begin());
}

std::vector<std::size_t> images_as_large(const std::vector<Candidate>& main, const Candidate& one) {
  constexpr std::uint64_t reduced_or_mask = FILETYPE_REDUCEDIMAGE | FILETYPE_MASK;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < main.size(); ++i) {
    const Candidate& other = main[i];
    const bool same =
        one.width > 0 && other.width == one.width && other.height == one.height && other.tiled == one.tiled;
    const bool whole = (other.type & reduced_or_mask) == 0;
    if (&other == &one || (same && whole && other.associated.empty())) found.push_back(i);
  }
  return found;
}

bool may_be_level(const Candidate& candidate) {
  return candidate.tiled && candidate.associated.empty() && !candidate.is_beside;
}

std::vector<const Candidate*> reductions(const Candidate& base, const std::vector<Candidate>& subs) {
  std::vector<const Candidate*> smaller;
  for (const Candidate& sub : subs) {
    if (may_be_level(sub) && is_reduction(base.size(), sub.size())) smaller.push_back(&sub);
  }
  const auto key = [](const Candidate* c) { return std::pair(c->width, c->height); };
  std::ranges::stable_sort(smaller, [&](auto* a, auto* b) { return key(a) > key(b); });
  const auto end = std::unique(smaller.begin(), smaller.end(), [&](auto* a, auto* b) { return key(a) == key(b); });
  smaller.erase(end, smaller.end());
  return smaller;
}

std::vector<const Candidate*> cut_candidates(const Candidate& base, const std::vector<const Candidate*>& levels,
                                             const std::vector<const Candidate*>& images) {
  // Those of one factor differ by less.
  constexpr double most_alike = 0.9;
  const auto are_alike = [](const Candidate* a, const Candidate* b) {
    const auto [small, large] = std::minmax(a->width, b->width);
    return static_cast<double>(small) > most_alike * static_cast<double>(large);
  };
  std::vector<const Candidate*> found;
  for (const Candidate* image : images) {
    if (found.size() == most_spares) break;
    const auto is_near = [&](const Candidate* other) { return are_alike(other, image); };
    const auto factor = static_cast<std::uint64_t>(factor_of_cut(signed_size(base), signed_size(*image)));
    if ((image->type & FILETYPE_REDUCEDIMAGE) == 0 || !std::has_single_bit(factor)) continue;
    if (std::ranges::any_of(levels, is_near) || std::ranges::any_of(found, is_near)) continue;
    found.push_back(image);
  }
  std::ranges::stable_sort(found, [](auto* a, auto* b) { return a->width > b->width; });
  return found;
}

std::vector<const Candidate*> with_spares(const std::vector<const Candidate*>& levels,
                                          const std::vector<const Candidate*>& images) {
  std::vector<const Candidate*> result;
  std::size_t spares = 0;
  for (const Candidate* level : levels) {
    result.push_back(level);
    std::size_t of_size = 0;
    for (const Candidate* image : images) {
      if (of_size == most_spares_of_a_size || spares == most_spares) break;
      if (image == level || image->size() != level->size()) continue;
      result.push_back(image);
      ++of_size;
      ++spares;
    }
  }
  return result;
}

}  // namespace slidestream
