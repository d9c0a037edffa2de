#include "planning/operator_needs.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string_view>

#include <slidestream/error.hpp>
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

void check_labels(const Operator& op, const SlideInfo& info, const Config& config) {
  if (!info.labels) return;
  const std::string name = op.name();
  const bool is_callers = std::ranges::find(operator_names, std::string_view(name)) == operator_names.end() ||
                          (name == "model" && config.model.network != nullptr);
  if (is_callers) return;
  if (name != "spectrum") info.require_no_labels("the operator " + name + " takes them for colours");
  if (op.looks_at_small_level() && config.tissue.source != TissueSource::geojson) {
    info.require_no_labels("tissue is found by colours");
  }
}

void check_labels(const Operators& operators, const SlideInfo& info, const Config& config) {
  std::exception_ptr first;
  for (const auto& op : operators) {
    try {
      return check_labels(*op, info, config);
    } catch (const SlideError&) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

std::string why_not_on_gpus(std::span<const PlacedStatistic> statistics) {
  for (const PlacedStatistic& placed : statistics) {
    if (placed.statistic->computes_on_gpus) continue;
    return "analysis." + std::string(placed.statistic->name) + " is computed on the CPU";
  }
  return "";
}

std::string why_not_on_gpus(const Config& config, const Operators& operators) {
  if (config.image.copy_levels == CopyLevels::shrink_on_load) return "tiles are decoded at half size on the CPU";
  bool reads = false;
  for (const auto& op : operators) {
    if (!op->reads_pixels()) continue;
    if (!op->computes_on_gpus()) return "the operator " + op->name() + " is computed on the CPU";
    reads = true;
  }
  if (!reads) return "no operator reads the level's pixels";
  return place_of_spectrum(operators) ? why_not_on_gpus(placed_statistics(config.analysis)) : "";
}

}  // namespace slidestream
