#include "operators/tissue/tissue.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "image/mirror.hpp"
#include "operators/tissue/components.hpp"
#include "operators/tissue/ink.hpp"
#include "system/release_memory.hpp"

namespace slidestream::operators {
namespace {

__extension__ using Wide = unsigned __int128;

/// A fraction of at most 2^126 over at most 2^54.
struct Fraction {
  Wide numerator = 0;
  Wide denominator = 1;
};

bool less(const Fraction& a, const Fraction& b) {
  const Wide whole_a = a.numerator / a.denominator;
  const Wide whole_b = b.numerator / b.denominator;
  if (whole_a != whole_b) return whole_a < whole_b;
  return a.numerator % a.denominator * b.denominator < b.numerator % b.denominator * a.denominator;
}

/// Puts the smaller value first.
void sort_pair(std::uint8_t& a, std::uint8_t& b) {
  const std::uint8_t low = std::min(a, b);
  b = std::max(a, b);
  a = low;
}

/// 19 exchanges, the fewest for nine values (J. L. Smith, Implementing median filters in XC4000E FPGAs, 1996).
std::uint8_t median_of_nine(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint8_t e,
                            std::uint8_t f, std::uint8_t g, std::uint8_t h, std::uint8_t i) {
  sort_pair(b, c), sort_pair(e, f), sort_pair(h, i);
  sort_pair(a, b), sort_pair(d, e), sort_pair(g, h);
  sort_pair(b, c), sort_pair(e, f), sort_pair(h, i);
  sort_pair(a, d), sort_pair(f, i), sort_pair(e, h);
  sort_pair(d, g), sort_pair(b, e), sort_pair(c, f);
  sort_pair(e, h), sort_pair(e, c), sort_pair(g, e);
  sort_pair(e, c);
  return e;
}

}  // namespace

void median3x3(const HostView& out, const ConstHostView& in) {
  require_input(out, in, border_of(1), luminance_format);
  if (out.format != luminance_format) throw std::invalid_argument("the median is one channel of uint8");
  const auto width = static_cast<std::size_t>(out.rect.width);
  // Three rows with their neighbours to the left and to the right.
  std::vector<std::uint8_t> padded(3 * (width + 2));
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t from_y = mirror_symmetric(y + static_cast<std::int64_t>(i) - 1, in.image.height);
      const std::uint8_t* from = in.row<const std::uint8_t>(from_y) - in.rect.x;
      std::uint8_t* row = padded.data() + i * (width + 2);
      row[0] = from[mirror_symmetric(out.rect.x - 1, in.image.width)];
      std::memcpy(row + 1, from + out.rect.x, width);
      row[width + 1] = from[mirror_symmetric(out.rect.right(), in.image.width)];
    }
    const std::uint8_t* up = padded.data();
    const std::uint8_t* mid = up + width + 2;
    const std::uint8_t* down = mid + width + 2;
    auto* to = out.row<std::uint8_t>(y);
    for (std::size_t x = 0; x < width; ++x) {
      to[x] = median_of_nine(up[x], up[x + 1], up[x + 2], mid[x], mid[x + 1], mid[x + 2], down[x], down[x + 1],
                             down[x + 2]);
    }
  }
}

int otsu_threshold(const std::array<std::uint64_t, 256>& histogram) {
  std::uint64_t total = 0;
  std::uint64_t total_sum = 0;
  for (std::size_t v = 0; v < histogram.size(); ++v) {
    total += histogram[v];
    total_sum += v * histogram[v];
  }
  // With n pixels of sum s up to t, of N and S in all, the variance between is (N s - S n)^2 / (N^2 n (N - n)).
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  int best = 0;
  Fraction most;
  for (std::size_t t = 0; t + 1 < histogram.size(); ++t) {
    count += histogram[t];
    sum += t * histogram[t];
    if (count == 0 || count == total) continue;
    const Wide left = Wide{total} * sum;
    const Wide right = Wide{total_sum} * count;
    const Wide apart = left > right ? left - right : right - left;
    const Fraction variance = {apart * apart, Wide{count} * (total - count)};
    if (less(most, variance)) {
      most = variance;
      best = static_cast<int>(t);
    }
  }
  return best;
}

namespace {

/// Values that are counted, by value: those of pixels that `out` doesn't hold.
std::array<std::uint64_t, 256> count_values(const std::vector<std::uint8_t>& values, const Mask& out) {
  std::array<std::uint64_t, 256> histogram{};
  for (std::size_t i = 0; i < values.size(); ++i) histogram[values[i]] += out.pixels[i] == 0 ? 1 : 0;
  return histogram;
}

/// The saturation of glass: the commonest at or below Otsu's threshold, the lowest of equals. 0 where that isn't glass.
int saturation_of_glass(const std::array<std::uint64_t, 256>& histogram) {
  const auto end = histogram.begin() + otsu_threshold(histogram) + 1;
  const auto glass = static_cast<int>(std::max_element(histogram.begin(), end) - histogram.begin());
  return glass <= most_glass ? glass : 0;
}

/// \param glass  its saturation, where the method looks for it
int threshold_of(const TissueRule& rule, const std::array<std::uint64_t, 256>& histogram,
                 const std::optional<int>& glass) {
  if (rule.threshold > 0) return rule.threshold;
  if (glass) return std::max(*glass + above_glass, least_above_glass);
  return rule.method == TissueMethod::otsu ? std::max(otsu_threshold(histogram), least_threshold) : usual_threshold;
}

/// Marks what `values` has as tissue. Where `glass` is given, pixels of the edge are left out that are glass by more
/// than two thirds, as the most saturated of their neighbours tells.
void mark_tissue(Mask& mask, const std::vector<std::uint8_t>& values, const Mask& out, int threshold,
                 const std::optional<int>& glass) {
  const Size size = mask.size;
  const auto is_above = [&](std::size_t i) { return values[i] > threshold && out.pixels[i] == 0; };
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const auto at = static_cast<std::size_t>(y * size.width + x);
      if (!is_above(at)) continue;
      bool at_edge = false;
      int most = 0;
      for (std::int64_t j = std::max<std::int64_t>(y - 1, 0); glass && j < std::min(y + 2, size.height); ++j) {
        for (std::int64_t i = std::max<std::int64_t>(x - 1, 0); i < std::min(x + 2, size.width); ++i) {
          const auto near = static_cast<std::size_t>(j * size.width + i);
          at_edge = at_edge || !is_above(near);
          most = std::max<int>(most, values[near]);
        }
      }
      const bool is_mixed = at_edge && 3 * (values[at] - *glass) < most - *glass;
      mask.pixels[at] = is_mixed ? 0 : 1;
    }
  }
}

}  // namespace

void drop_holes_and_specks(Mask& mask, const std::optional<double>& mpp, const TissueRule& rule) {
  // Without a pixel size holes of any size are filled, and specks stay.
  const double pixel_um2 = mpp ? *mpp * mask.scale.x * *mpp * mask.scale.y : std::numeric_limits<double>::infinity();
  const auto area = [&](const Component& component) { return static_cast<double>(component.pixels) * pixel_um2; };
  const auto fill_holes = [&] {
    if (rule.filled_um2 <= 0.0) return;
    flip_components(mask, 0, Connectivity::four,
                    [&](const Component& hole) { return !hole.at_border && (!mpp || area(hole) <= rule.filled_um2); });
  };
  fill_holes();
  flip_components(mask, 1, Connectivity::eight, [&](const Component& speck) { return area(speck) < rule.least_um2; });
  fill_holes();
}

Mask find_tissue(const ConstHostView& rgb, const GridScale& scale, Size level0, const std::optional<double>& mpp,
                 const TissueRule& rule, std::int64_t* ink_pixels) {
  const Size size = rgb.image;
  if (rgb.rect != Rect{0, 0, size.width, size.height}) {
    throw std::invalid_argument("tissue is found on a whole level");
  }
  Mask out = empty_mask(size, scale, level0);
  // What is dark first: it is left out whether ink is kept or not, and doesn't count as ink.
  mark_dark(out, rgb);
  const std::int64_t found_ink = rule.drops_ink ? mark_ink(out, rgb) : 0;
  if (ink_pixels != nullptr) *ink_pixels = found_ink;
  std::vector<std::uint8_t> values(out.pixels.size());
  std::vector<std::uint8_t> medians(values.size());
  const auto view = [&](std::vector<std::uint8_t>& of) {
    return HostView{reinterpret_cast<std::byte*>(of.data()), size.width, rgb.rect, size, luminance_format};
  };
  saturation(view(values), rgb);
  // What a dark pixel has darkened has no colour, nor has ink that which counts.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = out.pixels[i] == 0 ? values[i] : 0;
  median3x3(view(medians), view(values));
  release_memory(values);
  const std::array<std::uint64_t, 256> histogram = count_values(medians, out);
  std::optional<int> glass;
  if (rule.method == TissueMethod::automatic) glass = saturation_of_glass(histogram);
  Mask mask = empty_mask(size, scale, level0);
  mark_tissue(mask, medians, out, threshold_of(rule, histogram, glass), glass);
  release_memory(medians);
  drop_holes_and_specks(mask, mpp, rule);
  for (std::size_t i = 0; i < mask.pixels.size(); ++i) mask.pixels[i] = out.pixels[i] == 0 ? mask.pixels[i] : 0;
  return mask;
}

}  // namespace slidestream::operators
