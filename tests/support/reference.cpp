#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <string>

namespace slidestream::test {

namespace {

using Complex = std::complex<double>;

std::int64_t mirror(std::int64_t i, std::int64_t n) {
  if (i >= 0 && i < n) return i;
  const std::int64_t period = 2 * (n - 1);
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}

/// One direction of the Gaussian: along x with step 1, or along y.
std::vector<double> smoothed_along(const std::vector<double>& in, std::int64_t width, std::int64_t height, bool along_x,
                                   const std::vector<double>& taps) {
  const std::int64_t radius = static_cast<std::int64_t>(taps.size()) / 2;
  std::vector<double> out(in.size());
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double sum = 0.0;
      for (std::int64_t i = -radius; i <= radius; ++i) {
        const std::int64_t from = along_x ? y * width + mirror(x + i, width) : mirror(y + i, height) * width + x;
        sum += taps[static_cast<std::size_t>(i + radius)] * in[static_cast<std::size_t>(from)];
      }
      out[static_cast<std::size_t>(y * width + x)] = sum;
    }
  }
  return out;
}

/// Of finite numbers; the library's looks for others.
Complex product(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Roots of unity: e^(-2 pi i k / count).
std::vector<Complex> roots_of_unity(std::size_t count) {
  std::vector<Complex> roots(count);
  for (std::size_t k = 0; k < count; ++k) {
    roots[k] = std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(count));
  }
  return roots;
}

/// Halves even lengths, and sums odd ones by definition. `roots` are those of the whole length; `step` apart here.
/// Takes no memory, which would take longer than the sums do.
void dft(Complex* out, const Complex* samples, std::size_t step, std::size_t count, const std::vector<Complex>& roots) {
  if (count % 2 == 0) {
    const std::size_t half = count / 2;
    dft(out, samples, 2 * step, half, roots);
    dft(out + half, samples + step, 2 * step, half, roots);
    for (std::size_t k = 0; k < half; ++k) {
      const Complex even = out[k];
      const Complex turned = product(roots[k * step], out[k + half]);
      out[k] = even + turned;
      out[k + half] = even - turned;
    }
    return;
  }
  for (std::size_t k = 0; k < count; ++k) {
    out[k] = 0.0;
    for (std::size_t i = 0; i < count; ++i) out[k] += product(samples[i * step], roots[i * k % count * step]);
  }
}

/// The two-dimensional DFT: rows, then columns.
std::vector<Complex> dft_2d(std::vector<Complex> square, std::size_t side) {
  const std::vector<Complex> roots = roots_of_unity(side);
  std::vector<Complex> row(side);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<Complex> turned(square.size());
    for (std::size_t y = 0; y < side; ++y) {
      dft(row.data(), square.data() + y * side, 1, side, roots);
      for (std::size_t x = 0; x < side; ++x) turned[x * side + y] = row[x];
    }
    square = std::move(turned);
  }
  return square;
}

double value_of(const Complex& coefficient, ValueKind kind) {
  const double magnitude = std::sqrt(std::norm(coefficient));
  switch (kind) {
    case ValueKind::log1p_db:
      return 20.0 * std::log10(1.0 + magnitude);
    case ValueKind::db:
      return 20.0 * std::log10(std::max(magnitude, 1e-6));
    case ValueKind::linear:
      break;
  }
  return magnitude;
}

double deviation(double sum, double square_sum, double count) {
  const double mean = sum / count;
  return std::sqrt(std::max(square_sum / count - mean * mean, 0.0));
}

/// Deviations are differences of squares: where all values are nearly equal (one point in a window, say), float32's
/// last bit of the squares shows. That much of the variance is tolerated.
bool deviations_agree(double found, double expected, double mean, double tolerance) {
  return std::abs(found - expected) <= tolerance || std::abs(found * found - expected * expected) <= 5e-7 * mean * mean;
}

}  // namespace

std::vector<Complex> reference_dft(const std::vector<Complex>& samples) {
  std::vector<Complex> out(samples.size());
  dft(out.data(), samples.data(), 1, samples.size(), roots_of_unity(samples.size()));
  return out;
}

std::vector<double> reference_smoothing(const Image& image, int radius, double sigma) {
  std::vector<double> taps;
  double total = 0.0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(radius == 0 ? 1.0 : std::exp(-i * i / (2.0 * sigma * sigma)));
    total += taps.back();
  }
  for (double& tap : taps) tap /= total;
  const std::vector<double> pixels(image.pixels.begin(), image.pixels.end());
  return smoothed_along(smoothed_along(pixels, image.width, image.height, true, taps), image.width, image.height, false,
                        taps);
}

ReferenceResult reference_spectrum(const Image& image, const AnalysisConfig& config) {
  ReferenceResult result;
  result.histogram.assign(static_cast<std::size_t>(config.bins), 0);
  const WindowBlock windows = all_windows(image, config);
  result.columns = windows.columns;
  result.rows = windows.rows;
  const std::vector<double> smoothed = reference_smoothing(image, config.smoothing_radius, config.smoothing_sigma);
  const std::size_t side = static_cast<std::size_t>(config.window);
  const double low = config.range[0];
  const double scale = config.bins / (config.range[1] - low);
  double sum = 0.0;
  double square_sum = 0.0;
  std::vector<Complex> square(side * side);
  result.radial.resize(side / 2 + 1);
  std::vector<double> of_ring(result.radial.size());
  for (std::int64_t wy = 0; wy < windows.rows; ++wy) {
    for (std::int64_t wx = 0; wx < windows.columns; ++wx) {
      for (std::size_t i = 0; i < square.size(); ++i) {
        const std::int64_t x = wx * config.stride + static_cast<std::int64_t>(i % side);
        const std::int64_t y = wy * config.stride + static_cast<std::int64_t>(i / side);
        square[i] = smoothed[static_cast<std::size_t>(y * image.width + x)];
      }
      double window_sum = 0.0;
      double window_square_sum = 0.0;
      const std::vector<Complex> spectrum = dft_2d(square, side);
      for (std::size_t i = 0; i < spectrum.size(); ++i) {
        const Complex& coefficient = spectrum[i];
        const double value = value_of(coefficient, config.value);
        const double position = std::floor((value - low) * scale);
        if (position < 0.0 || position >= config.bins) ++result.clipped;
        ++result.histogram[static_cast<std::size_t>(std::clamp(position, 0.0, config.bins - 1.0))];
        window_sum += value;
        window_square_sum += value * value;
        const auto kx = static_cast<double>(std::min(i % side, side - i % side));
        const auto ky = static_cast<double>(std::min(i / side, side - i / side));
        const auto ring = static_cast<std::size_t>(std::round(std::sqrt(kx * kx + ky * ky)));
        if (ring >= result.radial.size()) continue;
        result.radial[ring] += value;
        ++of_ring[ring];
      }
      const double count = static_cast<double>(square.size());
      result.values += square.size();
      result.window_means.push_back(window_sum / count);
      result.window_standard_deviations.push_back(deviation(window_sum, window_square_sum, count));
      sum += window_sum;
      square_sum += window_square_sum;
    }
  }
  if (result.values > 0) {
    result.mean = sum / static_cast<double>(result.values);
    result.standard_deviation = deviation(sum, square_sum, static_cast<double>(result.values));
    for (std::size_t ring = 0; ring < of_ring.size(); ++ring) result.radial[ring] /= of_ring[ring];
  }
  return result;
}

LuminancePlane whole_plane(const Image& image) {
  LuminancePlane plane;
  plane.data = image.pixels.data();
  plane.pitch = image.width;
  plane.width = plane.image_width = image.width;
  plane.height = plane.image_height = image.height;
  return plane;
}

WindowBlock all_windows(const Image& image, const AnalysisConfig& config) {
  const auto along = [&](std::int64_t size) {
    return size < config.window ? 0 : (size - config.window) / config.stride + 1;
  };
  return {0, along(image.width), 0, along(image.height)};
}

Image textured_image(std::int64_t width, std::int64_t height, std::uint64_t seed) {
  Image image{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  std::mt19937_64 random(seed);  // its numbers are fixed by the standard; distributions' are not
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  struct Wave {
    double fx, fy, phase, height;
  };
  std::vector<Wave> waves(6);
  for (Wave& wave : waves) wave = {uniform() * 0.3, uniform() * 0.3, uniform() * 6.0, 10.0 + 20.0 * uniform()};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double v = 150.0 + 30.0 * (uniform() - 0.5);
      for (const Wave& wave : waves) {
        v += wave.height * std::sin(wave.fx * static_cast<double>(x) + wave.fy * static_cast<double>(y) + wave.phase);
      }
      image.pixels[static_cast<std::size_t>(y * width + x)] = static_cast<std::uint8_t>(std::clamp(v, 0.0, 255.0));
    }
  }
  return image;
}

ReferenceResult as_reference(const SpectrumSums& sums, const WindowMap& map) {
  ReferenceResult expected;
  expected.columns = map.columns;
  expected.rows = map.rows;
  expected.histogram = sums.histogram;
  expected.values = sums.values;
  expected.clipped = sums.clipped;
  expected.mean = sums.mean();
  expected.standard_deviation = sums.standard_deviation();
  for (std::size_t i = 0; i < map.values.size(); i += 2) {
    expected.window_means.push_back(map.values[i]);
    expected.window_standard_deviations.push_back(map.values[i + 1]);
  }
  return expected;
}

std::string difference(const SpectrumSums& sums, const WindowMap& map, const ReferenceResult& expected,
                       const Tolerance& tolerance) {
  const auto text = [](const std::string& what, double found, double wanted) {
    return what + ": " + std::to_string(found) + " instead of " + std::to_string(wanted);
  };
  if (sums.windows != expected.window_means.size()) return "number of windows";
  if (sums.values != expected.values) return "number of values";
  if (sums.histogram.size() != expected.histogram.size()) return "number of bins";
  if (expected.values == 0) return "";
  if (!(std::abs(sums.mean() - expected.mean) <= tolerance.moment)) return text("mean", sums.mean(), expected.mean);
  if (!deviations_agree(sums.standard_deviation(), expected.standard_deviation, expected.mean, tolerance.moment)) {
    return text("standard deviation", sums.standard_deviation(), expected.standard_deviation);
  }

  const double count = static_cast<double>(expected.values);
  const double chance = 5.0 / std::sqrt(count);
  std::int64_t running = 0;
  double worst = 0.0;
  double distance = 0.0;
  for (std::size_t bin = 0; bin < sums.histogram.size(); ++bin) {
    const std::int64_t off =
        static_cast<std::int64_t>(sums.histogram[bin]) - static_cast<std::int64_t>(expected.histogram[bin]);
    running += off;
    worst = std::max(worst, static_cast<double>(std::abs(running)) / count);
    distance += static_cast<double>(std::abs(off)) / count;
  }
  if (running != 0) return "the histogram's total";
  if (!(worst <= std::max(tolerance.cumulative, chance))) return text("cumulative histogram off by", worst, 0.0);
  if (!(distance <= std::max(tolerance.histogram, chance))) return text("L1 distance", distance, 0.0);
  const double clipped = (static_cast<double>(sums.clipped) - static_cast<double>(expected.clipped)) / count;
  if (!(std::abs(clipped) <= std::max(tolerance.cumulative, chance))) {
    return text("clipped values", static_cast<double>(sums.clipped), static_cast<double>(expected.clipped));
  }

  if (map.values.empty()) return "";
  if (map.columns != expected.columns || map.rows != expected.rows) return "the map's size";
  for (std::size_t i = 0; i < expected.window_means.size(); ++i) {
    const std::string window = " of window " + std::to_string(i);
    const double mean = map.values[2 * i];
    const double deviation_found = map.values[2 * i + 1];
    if (!(std::abs(mean - expected.window_means[i]) <= tolerance.window_moment)) {
      return text("mean" + window, mean, expected.window_means[i]);
    }
    if (!deviations_agree(deviation_found, expected.window_standard_deviations[i], mean, tolerance.window_moment)) {
      return text("standard deviation" + window, deviation_found, expected.window_standard_deviations[i]);
    }
  }
  return "";
}

}  // namespace slidestream::test
