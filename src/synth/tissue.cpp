#include "synth/tissue.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace slidestream::synth {

namespace {

// Salts of the layers of noise.
enum Layer : std::uint64_t { islands = 1, character, bands, cover, fibre, gaps, grain, nuclei, sensor, shade, variant };

std::uint64_t salt(std::uint64_t seed, Layer layer) noexcept { return mix(seed * 64 + layer); }

// Coverage changes slowly: it is computed at every 16th pixel and interpolated. Tile sides are multiples of it.
constexpr int coarse = 16;

constexpr int transmission_steps = 512;  // per unit of optical density
constexpr float largest_density = 4.0F;

// Nuclei: mean spacing at 0.25 micrometres a pixel, and the largest radius with its halo.
constexpr int nucleus_spacing = 22;
constexpr float nucleus_reach = 14.0F;

float clamp_unit(float value) noexcept { return std::clamp(value, 0.0F, 1.0F); }

/// A property of a tile's corners, 0 or 1 at each and smooth between.
class CornerBlend {
 public:
  template <typename Property>
  CornerBlend(int tile, const Corners& corners, Property property) : weight_(tile) {
    for (std::size_t i = 0; i < corners.size(); ++i) corner_[i] = property(corners[i]) ? 1.0F : 0.0F;
    const float side = static_cast<float>(tile);
    for (int i = 0; i < tile; ++i) weight_[i] = smoothstep(0.0F, side, static_cast<float>(i));
  }
  float at(int x, int y) const {
    const float top = corner_[0] + (corner_[1] - corner_[0]) * weight_[x];
    const float bottom = corner_[2] + (corner_[3] - corner_[2]) * weight_[x];
    return top + (bottom - top) * weight_[y];
  }

 private:
  std::array<float, 4> corner_{};
  std::vector<float> weight_;
};

std::uint8_t to_byte(float value) noexcept {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value + 0.5F), 0, 255));
}

}  // namespace

Islands::Islands(std::int64_t width, std::int64_t height, std::uint64_t seed) noexcept
    : width_(width),
      height_(height),
      wavelength_(std::clamp<std::int64_t>(std::max(width, height) / 3, 256, std::int64_t{1} << 24)),
      seed_(seed) {}

float Islands::at(std::int64_t x, std::int64_t y) const noexcept {
  float sum = 0.0F;
  float amplitude = 1.0F;
  float total = 0.0F;
  for (std::int64_t wavelength = wavelength_; wavelength >= 48; wavelength /= 2) {
    sum += amplitude * noise_at(salt(seed_, Layer::islands) + static_cast<std::uint64_t>(wavelength), wavelength, x, y);
    total += amplitude;
    amplitude *= 0.5F;
  }
  // Tissue keeps to the middle of the glass.
  const float across = 2.0F * static_cast<float>(x) / static_cast<float>(width_) - 1.0F;
  const float down = 2.0F * static_cast<float>(y) / static_cast<float>(height_) - 1.0F;
  const float outward = across * across * across * across + down * down * down * down;
  const float level = sum / total - 0.24F - 0.42F * outward;
  // The finest octaves are about 48 pixels wide, so an edge this steep is a few tens of pixels wide.
  return level * static_cast<float>(wavelength_) * (1.0F / 50.0F);
}

Ground Islands::ground_at(std::int64_t x, std::int64_t y) const noexcept {
  if (at(x, y) <= 0.0F) return Ground::glass;
  const float character = character_at(x, y);
  return character > 0.46F && character < 0.54F ? Ground::stroma : Ground::epithelium;
}

float Islands::character_at(std::int64_t x, std::int64_t y) const noexcept {
  const std::uint64_t own = salt(seed_, Layer::character);
  return 0.65F * noise_at(own, std::max<std::int64_t>(wavelength_ / 4, 64), x, y) +
         0.35F * noise_at(own + 1, std::max<std::int64_t>(wavelength_ / 16, 64), x, y);
}

TissuePainter::TissuePainter(int tile, std::uint64_t seed) : tile_(tile), seed_(seed) {
  const auto pixels = static_cast<std::size_t>(tile) * tile;
  for (auto* plane : {&cover_, &stroma_, &fibre_, &gap_, &grain_, &shade_, &nucleus_, &halo_}) plane->resize(pixels);
  // exp(-density) by repeated multiplication: libm's exp may differ in the last bit between machines.
  constexpr double step = 0.998048780701632;  // exp(-1 / 512)
  double value = 1.0;
  transmission_.resize(static_cast<std::size_t>(transmission_steps * largest_density) + 1);
  for (float& entry : transmission_) {
    entry = static_cast<float>(value);
    value *= step;
  }
}

void TissuePainter::paint(const Islands& islands, std::int64_t x, std::int64_t y, std::span<std::uint8_t> rgb) {
  const Patch patch{x, y, tile_, 0, false};
  const bool any = cover_from_islands(islands, patch);
  if (any) {
    paint_stroma(patch, nullptr);
    paint_tissue(patch);
  }
  colour(patch, any, rgb);
}

void TissuePainter::paint_repeatable(const Corners& corners, int variant, std::span<std::uint8_t> rgb) {
  int kind = 0;
  for (const Ground corner : corners) kind = kind * 3 + static_cast<int>(corner);
  const std::uint64_t own = hash(salt(seed_, Layer::variant), variant, kind);
  const Patch patch{0, 0, tile_, own, true};
  const bool any = cover_from_corners(corners, patch);
  if (any) {
    paint_stroma(patch, &corners);
    paint_tissue(patch);
  }
  colour(patch, any, rgb);
}

bool TissuePainter::cover_from_islands(const Islands& islands, const Patch& patch) {
  const int nodes = tile_ / coarse + 1;
  std::vector<float> node(static_cast<std::size_t>(nodes) * nodes);
  bool any = false;
  for (int row = 0; row < nodes; ++row) {
    for (int column = 0; column < nodes; ++column) {
      const float value = islands.at(patch.x + column * coarse, patch.y + row * coarse);
      node[static_cast<std::size_t>(row) * nodes + column] = value;
      any = any || value > -0.5F;
    }
  }
  if (!any) return false;
  for (int y = 0; y < tile_; ++y) {
    const float down = static_cast<float>(y % coarse) / coarse;
    for (int x = 0; x < tile_; ++x) {
      const float across = static_cast<float>(x % coarse) / coarse;
      const float* above = node.data() + static_cast<std::size_t>(y / coarse) * nodes + x / coarse;
      const float* below = above + nodes;
      const float top = above[0] + (above[1] - above[0]) * across;
      const float bottom = below[0] + (below[1] - below[0]) * across;
      cover_[static_cast<std::size_t>(y) * tile_ + x] = smoothstep(-0.5F, 0.5F, top + (bottom - top) * down);
    }
  }
  return true;
}

bool TissuePainter::cover_from_corners(const Corners& corners, const Patch& patch) {
  const auto glass = std::count(corners.begin(), corners.end(), Ground::glass);
  if (glass == 4) return false;
  std::fill(cover_.begin(), cover_.end(), glass == 0 ? 1.0F : 0.0F);
  if (glass == 0) return true;
  // An edge runs somewhere between corners that differ; noise below a half never turns a corner.
  add_noise(patch, salt(seed_, Layer::cover), std::max(tile_ / 4, 16), NoiseShape::plain, 0.5F, cover_, 4);
  add_noise(patch, salt(seed_, Layer::cover) + 1, 24, NoiseShape::plain, 0.3F, cover_);
  const CornerBlend tissue(tile_, corners, [](Ground ground) { return ground != Ground::glass; });
  const float steepness = static_cast<float>(tile_) / 60.0F;
  for (int y = 0; y < tile_; ++y) {
    for (int x = 0; x < tile_; ++x) {
      float& value = cover_[static_cast<std::size_t>(y) * tile_ + x];
      value = smoothstep(-0.5F, 0.5F, (tissue.at(x, y) - 0.5F + value - 0.4F) * steepness);
    }
  }
  return true;
}

void TissuePainter::paint_stroma(const Patch& patch, const Corners* corners) {
  std::fill(stroma_.begin(), stroma_.end(), 0.0F);
  const std::uint64_t band = salt(seed_, Layer::bands);
  if (corners == nullptr) {
    add_noise(patch, band, 900, NoiseShape::ridged, 0.85F, stroma_);
    add_noise(patch, band + 1, 300, NoiseShape::plain, 0.30F, stroma_);
    add_noise(patch, band + 2, 72, NoiseShape::plain, 0.20F, stroma_);
    for (float& value : stroma_) value = smoothstep(0.84F, 1.0F, value);
    return;
  }
  add_noise(patch, band + 1, 100, NoiseShape::plain, 0.8F, stroma_, 2);
  add_noise(patch, band + 2, 40, NoiseShape::plain, 0.5F, stroma_, 2);
  const CornerBlend stroma(tile_, *corners, [](Ground ground) { return ground == Ground::stroma; });
  for (int y = 0; y < tile_; ++y) {
    for (int x = 0; x < tile_; ++x) {
      float& value = stroma_[static_cast<std::size_t>(y) * tile_ + x];
      value = smoothstep(0.40F, 0.65F, stroma.at(x, y) + value - 0.65F);
    }
  }
}

void TissuePainter::paint_tissue(const Patch& patch) {
  for (auto* plane : {&fibre_, &gap_, &grain_, &shade_}) std::fill(plane->begin(), plane->end(), 0.0F);
  const std::uint64_t thread = salt(seed_, Layer::fibre);
  add_noise(patch, thread, 52, NoiseShape::ridged, 0.40F, fibre_);
  add_noise(patch, thread + 1, 23, NoiseShape::ridged, 0.33F, fibre_);
  add_noise(patch, thread + 2, 10, NoiseShape::ridged, 0.27F, fibre_);

  const std::uint64_t cleft = salt(seed_, Layer::gaps);
  add_noise(patch, cleft, 80, NoiseShape::plain, 0.50F, gap_, 2);
  add_noise(patch, cleft + 1, 34, NoiseShape::plain, 0.30F, gap_);
  add_noise(patch, cleft + 2, 14, NoiseShape::plain, 0.20F, gap_);

  const std::uint64_t fine = salt(seed_, Layer::grain);
  add_noise(patch, fine, 6, NoiseShape::plain, 0.55F, grain_);
  add_noise(patch, fine + 1, 3, NoiseShape::plain, 0.45F, grain_);

  const std::uint64_t shade = salt(seed_, Layer::shade);
  add_noise(patch, shade, 420, NoiseShape::plain, 0.6F, shade_, 2);
  add_noise(patch, shade + 1, 130, NoiseShape::plain, 0.4F, shade_, 2);
  paint_nuclei(patch);
}

void TissuePainter::paint_nuclei(const Patch& patch) {
  std::fill(nucleus_.begin(), nucleus_.end(), 0.0F);
  std::fill(halo_.begin(), halo_.end(), 0.0F);
  const float side = static_cast<float>(tile_);
  const int cells = std::max(1, tile_ / nucleus_spacing);
  const float cell = patch.repeatable ? side / static_cast<float>(cells) : static_cast<float>(nucleus_spacing);
  // Repeatable tiles keep their nuclei to themselves; elsewhere neighbours reach in.
  const float reach = patch.repeatable ? std::min(nucleus_reach, side / 2.0F - 1.0F) : nucleus_reach;
  const std::int64_t first_column = patch.repeatable ? 0 : (patch.x - 2 * nucleus_spacing) / nucleus_spacing;
  const std::int64_t first_row = patch.repeatable ? 0 : (patch.y - 2 * nucleus_spacing) / nucleus_spacing;
  const int columns = patch.repeatable ? cells : cells + 5;
  const std::uint64_t own = salt(seed_, Layer::nuclei) ^ mix(patch.salt);

  for (std::int64_t row = first_row; row < first_row + columns; ++row) {
    for (std::int64_t column = first_column; column < first_column + columns; ++column) {
      const std::uint64_t bits = hash(own, column, row);
      const std::uint64_t more = mix(bits);
      float x = (static_cast<float>(column * static_cast<std::int64_t>(cell) - patch.x) + unit(bits) * cell);
      float y = (static_cast<float>(row * static_cast<std::int64_t>(cell) - patch.y) + unit(bits << 16) * cell);
      if (patch.repeatable) {
        x = std::clamp((static_cast<float>(column) + unit(bits)) * cell, reach, side - 1.0F - reach);
        y = std::clamp((static_cast<float>(row) + unit(bits << 16)) * cell, reach, side - 1.0F - reach);
      }
      const float needs = unit(bits << 32);
      const float scale = std::min(1.0F, reach / nucleus_reach);
      const float wide = (4.5F + 4.2F * unit(more)) * scale;
      const float narrow = wide * (0.55F + 0.45F * unit(more << 16));
      float along = unit(more << 32) - 0.5F;
      float aside = unit(more << 40) - 0.5F;
      const float length = std::sqrt(along * along + aside * aside) + 1e-6F;
      along /= length;
      aside /= length;
      const int left = std::max(0, static_cast<int>(x - reach));
      const int right = std::min(tile_ - 1, static_cast<int>(x + reach));
      const int top = std::max(0, static_cast<int>(y - reach));
      const int bottom = std::min(tile_ - 1, static_cast<int>(y + reach));
      for (int py = top; py <= bottom; ++py) {
        for (int px = left; px <= right; ++px) {
          const float dx = static_cast<float>(px) - x;
          const float dy = static_cast<float>(py) - y;
          const float u = (dx * along + dy * aside) / wide;
          const float v = (dy * along - dx * aside) / narrow;
          const float distance = u * u + v * v;
          if (distance >= 2.6F) continue;
          const std::size_t pixel = static_cast<std::size_t>(py) * tile_ + px;
          // Connective tissue next to epithelium is full of small cells; epithelium has fewer.
          const float there = clamp_unit((0.50F + 0.5F * stroma_[pixel] - needs) * 8.0F);
          nucleus_[pixel] = std::max(nucleus_[pixel], there * (1.0F - smoothstep(0.75F, 1.25F, distance)));
          halo_[pixel] = std::max(halo_[pixel], there * (1.0F - smoothstep(1.3F, 2.6F, distance)));
        }
      }
    }
  }
}

void TissuePainter::colour(const Patch& patch, bool any_tissue, std::span<std::uint8_t> rgb) const {
  // Optical densities of eosin and haematoxylin for red, green and blue light.
  constexpr std::array<float, 3> eosin{0.20F, 1.00F, 0.52F};
  constexpr std::array<float, 3> haematoxylin{0.90F, 1.05F, 0.55F};
  constexpr std::array<float, 3> glass{243.0F, 241.5F, 244.0F};
  const std::uint64_t own = salt(seed_, Layer::sensor) ^ mix(patch.salt);
  for (int y = 0; y < tile_; ++y) {
    for (int x = 0; x < tile_; ++x) {
      const std::size_t pixel = static_cast<std::size_t>(y) * tile_ + x;
      const std::uint64_t bits = hash(own, patch.x + x, patch.y + y);
      // The sum of four bytes is close enough to a normal distribution: sigma 148 before scaling.
      const int shot = static_cast<int>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24 & 255));
      const float common = static_cast<float>(shot - 510) * (0.8F / 148.0F);
      float pink = 0.0F;
      float blue = 0.0F;
      if (any_tissue && cover_[pixel] > 0.0F) {
        const float stroma = stroma_[pixel];
        const float fibre = fibre_[pixel];
        const float grain = grain_[pixel] - 0.5F;
        const float nucleus = nucleus_[pixel];
        const float open = stroma * smoothstep(0.50F, 0.60F, gap_[pixel]) * (1.0F - nucleus);
        const float epithelium = 0.74F + 0.95F * (fibre - 0.5F);
        const float connective = 0.08F + 0.95F * fibre * fibre;
        pink = (epithelium + (connective - epithelium) * stroma) * (0.55F + 0.9F * shade_[pixel]) + 0.75F * grain;
        pink *= (1.0F - 0.92F * open) * (1.0F - 0.22F * (1.0F - stroma) * (halo_[pixel] - nucleus));
        pink = std::max(0.0F, pink) * cover_[pixel];
        blue =
            (0.08F * (1.0F - open) + nucleus * (0.48F + 0.5F * shade_[pixel] * fibre + 1.1F * grain)) * cover_[pixel];
        blue = std::max(0.0F, blue);
      }
      for (int channel = 0; channel < 3; ++channel) {
        const float density = std::min(pink * eosin[channel] + blue * haematoxylin[channel], largest_density);
        const float light = transmission_[static_cast<std::size_t>(density * transmission_steps)];
        const float own_noise = static_cast<float>(static_cast<int>(bits >> (32 + 8 * channel) & 255) - 128) / 256.0F;
        rgb[pixel * 3 + channel] = to_byte(glass[channel] * light + common + own_noise);
      }
    }
  }
}

}  // namespace slidestream::synth
