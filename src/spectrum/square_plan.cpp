#include "spectrum/square_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spectrum/positions.hpp"

namespace slidestream {

namespace {

void append_root(std::vector<float>& to, std::size_t numerator, std::size_t denominator) {
  const double angle = -2.0 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  to.push_back(static_cast<float>(std::cos(angle)));
  to.push_back(static_cast<float>(std::sin(angle)));
}

}  // namespace

TransformPlan::TransformPlan(std::size_t all_points) : points(all_points), last(all_points < 16 ? 8 : 16) {
  const std::size_t before = points / last;  // what is left for the steps: 1 to 64
  std::vector<std::size_t> radices;
  if (before > 16) {
    radices = {8, before / 8};
  } else if (before > 1) {
    radices = {before};
  }
  std::size_t block = points;
  first = {0};
  for (const std::size_t radix : radices) {
    TransformStep step{radix, block / radix, {}};
    for (std::size_t j = 0; j < step.apart; ++j) {
      for (std::size_t k = 0; k < radix; ++k) append_root(step.turns, j * k, block);
    }
    // Blocks become `radix` as many; the new ones' coefficients lie between those of the old.
    std::vector<std::uint16_t> finer;
    for (const std::uint16_t begin : first) {
      for (std::size_t k = 0; k < radix; ++k) {
        finer.push_back(static_cast<std::uint16_t>(begin + k * (points / block)));
      }
    }
    first = finer;
    block = step.apart;
    steps.push_back(std::move(step));
  }
}

SquarePlan::SquarePlan(std::size_t all_side) : side(all_side), down(all_side / 2), along(all_side) {
  for (std::size_t k = 0; k <= side / 4; ++k) append_root(roots, k, side);
}

SquareScratch::SquareScratch(std::size_t side, std::size_t width) {
  // Elements of two vectors, a pad after every 16th, and a vector's width more.
  const auto floats = [](std::size_t elements, std::size_t lanes) {
    return (elements + 16 + (elements + 16) / 16) * 2 * lanes;
  };
  for (std::size_t lanes = 4; lanes <= max_lanes; lanes *= 2) {
    spectra = std::max(spectra, (side / 2 + lanes - 1) / lanes * floats(width, lanes));
  }
  line = natural = floats(side, max_lanes);
}

}  // namespace slidestream
