#include "operators/stain/stain.hpp"

#include <cmath>

namespace slidestream::operators {

const std::array<std::int32_t, 256>& log_samples() {
  static const std::array<std::int32_t, 256> table = [] {
    std::array<std::int32_t, 256> made{};
    for (std::size_t v = 0; v < made.size(); ++v) {
      made[v] = static_cast<std::int32_t>(std::nearbyint(65536.0 * std::log(static_cast<double>(v + 1) / 255.0)));
    }
    return made;
  }();
  return table;
}

const std::vector<std::uint8_t>& exp_samples() {
  static const std::vector<std::uint8_t> table = [] {
    std::vector<std::uint8_t> made;
    do {
      const double argument = -static_cast<double>(made.size()) / (1 << exp_steps);
      made.push_back(static_cast<std::uint8_t>(std::floor(255.0 * std::exp(argument) + 0.5)));
    } while (made.back() != 0);
    return made;
  }();
  return table;
}

Stain::Stain(const StainMatrix& matrix) : matrix_(matrix), products_(3 * 256) {
  const std::array<std::int32_t, 256>& logs = log_samples();
  for (std::size_t j = 0; j < 3; ++j) {
    for (std::size_t v = 0; v < 256; ++v) {
      Products& products = products_[j * 256 + v];
      // Negated, as the table of exp goes, and with the rounding in one of them.
      for (std::size_t c = 0; c < 3; ++c) {
        products[c] = -std::int64_t{matrix[c][j]} * logs[v] + (j == 0 ? half_stain_step : 0);
      }
    }
  }
}

void Stain::run(const HostView& out, const ConstHostView& in) const {
  if (out.format != rgb_format) throw std::invalid_argument("stains are normalised in RGB");
  require_input(out, in, {}, rgb_format);
  const std::uint8_t* exponentials = exp_samples().data();
  const auto last = static_cast<std::int32_t>(exp_samples().size()) - 1;
  const Products* red = products_.data();
  const Products* green = red + 256;
  const Products* blue = green + 256;
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    const std::uint8_t* from = in.row<const std::uint8_t>(y) + 3 * (out.rect.x - in.rect.x);
    auto* to = out.row<std::uint8_t>(y);
    for (std::int64_t x = 0; x < out.rect.width; ++x, from += 3, to += 3) {
      const Products& r = red[from[0]];
      const Products& g = green[from[1]];
      const Products& b = blue[from[2]];
      for (std::size_t c = 0; c < 3; ++c) {
        to[c] = exponentials[exp_entry(r[c] + g[c] + b[c], last)];
      }
    }
  }
}

}  // namespace slidestream::operators
