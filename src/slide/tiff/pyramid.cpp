#include "slide/tiff/pyramid.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace slidestream {
namespace {

double as_real(std::uint64_t n) { return static_cast<double>(n); }

bool is_smaller(const ImageSize& larger, const ImageSize& smaller) {
  return smaller.width > 0 && smaller.height > 0 && smaller.width < larger.width && smaller.height < larger.height;
}

/// Whether pixels of the smaller one are 2, 3, ... of the larger one's, but for 2 pixels or a share of its rest.
bool has_whole_factor(std::uint64_t larger, std::uint64_t smaller) {
  const double factor = std::max(2.0, std::round(as_real(larger) / as_real(smaller)));
  return std::abs(as_real(smaller) * factor - as_real(larger)) <= std::max(2.0 * factor, 0.02 * as_real(larger));
}

bool is_share(std::uint64_t larger, std::uint64_t smaller, double factor) {
  const double expected = as_real(larger) / factor;
  return std::abs(as_real(smaller) - expected) <= std::max(2.0, 0.002 * expected);
}

}  // namespace

bool has_shape_of(const ImageSize& larger, const ImageSize& smaller) {
  if (!is_smaller(larger, smaller)) return false;
  const double aspect = as_real(larger.width) / as_real(larger.height);
  const auto close = [](double found, double expected) {
    return std::abs(found - expected) <= std::max(2.0, 0.02 * expected);
  };
  return close(as_real(smaller.height), as_real(smaller.width) / aspect) ||
         close(as_real(smaller.width), as_real(smaller.height) * aspect);
}

bool is_reduction(const ImageSize& larger, const ImageSize& smaller) {
  return has_shape_of(larger, smaller) &&
         (has_whole_factor(larger.width, smaller.width) || has_whole_factor(larger.height, smaller.height));
}

bool has_size_of_level(const ImageSize& larger, const ImageSize& smaller) {
  if (!is_smaller(larger, smaller)) return false;
  // The longer axis says the factor most exactly.
  const bool wide = larger.width >= larger.height;
  const double ratio =
      wide ? as_real(larger.width) / as_real(smaller.width) : as_real(larger.height) / as_real(smaller.height);
  const double factor = std::max(2.0, std::round(ratio));
  return is_share(larger.width, smaller.width, factor) && is_share(larger.height, smaller.height, factor);
}

std::vector<std::size_t> pyramid_below(const ImageSize& base, const std::vector<ImageSize>& images) {
  struct Step {
    std::size_t image;
    std::size_t length = 1;  ///< of the longest pyramid that begins with it
    std::size_t next = 0;    ///< in it; itself: none
  };
  const auto key = [&](std::size_t i) { return std::pair(images[i].width, images[i].height); };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (has_size_of_level(base, images[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  order.erase(std::unique(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) == key(b); }),
              order.end());
  std::vector<Step> steps;
  for (std::size_t i = 0; i < order.size(); ++i) steps.push_back({order[i], 1, i});
  for (std::size_t i = steps.size(); i-- > 0;) {
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      if (steps[j].length + 1 <= steps[i].length) continue;
      if (!has_size_of_level(images[steps[i].image], images[steps[j].image])) continue;
      steps[i].length = steps[j].length + 1;
      steps[i].next = j;
    }
  }
  std::vector<std::size_t> levels;
  if (steps.empty()) return levels;
  const auto longest =
      std::max_element(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.length < b.length; });
  for (auto at = static_cast<std::size_t>(longest - steps.begin());; at = steps[at].next) {
    levels.push_back(steps[at].image);
    if (steps[at].next == at) return levels;
  }
}

}  // namespace slidestream
