#include "operators/stain/stain.hpp"

#include <algorithm>
#include <cmath>

namespace slidestream::operators {

std::array<std::int32_t, 256> log_samples(std::uint8_t white) {
  std::array<std::int32_t, 256> table{};
  for (std::size_t v = 0; v < white; ++v) {
    const double share = static_cast<double>(v + 1) / static_cast<double>(white + 1);
    table[v] = static_cast<std::int32_t>(std::nearbyint(65536.0 * std::log(share)));
  }
  return table;
}

ExpTable exp_samples(std::uint8_t white) {
  const auto sample = [&](std::int32_t step) {
    const double value = (white + 1.0) * std::exp(-static_cast<double>(step) / (1 << exp_steps)) - 0.5;
    return static_cast<std::uint8_t>(std::clamp(std::floor(value), 0.0, 255.0));
  };
  ExpTable table;
  while (sample(-table.first) < 255) ++table.first;
  do {
    table.entries.push_back(sample(static_cast<std::int32_t>(table.entries.size()) - table.first));
  } while (table.entries.back() != 0);
  return table;
}

Stain::Stain(const StainMap& map) : map_(map), products_(3 * 256) {
  for (std::size_t c = 0; c < 3; ++c) exponentials_[c] = exp_samples(map.to[c]);
  for (std::size_t j = 0; j < 3; ++j) {
    const std::array<std::int32_t, 256> logs = log_samples(map.from[j]);
    for (std::size_t v = 0; v < 256; ++v) {
      Products& products = products_[j * 256 + v];
      // Negated, as tables of exp go, and with what sums begin with in one of them.
      for (std::size_t c = 0; c < 3; ++c) {
        products[c] = -std::int64_t{map.matrix[c][j]} * logs[v] + (j == 0 ? stain_start(exponentials_[c]) : 0);
      }
    }
  }
}

void Stain::run(const HostView& out, const ConstHostView& in) const {
  if (out.format != rgb_format) throw std::invalid_argument("stains are normalised in RGB");
  require_input(out, in, {}, rgb_format);
  std::array<const std::uint8_t*, 3> exponentials{};
  std::array<std::int32_t, 3> last{};
  for (std::size_t c = 0; c < 3; ++c) {
    exponentials[c] = exponentials_[c].entries.data();
    last[c] = static_cast<std::int32_t>(exponentials_[c].entries.size()) - 1;
  }
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
        to[c] = exponentials[c][exp_entry(r[c] + g[c] + b[c], last[c])];
      }
    }
  }
}

}  // namespace slidestream::operators
