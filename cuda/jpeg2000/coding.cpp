#include "cuda/jpeg2000/coding.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace slidestream::cuda {
namespace {

using Reason = Jpeg2000Reason;

/// A resolution of a component: its grid of precincts.
struct Resolution {
  std::uint32_t levels_left = 0;
  std::uint32_t precinct_width_log = 0;
  std::uint32_t precinct_height_log = 0;
  std::uint32_t across = 0;  ///< precincts
  std::uint32_t down = 0;
  std::uint32_t first_precinct = 0;
};

constexpr std::uint32_t divided_up(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

/// Nodes of a tag tree over `across` x `down` leaves.
std::uint32_t tree_nodes(std::uint32_t across, std::uint32_t down) {
  if (across == 0 || down == 0) return 0;
  std::uint32_t nodes = across * down;
  while (across * down > 1) {
    across = divided_up(across, 2);
    down = divided_up(down, 2);
    nodes += across * down;
  }
  return nodes;
}

class CodingMaker {
 public:
  CodingMaker(const Jpeg2000Parameters& parameters, std::uint32_t components, Jpeg2000Coding& coding)
      : parameters_(parameters), components_(components), coding_(coding), resolutions_(parameters.component_count) {}

  Reason make() {
    if (parameters_.layers > most_layers) return Reason::too_many_parts;
    const Jpeg2000Component& first = parameters_.components[0];
    coding_.width = static_cast<std::uint16_t>(parameters_.width);
    coding_.height = static_cast<std::uint16_t>(parameters_.height);
    coding_.large = std::max(parameters_.width, parameters_.height) > small_jpeg2000_side ? 1 : 0;
    coding_.components = static_cast<std::uint8_t>(components_);
    coding_.colour_transform = components_ == 3 && parameters_.colour_transform ? 1 : 0;
    coding_.reversible = first.reversible ? 1 : 0;
    coding_.most_bit_planes = first.reversible ? 16 : 24;
    coding_.sop_markers = parameters_.sop_markers ? 1 : 0;
    coding_.eph_markers = parameters_.eph_markers ? 1 : 0;
    for (std::uint32_t c = 0; c < parameters_.component_count; ++c) {
      const Reason reason = add_component(c);
      if (reason != Reason::none) return reason;
    }
    coding_.all_blocks = static_cast<std::uint16_t>(blocks_);
    coding_.nodes = static_cast<std::uint16_t>(nodes_);
    return order_packets();
  }

 private:
  std::uint32_t component_width(std::uint32_t c) const {
    return divided_up(parameters_.width, parameters_.components[c].dx);
  }
  std::uint32_t component_height(std::uint32_t c) const {
    return divided_up(parameters_.height, parameters_.components[c].dy);
  }

  Reason add_component(std::uint32_t c) {
    const Jpeg2000Component& component = parameters_.components[c];
    const std::uint32_t first_block = blocks_;
    if (c < components_ && component.reversible != parameters_.components[0].reversible) return Reason::components;
    for (std::uint32_t r = 0; r <= component.levels; ++r) {
      const Reason reason = add_resolution(c, r);
      if (reason != Reason::none) return reason;
    }
    if (c >= components_) return Reason::none;
    if (component.block_style != 0) coding_.styled = 1;
    if (blocks_ - first_block > most_small_blocks) coding_.large = 1;
    if (blocks_ - first_block > most_component_blocks) return Reason::too_many_parts;
    coding_.decoded[c] = {static_cast<std::uint16_t>(component_width(c)),
                          static_cast<std::uint16_t>(component_height(c)),
                          static_cast<std::uint16_t>(first_block),
                          static_cast<std::uint16_t>(blocks_ - first_block),
                          component.levels,
                          coding_.bands_used,
                          component.dx,
                          component.dy};
    coding_.bands_used = static_cast<std::uint8_t>(coding_.bands_used + coding_.decoded[c].bands());
    coding_.blocks = static_cast<std::uint16_t>(blocks_);
    return Reason::none;
  }

  Reason add_resolution(std::uint32_t c, std::uint32_t r) {
    const Jpeg2000Component& component = parameters_.components[c];
    Resolution resolution;
    resolution.levels_left = component.levels - r;
    resolution.precinct_width_log = component.precinct_width_log[r];
    resolution.precinct_height_log = component.precinct_height_log[r];
    resolution.across =
        divided_up(reduced(component_width(c), resolution.levels_left), 1U << resolution.precinct_width_log);
    resolution.down =
        divided_up(reduced(component_height(c), resolution.levels_left), 1U << resolution.precinct_height_log);
    resolution.first_precinct = precincts_;
    resolutions_[c].push_back(resolution);
    const std::uint32_t count = resolution.across * resolution.down;
    const std::uint32_t bands = r == 0 ? 1 : 3;
    if (precincts_ + count > most_precincts || precinct_bands_ + count * bands > most_precinct_bands) {
      return Reason::too_many_parts;
    }
    for (std::uint32_t p = 0; p < count; ++p) {
      coding_.precincts[precincts_++] = {static_cast<std::uint16_t>(precinct_bands_ + p * bands),
                                         static_cast<std::uint16_t>(bands)};
    }
    for (std::uint32_t b = 0; b < bands; ++b) {
      const Reason reason = add_band(c, r, r == 0 ? 0 : b + 1, resolution, precinct_bands_ + b, bands);
      if (reason != Reason::none) return reason;
    }
    precinct_bands_ += count * bands;
    return Reason::none;
  }

  /// `kind`: 0 LL, 1 HL, 2 LH, 3 HH. `first` is the first precinct's part in the band, the next are `every` apart.
  Reason add_band(std::uint32_t c, std::uint32_t r, std::uint32_t kind, const Resolution& resolution,
                  std::uint32_t first, std::uint32_t every) {
    const Jpeg2000Component& component = parameters_.components[c];
    const std::uint32_t halved = r == 0 ? 0 : 1;
    const std::uint32_t whole_width = reduced(component_width(c), resolution.levels_left);
    const std::uint32_t whole_height = reduced(component_height(c), resolution.levels_left);
    const std::uint32_t low_width = reduced(whole_width, halved), low_height = reduced(whole_height, halved);
    const std::uint32_t width = (kind & 1U) != 0 ? whole_width - low_width : low_width;
    const std::uint32_t height = (kind & 2U) != 0 ? whole_height - low_height : low_height;
    // A precinct's part in the band, and code-blocks, which never reach beyond it.
    const std::uint32_t part_width_log = resolution.precinct_width_log - halved;
    const std::uint32_t part_height_log = resolution.precinct_height_log - halved;
    const std::uint32_t width_log = std::min<std::uint32_t>(component.block_width_log, part_width_log);
    const std::uint32_t height_log = std::min<std::uint32_t>(component.block_height_log, part_height_log);
    if (width_log < 2 || height_log < 2) return Reason::block_size;
    const std::uint32_t across = width == 0 || height == 0 ? 0 : divided_up(width, 1U << width_log);
    const std::uint32_t down = width == 0 || height == 0 ? 0 : divided_up(height, 1U << height_log);
    if (blocks_ + across * down > most_blocks) return Reason::too_many_parts;
    const std::uint32_t number = r == 0 ? 0 : 3 * (r - 1) + kind;
    const std::uint32_t exponent = component.steps[number] >> 11;
    if (exponent + component.guard_bits < 1) return Reason::quantisation;
    const std::uint32_t bit_planes = exponent + component.guard_bits - 1;
    for (std::uint32_t p = 0; p < resolution.across * resolution.down; ++p) {
      // Blocks of the grid from where the precinct begins to where it or the band ends.
      const auto cut = [](std::uint32_t place, std::uint32_t part_log, std::uint32_t block_log, std::uint32_t blocks) {
        const std::uint32_t begin = std::min(blocks, place << (part_log - block_log));
        return std::pair(begin, std::min(blocks, (place + 1) << (part_log - block_log)) - begin);
      };
      const auto [x, wide] = cut(p % resolution.across, part_width_log, width_log, across);
      const auto [y, high] = cut(p / resolution.across, part_height_log, height_log, down);
      PrecinctBand& part = coding_.precinct_bands[first + p * every];
      part = {static_cast<std::uint16_t>(blocks_ + y * across + x),
              static_cast<std::uint16_t>(across),
              static_cast<std::uint16_t>(nodes_),
              static_cast<std::uint8_t>(wide),
              static_cast<std::uint8_t>(high),
              static_cast<std::uint8_t>(bit_planes),
              0};
      if (wide == 0 || high == 0) part.across = part.down = 0;
      nodes_ += tree_nodes(wide, high);
      if (nodes_ > most_tag_nodes) return Reason::too_many_parts;
    }
    if (c < components_) {
      const double mantissa = component.steps[number] & 0x7FFU;
      // Equation E-3 for 8 bits. OpenJPEG gives the irreversible filters' bands no gain.
      const double step = (1.0 + mantissa / 2048.0) * std::pow(2.0, 8 - static_cast<int>(exponent));
      coding_.bands[coding_.bands_used + number] = {0.5F * static_cast<float>(step),
                                                    static_cast<std::uint16_t>(width),
                                                    static_cast<std::uint16_t>(height),
                                                    static_cast<std::uint16_t>(blocks_),
                                                    static_cast<std::uint16_t>(across),
                                                    static_cast<std::uint8_t>(width_log),
                                                    static_cast<std::uint8_t>(height_log),
                                                    static_cast<std::uint8_t>(kind == 3   ? 2
                                                                              : kind == 1 ? 1
                                                                                          : 0),
                                                    component.block_style};
    }
    blocks_ += across * down;
    return Reason::none;
  }

  std::uint32_t most_resolutions() const {
    std::size_t most = 0;
    for (const auto& component : resolutions_) most = std::max(most, component.size());
    return static_cast<std::uint32_t>(most);
  }

  bool put(std::uint32_t precinct, std::uint32_t layer) {
    if (packets_ == most_packets) return false;
    coding_.packets[packets_++] = {static_cast<std::uint16_t>(precinct), static_cast<std::uint16_t>(layer)};
    return true;
  }

  bool put_all_precincts(std::uint32_t c, std::uint32_t r, std::uint32_t layer) {
    if (r >= resolutions_[c].size()) return true;
    const Resolution& resolution = resolutions_[c][r];
    for (std::uint32_t p = 0; p < resolution.across * resolution.down; ++p) {
      if (!put(resolution.first_precinct + p, layer)) return false;
    }
    return true;
  }

  /// All layers of the precinct that begins at (x, y) of the image, if one does.
  bool put_at(std::uint32_t c, std::uint32_t r, std::uint64_t x, std::uint64_t y) {
    if (r >= resolutions_[c].size()) return true;
    const Resolution& resolution = resolutions_[c][r];
    const std::uint64_t step_x = std::uint64_t{parameters_.components[c].dx}
                                 << (resolution.precinct_width_log + resolution.levels_left);
    const std::uint64_t step_y = std::uint64_t{parameters_.components[c].dy}
                                 << (resolution.precinct_height_log + resolution.levels_left);
    if (x % step_x != 0 || y % step_y != 0 || x / step_x >= resolution.across || y / step_y >= resolution.down) {
      return true;
    }
    const auto precinct =
        static_cast<std::uint32_t>(resolution.first_precinct + y / step_y * resolution.across + x / step_x);
    for (std::uint32_t layer = 0; layer < parameters_.layers; ++layer) {
      if (!put(precinct, layer)) return false;
    }
    return true;
  }

  /// Calls `visit(x, y)` for all positions at which a precinct may begin, row by row, until it gives false.
  template <class Visit>
  bool for_positions(Visit visit) const {
    std::uint64_t step_x = UINT64_MAX;
    std::uint64_t step_y = UINT64_MAX;
    for (std::uint32_t c = 0; c < parameters_.component_count; ++c) {
      for (const Resolution& resolution : resolutions_[c]) {
        step_x = std::min(step_x, std::uint64_t{parameters_.components[c].dx}
                                      << (resolution.precinct_width_log + resolution.levels_left));
        step_y = std::min(step_y, std::uint64_t{parameters_.components[c].dy}
                                      << (resolution.precinct_height_log + resolution.levels_left));
      }
    }
    // Steps of a component that is subsampled by no power of two aren't multiples of others'.
    const bool odd =
        std::any_of(parameters_.components.begin(), parameters_.components.begin() + parameters_.component_count,
                    [](const Jpeg2000Component& component) {
                      return (component.dx & (component.dx - 1)) != 0 || (component.dy & (component.dy - 1)) != 0;
                    });
    if (odd) return false;
    for (std::uint64_t y = 0; y < parameters_.height; y += step_y) {
      for (std::uint64_t x = 0; x < parameters_.width; x += step_x) {
        if (!visit(x, y)) return false;
      }
    }
    return true;
  }

  /// Section B.12.
  Reason order_packets() {
    const std::uint32_t components = parameters_.component_count;
    const std::uint32_t resolutions = most_resolutions();
    bool fits = true;
    switch (parameters_.progression) {
      case Progression::lrcp:
        for (std::uint32_t layer = 0; layer < parameters_.layers; ++layer) {
          for (std::uint32_t r = 0; r < resolutions; ++r) {
            for (std::uint32_t c = 0; c < components; ++c) fits = fits && put_all_precincts(c, r, layer);
          }
        }
        break;
      case Progression::rlcp:
        for (std::uint32_t r = 0; r < resolutions; ++r) {
          for (std::uint32_t layer = 0; layer < parameters_.layers; ++layer) {
            for (std::uint32_t c = 0; c < components; ++c) fits = fits && put_all_precincts(c, r, layer);
          }
        }
        break;
      case Progression::rpcl:
        for (std::uint32_t r = 0; r < resolutions; ++r) {
          fits = fits && for_positions([&](std::uint64_t x, std::uint64_t y) {
                   for (std::uint32_t c = 0; c < components; ++c) {
                     if (!put_at(c, r, x, y)) return false;
                   }
                   return true;
                 });
        }
        break;
      case Progression::pcrl:
        fits = for_positions([&](std::uint64_t x, std::uint64_t y) {
          for (std::uint32_t c = 0; c < components; ++c) {
            for (std::uint32_t r = 0; r < resolutions; ++r) {
              if (!put_at(c, r, x, y)) return false;
            }
          }
          return true;
        });
        break;
      case Progression::cprl:
        for (std::uint32_t c = 0; c < components; ++c) {
          fits = fits && for_positions([&](std::uint64_t x, std::uint64_t y) {
                   for (std::uint32_t r = 0; r < resolutions; ++r) {
                     if (!put_at(c, r, x, y)) return false;
                   }
                   return true;
                 });
        }
        break;
    }
    coding_.packet_count = static_cast<std::uint16_t>(packets_);
    return fits ? Reason::none : Reason::too_many_parts;
  }

  const Jpeg2000Parameters& parameters_;
  std::uint32_t components_;  ///< that are decoded
  Jpeg2000Coding& coding_;
  std::vector<std::vector<Resolution>> resolutions_;
  std::uint32_t blocks_ = 0;
  std::uint32_t nodes_ = 0;
  std::uint32_t precincts_ = 0;
  std::uint32_t precinct_bands_ = 0;
  std::uint32_t packets_ = 0;
};

}  // namespace

Jpeg2000Reason make_coding(const Jpeg2000Parameters& parameters, std::uint32_t components, Jpeg2000Coding& coding) {
  return CodingMaker(parameters, components, coding).make();
}

}  // namespace slidestream::cuda
