#include "planning/operator_needs.hpp"

#include <algorithm>
#include <cstdint>

#include <slidestream/network.hpp>

namespace slidestream {

Operators readers_of(const Operators& operators) {
  Operators readers;
  for (const auto& op : operators) {
    if (op->reads_pixels()) readers.push_back(op);
  }
  return readers;
}

std::optional<Product> image_of(const Operator& op) {
  for (const Product& product : op.products()) {
    if (product.kind == Product::Kind::image) return product;
  }
  return std::nullopt;
}

std::optional<PixelFormat> band_format_of(const Operator& op) {
  if (op.network() != nullptr) return rgb_format;
  const auto product = image_of(op);
  return product ? std::optional(product->format) : std::nullopt;
}

std::vector<OperatorNeeds> needs_of(const Operators& operators) {
  std::vector<OperatorNeeds> all;
  for (const auto& op : operators) {
    OperatorNeeds& needs = all.emplace_back();
    needs.footprint = op->footprint();
    needs.plane = op->input() == rgb_format ? rgb_plane : luminance_plane;
    if (const auto format = band_format_of(*op)) needs.image_bytes = static_cast<std::int64_t>(format->pixel_bytes());
    needs.has_network = op->network() != nullptr;
  }
  return all;
}

std::optional<std::size_t> place_of_spectrum(const Operators& operators) {
  const auto found = std::ranges::find(operators, "spectrum", &Operator::name);
  if (found == operators.end()) return std::nullopt;
  return static_cast<std::size_t>(found - operators.begin());
}

std::string why_not_on_gpus(const Config& config, const Operators& operators) {
  if (config.image.copy_levels == CopyLevels::shrink_on_load) return "tiles are decoded at half size on the CPU";
  bool reads = false;
  for (const auto& op : operators) {
    if (!op->reads_pixels()) continue;
    if (!op->computes_on_gpus()) return "the operator " + op->name() + " is computed on the CPU";
    reads = true;
  }
  return reads ? "" : "no operator reads the level's pixels";
}

}  // namespace slidestream
