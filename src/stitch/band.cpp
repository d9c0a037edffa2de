#include <slidestream/stitch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "image/stitch_blend.hpp"

namespace slidestream {
namespace {

std::size_t tile_bytes_of(const StitchPlan& plan, const NetworkOutput& output) noexcept {
  return static_cast<std::size_t>(plan.x.tile * plan.y.tile * output.channels) * bytes_of(kept_sample(output));
}

}  // namespace

template <class Sample>
std::int64_t map_values(Sample* to, const float* values, std::int64_t pixels, int channels, float low, float high) {
  constexpr auto most = static_cast<float>(std::numeric_limits<Sample>::max());
  const float factor = most / (high - low);
  std::int64_t found = -1;
  for (int channel = 0; channel < channels; ++channel) {
    const float* const from = values + channel * pixels;
    int wrong = 0;
    for (std::int64_t i = 0; i < pixels; ++i) {
      // 0 for every finite number.
      wrong |= static_cast<int>(from[i] - from[i] != 0.0F);
      to[i * channels + channel] = static_cast<Sample>(mapped_value(from[i], low, factor, most));
    }
    if (wrong == 0 || found >= 0) continue;
    for (std::int64_t i = 0; found < 0; ++i) {
      if (!std::isfinite(from[i])) found = channel * pixels + i;
    }
  }
  return found;
}

template std::int64_t map_values(std::uint8_t*, const float*, std::int64_t, int, float, float);
template std::int64_t map_values(std::uint16_t*, const float*, std::int64_t, int, float, float);

std::uint64_t StitchBand::bytes(const StitchPlan& plan, const NetworkOutput& output) noexcept {
  return static_cast<std::uint64_t>(std::min<std::int64_t>(2, plan.y.count) * plan.x.count) *
         tile_bytes_of(plan, output);
}

PixelFormat StitchBand::format(const NetworkOutput& output) noexcept {
  if (output.kind == NetworkOutput::Kind::classes) return {SampleType::uint8, 1};
  return {output.sample, output.channels};
}

StitchBand::StitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights)
    : plan_(plan),
      output_(output),
      channels_(output.channels),
      sample_(kept_sample(output)),
      ramp_(stitch_ramp(weights, plan.x.overlap)),
      tile_bytes_(tile_bytes_of(plan, output)),
      present_(static_cast<std::size_t>(plan.tiles())),
      rows_(plan) {
  check_stitched(output);
  // Every byte that is read is written before.
  tiles_.reset(new std::byte[static_cast<std::size_t>(bytes(plan, output))]);
}

StitchRows::StitchRows(const StitchPlan& plan)
    : down_(plan.y), missing_(static_cast<std::size_t>(plan.y.count), plan.x.count) {}

void StitchRows::arrived(std::int64_t row) {
  --missing_[static_cast<std::size_t>(row)];
  while (whole_ < down_.count && missing_[static_cast<std::size_t>(whole_)] == 0) ready_ = down_.whole_after(whole_++);
}

void StitchRows::release(std::int64_t rows) {
  while (freed_ < down_.count && down_.end_of(freed_) <= rows) ++freed_;
}

bool StitchBand::put(StitchTile tile, std::span<const float> values) {
  const std::int64_t pixels = plan_.x.tile * plan_.y.tile;
  if (!has_room(tile.row) || values.size() != static_cast<std::size_t>(pixels * channels_)) {
    throw std::invalid_argument("a tile has no room, or other values than its image has samples");
  }
  std::byte* const to =
      tiles_.get() + static_cast<std::size_t>((tile.row % 2) * plan_.x.count + tile.column) * tile_bytes_;
  if (sample_ == SampleType::uint8) {
    return map_values(reinterpret_cast<std::uint8_t*>(to), values.data(), pixels, channels_, output_.low,
                      output_.high) < 0;
  }
  return map_values(reinterpret_cast<std::uint16_t*>(to), values.data(), pixels, channels_, output_.low, output_.high) <
         0;
}

void StitchBand::arrived(StitchTile tile, bool present) {
  present_[static_cast<std::size_t>(tile.row * plan_.x.count + tile.column)] = present ? 1 : 0;
  rows_.arrived(tile.row);
}

void StitchBand::gather(const PixelView<MemorySpace::host>& out) const {
  if (out.format != format(output_) || out.image != plan_.image || out.rect.bottom() > ready()) {
    throw std::invalid_argument("pixels are wanted whose tiles aren't there, or of another image");
  }
  if (sample_ == SampleType::uint8) {
    gather_rows<std::uint8_t>(out);
  } else {
    gather_rows<std::uint16_t>(out);
  }
}

template <class Sample>
void StitchBand::gather_rows(const PixelView<MemorySpace::host>& out) const {
  const bool labels = output_.kind == NetworkOutput::Kind::classes;
  const std::uint32_t fill = format(output_) == rgb_format ? 255 : 0;
  const StitchAxis& across = plan_.x;
  const StitchAxis& down = plan_.y;
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    // One or two rows of tiles, with their weights.
    const std::int64_t lower = down.tile_at(y);
    const std::int64_t t_down = down.blend_at(y, lower);
    std::array<std::int64_t, 2> tile_rows = {lower, lower - 1};
    std::array<std::uint32_t, 2> row_weights = {256, 0};
    int rows = 1;
    if (t_down >= 0) {
      row_weights[0] = ramp_[static_cast<std::size_t>(t_down)];
      row_weights[1] = 256 - row_weights[0];
      rows = 2;
    }
    Sample* to = labels ? nullptr : out.row<Sample>(y);
    std::uint8_t* label = labels ? out.row<std::uint8_t>(y) : nullptr;
    for (std::int64_t x = out.rect.x; x < out.rect.right();) {
      const std::int64_t right = across.tile_at(x);
      const bool two = across.blend_at(x, right) >= 0;
      // Pixels that the same tiles count at.
      const std::int64_t end = std::min(out.rect.right(), two ? right * across.step() + across.overlap
                                                          : right + 1 == across.count ? across.size
                                                                                      : (right + 1) * across.step());
      struct Place {
        const Sample* first;  ///< of pixel x; null where the tile is absent
        std::uint32_t down;
        bool right;
      };
      std::array<Place, 4> places{};
      int count = 0;
      for (int row = 0; row < rows; ++row) {
        if (row_weights[row] == 0) continue;
        for (int left = 0; left < (two ? 2 : 1); ++left) {
          const std::int64_t column = right - left;
          const std::int64_t number = tile_rows[row] * across.count + column;
          const Sample* first = nullptr;
          if (present_[static_cast<std::size_t>(number)] != 0) {
            const auto slot = static_cast<std::size_t>((tile_rows[row] % 2) * across.count + column);
            first = reinterpret_cast<const Sample*>(tiles_.get() + slot * tile_bytes_) +
                    ((y - down.begin(tile_rows[row])) * across.tile + x - across.begin(column)) * channels_;
          }
          places[count++] = {first, row_weights[row], left == 0};
        }
      }
      if (count == 1 && !labels) {
        const auto samples = static_cast<std::size_t>((end - x) * channels_);
        if (places[0].first != nullptr) {
          std::memcpy(to, places[0].first, samples * sizeof(Sample));
        } else {
          std::fill_n(to, samples, static_cast<Sample>(fill));
        }
        to += samples;
        x = end;
        continue;
      }
      for (std::int64_t i = 0; x < end; ++x, ++i) {
        const std::uint32_t weight = two ? ramp_[static_cast<std::size_t>(across.blend_at(x, right))] : 256;
        CountedTiles<Sample> tiles;
        for (int k = 0; k < count; ++k) {
          const std::uint32_t w = places[k].down * (places[k].right ? weight : 256 - weight);
          if (w == 0) continue;
          tiles.add(places[k].first == nullptr ? nullptr : places[k].first + i * channels_, w);
        }
        if (labels) {
          *label++ = label_of(tiles, channels_);
        } else {
          for (int channel = 0; channel < channels_; ++channel) {
            *to++ = static_cast<Sample>(blended(tiles, channel, fill));
          }
        }
      }
    }
  }
}

}  // namespace slidestream
