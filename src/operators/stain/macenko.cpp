#include "operators/stain/macenko.hpp"

#include <slidestream/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace slidestream::operators {
namespace {

constexpr double least_density = 0.15;
constexpr double low_percentile = 0.01;
constexpr double high_percentile = 0.99;
constexpr double largest_entry = 1024.0;
constexpr int least_background = 170;
constexpr std::int64_t least_background_pixels = 1000;

using Symmetric = std::array<Density, 3>;

/// OD of every sample, by channel.
using DensityTables = std::array<std::array<double, 256>, 3>;

DensityTables densities(const WhitePoint& white) {
  DensityTables tables{};
  for (std::size_t j = 0; j < 3; ++j) {
    for (std::size_t v = 0; v < white[j]; ++v) {
      tables[j][v] = -std::log(static_cast<double>(v + 1) / static_cast<double>(white[j] + 1));
    }
  }
  return tables;
}

double dot(const Density& a, const Density& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// Densities of the pixels that count, in their order.
std::vector<Density> stained_densities(std::span<const std::uint8_t> rgb, const WhitePoint& white) {
  const DensityTables tables = densities(white);
  std::vector<Density> stained;
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) {
    const Density od = {tables[0][rgb[i]], tables[1][rgb[i + 1]], tables[2][rgb[i + 2]]};
    if (od[0] >= least_density && od[1] >= least_density && od[2] >= least_density) stained.push_back(od);
  }
  return stained;
}

/// Of at least one value, which are put into another order. Position q (n - 1), linear between neighbours.
double percentile(std::vector<double>& values, double q) {
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), below, values.end());
  const double part = position - std::floor(position);
  if (part == 0.0) return *below;
  return *below + part * (*std::min_element(below + 1, values.end()) - *below);
}

/// Eigenvectors of a symmetric matrix, largest eigenvalue first, by Jacobi's rotations (Golub and Van Loan, 8.5).
std::array<Density, 3> eigenvectors(Symmetric a) {
  Symmetric vectors = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};  // rows
  constexpr int enough_sweeps = 30;
  for (int sweep = 0; sweep < enough_sweeps; ++sweep) {
    for (const auto& [p, q] : {std::pair<std::size_t, std::size_t>{0, 1}, {0, 2}, {1, 2}}) {
      if (a[p][q] == 0.0) continue;
      const double tau = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
      const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::sqrt(1.0 + tau * tau));
      const double c = 1.0 / std::sqrt(1.0 + t * t);
      const double s = t * c;
      for (std::size_t k = 0; k < 3; ++k) {
        const double from_p = a[k][p];
        const double from_q = a[k][q];
        a[k][p] = c * from_p - s * from_q;
        a[k][q] = s * from_p + c * from_q;
      }
      for (std::size_t k = 0; k < 3; ++k) {
        const double from_p = a[p][k];
        const double from_q = a[q][k];
        a[p][k] = c * from_p - s * from_q;
        a[q][k] = s * from_p + c * from_q;
        const double of_p = vectors[p][k];
        const double of_q = vectors[q][k];
        vectors[p][k] = c * of_p - s * of_q;
        vectors[q][k] = s * of_p + c * of_q;
      }
      a[p][q] = a[q][p] = 0.0;
    }
  }
  std::array<std::size_t, 3> order = {0, 1, 2};
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i][i] > a[j][j]; });
  std::array<Density, 3> sorted{};
  for (std::size_t i = 0; i < 3; ++i) {
    sorted[i] = vectors[order[i]];
    if (sorted[i][0] < 0.0) {
      for (double& entry : sorted[i]) entry = -entry;
    }
  }
  return sorted;
}

/// Rows give the amounts of the two stains in a density by least squares.
std::array<Density, 2> pseudoinverse(const std::array<Density, 2>& colours) {
  const double aa = dot(colours[0], colours[0]);
  const double ab = dot(colours[0], colours[1]);
  const double bb = dot(colours[1], colours[1]);
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-12)) throw Error("the two stains have one colour");
  std::array<Density, 2> rows{};
  for (std::size_t j = 0; j < 3; ++j) {
    rows[0][j] = (bb * colours[0][j] - ab * colours[1][j]) / determinant;
    rows[1][j] = (aa * colours[1][j] - ab * colours[0][j]) / determinant;
  }
  return rows;
}

}  // namespace

const StainBasis& published_stains() {
  static const StainBasis published = {
      {{{0.5626, 0.7201, 0.4062}, {0.2159, 0.8012, 0.5581}}}, {1.9705, 1.0308}, usual_white};
  return published;
}

WhitePoint measure_white(const ConstHostView& rgb, const Mask& tissue) {
  if (rgb.format != rgb_format || rgb.rect != Rect{0, 0, tissue.size.width, tissue.size.height}) {
    throw std::invalid_argument("white is measured on RGB of the mask's size");
  }
  std::array<std::array<std::int64_t, 256>, 3> counts{};
  std::int64_t others = 0;
  std::int64_t pure = 0;
  for (std::int64_t y = 0; y < tissue.size.height; ++y) {
    const auto* pixel = rgb.row<const std::uint8_t>(y);
    for (const std::uint8_t is_tissue : tissue.row(y)) {
      const auto [least, most] = std::minmax({pixel[0], pixel[1], pixel[2]});
      if (is_tissue == 0 && least == 255) {
        ++pure;
      } else if (is_tissue == 0 && least >= least_background) {
        ++others;
        for (std::size_t j = 0; j < 3; ++j) ++counts[j][pixel[j]];
      }
      pixel += 3;
    }
  }
  if (others < least_background_pixels) {
    if (others + pure < least_background_pixels) return usual_white;
    for (auto& of_channel : counts) of_channel[255] += pure;
    others += pure;
  }
  WhitePoint white{};
  for (std::size_t j = 0; j < 3; ++j) {
    std::int64_t below = 0;
    std::size_t v = 0;
    while ((below += counts[j][v]) < (others + 1) / 2) ++v;
    white[j] = static_cast<std::uint8_t>(v);
  }
  return white;
}

StainBasis fit_stains(std::span<const std::uint8_t> rgb, const WhitePoint& white) {
  const std::vector<Density> stained = stained_densities(rgb, white);
  const std::int64_t count = std::ssize(stained);
  if (count < least_stained_pixels) {
    throw Error("only " + std::to_string(count) +
                " stained pixels of tissue in the blocks that were looked at; stains need " +
                std::to_string(least_stained_pixels));
  }
  Density mean{};
  for (const Density& od : stained) {
    for (std::size_t j = 0; j < 3; ++j) mean[j] += od[j];
  }
  for (double& entry : mean) entry /= static_cast<double>(count);
  Symmetric covariance{};
  for (const Density& od : stained) {
    const Density off = {od[0] - mean[0], od[1] - mean[1], od[2] - mean[2]};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = i; j < 3; ++j) covariance[i][j] += off[i] * off[j];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = i; j < 3; ++j) covariance[j][i] = covariance[i][j] /= static_cast<double>(count - 1);
  }
  const std::array<Density, 3> axes = eigenvectors(covariance);

  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (const Density& od : stained) values.push_back(std::atan2(dot(od, axes[1]), dot(od, axes[0])));
  StainBasis found;
  found.white = white;
  for (std::size_t i = 0; i < 2; ++i) {
    const double angle = percentile(values, i == 0 ? low_percentile : high_percentile);
    for (std::size_t j = 0; j < 3; ++j) {
      found.colours[i][j] = std::cos(angle) * axes[0][j] + std::sin(angle) * axes[1][j];
    }
  }
  if (!(found.colours[0][0] > found.colours[1][0])) std::swap(found.colours[0], found.colours[1]);

  const std::array<Density, 2> amounts = pseudoinverse(found.colours);
  for (std::size_t i = 0; i < 2; ++i) {
    values.clear();
    for (const Density& od : stained) values.push_back(dot(amounts[i], od));
    found.maxima[i] = percentile(values, high_percentile);
    if (!(found.maxima[i] > 0.0)) throw Error("the slide has only one of the two stains");
  }
  return found;
}

StainMatrix stain_matrix(const StainBasis& slide, const StainBasis& reference, StainOutput output) {
  const std::array<Density, 2> amounts = pseudoinverse(slide.colours);
  StainMatrix matrix{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t j = 0; j < 3; ++j) {
      double entry = 0.0;
      for (std::size_t i = 0; i < 2; ++i) {
        const bool wanted = output == StainOutput::normalised || (output == StainOutput::hematoxylin) == (i == 0);
        if (wanted) entry += reference.colours[i][c] * (reference.maxima[i] / slide.maxima[i]) * amounts[i][j];
      }
      if (!(std::abs(entry) < largest_entry)) throw Error("the two stains can't be told apart");
      matrix[c][j] = static_cast<std::int32_t>(std::nearbyint(65536.0 * entry));
    }
  }
  return matrix;
}

StainMap stain_map(const StainBasis& slide, const StainBasis& reference, StainOutput output) {
  return {stain_matrix(slide, reference, output), slide.white, reference.white};
}

}  // namespace slidestream::operators
