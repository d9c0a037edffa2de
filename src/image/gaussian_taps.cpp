#include "image/gaussian_taps.hpp"

#include <cmath>

namespace slidestream {

GaussianTaps gaussian_taps(int radius, double sigma) {
  GaussianTaps taps{};
  taps[0] = 1.0;
  double total = 1.0;
  for (int i = 1; i <= radius; ++i) {
    taps[i] = std::exp(-0.5 * (i / sigma) * (i / sigma));
    total += 2.0 * taps[i];
  }
  for (double& tap : taps) tap /= total;
  return taps;
}

}  // namespace slidestream
