// Tiles put together, against what the definition says of whole images, a sample at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "support/pipeline_runs.hpp"
#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// What a tile weighs at each sample of an axis, and where it begins.
struct PlainTile {
  std::int64_t begin = 0;
  std::vector<int> weight;
};

int plain_ramp(StitchWeights weights, std::int64_t t, std::int64_t overlap) {
  if (weights == StitchWeights::tent) {
    return static_cast<int>(std::floor((512.0 * static_cast<double>(t) + 256.0 + static_cast<double>(overlap)) /
                                       (2.0 * static_cast<double>(overlap))));
  }
  if (weights == StitchWeights::none) return t < overlap / 2 ? 0 : 256;
  if (overlap % 2 == 1 && t == overlap / 2) return 128;
  if (t >= overlap / 2) return 256 - plain_ramp(weights, overlap - 1 - t, overlap);
  const double pi = std::acos(-1.0);
  return static_cast<int>(
      std::nearbyint(128 * (1 - std::cos(pi * (static_cast<double>(t) + 0.5) / static_cast<double>(overlap)))));
}

std::vector<PlainTile> plain_axis(std::int64_t size, std::int64_t tile, std::int64_t overlap, StitchEdge edge,
                                  StitchWeights weights) {
  const double step = static_cast<double>(tile - overlap);
  const double wanted = edge == StitchEdge::shift ? std::ceil(static_cast<double>(size - tile) / step) + 1
                                                  : std::ceil(static_cast<double>(size - overlap) / step);
  const auto count = static_cast<std::int64_t>(std::max(1.0, wanted));
  std::vector<PlainTile> tiles(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    PlainTile& at = tiles[static_cast<std::size_t>(i)];
    at.begin = i * (tile - overlap);
    if (edge == StitchEdge::shift && i + 1 == count && size >= tile) at.begin = size - tile;
    at.weight.assign(static_cast<std::size_t>(size), 0);
  }
  // From left to right: a tile has all the weight, up to where it is blended into the next one.
  for (std::int64_t x = 0; x < size; ++x) {
    std::int64_t i = 0;
    while (i + 1 < count && x >= tiles[static_cast<std::size_t>(i)].begin + tile) ++i;
    // Blends end where the tile on the left does.
    auto& left = tiles[static_cast<std::size_t>(i)];
    const std::int64_t t = x - (i * (tile - overlap) + tile - overlap);
    if (i + 1 < count && t >= 0) {
      const int right = plain_ramp(weights, t, overlap);
      left.weight[static_cast<std::size_t>(x)] = 256 - right;
      tiles[static_cast<std::size_t>(i) + 1].weight[static_cast<std::size_t>(x)] = right;
    } else {
      left.weight[static_cast<std::size_t>(x)] = 256;
    }
  }
  return tiles;
}

/// What is put together, from values of all tiles: channel after channel each.
struct PlainImage {
  const StitchPlan& plan;
  const NetworkOutput& output;
  std::vector<PlainTile> columns;
  std::vector<PlainTile> rows;
  const std::vector<std::vector<float>>& values;
  const std::vector<bool>& present;

  std::uint64_t mapped(float value) const {
    const bool wide = output.kind == NetworkOutput::Kind::classes || output.sample == SampleType::uint16;
    const float most = wide ? 65535.0F : 255.0F;
    const float factor = most / (output.high - output.low);
    const float scaled = (value - output.low) * factor;
    return static_cast<std::uint64_t>(std::min(most, std::max(0.0F, std::nearbyint(scaled))));
  }
  /// -1: no tile is there. Of classes the weighted sum, which isn't rounded.
  std::int64_t sample(std::int64_t x, std::int64_t y, int channel) const {
    std::uint64_t sum = 0;
    std::uint64_t weight = 0;
    std::size_t number = 0;
    for (const PlainTile& row : rows) {
      for (const PlainTile& column : columns) {
        const std::size_t tile = number++;
        const auto w = static_cast<std::uint64_t>(row.weight[static_cast<std::size_t>(y)]) *
                       static_cast<std::uint64_t>(column.weight[static_cast<std::size_t>(x)]);
        if (w == 0 || !present[tile]) continue;
        const std::int64_t side = plan.x.tile;
        const std::int64_t at = (channel * side + y - row.begin) * side + x - column.begin;
        sum += w * mapped(values[tile][static_cast<std::size_t>(at)]);
        weight += w;
      }
    }
    if (weight == 0) return -1;
    if (output.kind == NetworkOutput::Kind::classes) return static_cast<std::int64_t>(sum);
    return static_cast<std::int64_t>((2 * sum + weight) / (2 * weight));
  }
};

template <class Random>
void put_in_any_order(StitchBand& band, const StitchPlan& plan, const std::vector<std::vector<float>>& values,
                      const std::vector<bool>& present, PixelImage& image, Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(plan.tiles()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  std::int64_t made = 0;
  while (!order.empty() || made < plan.image.height) {
    bool moved = false;
    std::erase_if(order, [&](std::int64_t number) {
      const StitchTile tile = plan.tile(number);
      const auto at = static_cast<std::size_t>(number);
      if (!band.has_room(tile.row)) return false;
      if (present[at]) REQUIRE(band.put(tile, values[at]).not_finite < 0);
      band.arrived(tile, present[at]);
      moved = true;
      return true;
    });
    while (made < band.ready()) {
      const std::int64_t until = made + 1 + random_below(random, band.ready() - made);
      const std::int64_t middle = random_below(random, plan.image.width + 1);
      for (const Rect& rect :
           {Rect{0, made, middle, until - made}, Rect{middle, made, plan.image.width - middle, until - made}}) {
        if (rect.width > 0) band.gather(part_of(image.view(), rect));
      }
      made = until;
      band.release(made);
      moved = true;
    }
    REQUIRE(moved);
  }
}

}  // namespace

TEST_CASE("every overlap, edge, window, scale and size gives what the definition says, whatever arrives when (long)") {
  std::mt19937_64 random(5);
  for (const int side : {1, 2, 5, 8, 12}) {
    for (int overlap = 0; overlap <= side / 2; ++overlap) {
      for (int turn = 0; turn < rounds(40); ++turn) {
        const int scale = side % 4 == 0 && overlap % 4 == 0 && turn % 3 == 0   ? 4
                          : side % 2 == 0 && overlap % 2 == 0 && turn % 3 == 1 ? 2
                                                                               : 1;
        const StitchEdge edge = turn / 2 % 2 == 0 ? StitchEdge::shift : StitchEdge::mirror;
        const auto weights = static_cast<StitchWeights>(random() % 3);
        const Size input = random_size(random, turn % 5 == 0 ? side : 44);
        NetworkOutput output;
        output.kind = turn % 7 == 3 ? NetworkOutput::Kind::classes : NetworkOutput::Kind::image;
        output.channels = std::array{1, 3, 4, 16}[random() % 4];
        output.scale = scale;
        output.sample = random() % 2 == 0 ? SampleType::uint8 : SampleType::uint16;
        // Some values of images lie beyond the range.
        output.low = output.refuses_outside() ? -2.0F : -1.0F;
        output.high = output.refuses_outside() ? 4.0F : 3.0F;
        const StitchPlan plan = plan_stitching(input, side, overlap, scale, edge);
        INFO(input.width << " x " << input.height << ", side " << side << ", overlap " << overlap << ", scale " << scale
                         << ", edge " << static_cast<int>(edge) << ", weights " << static_cast<int>(weights));
        REQUIRE(plan.image == Size{(input.width + scale - 1) / scale, (input.height + scale - 1) / scale});
        const auto columns = plain_axis(plan.image.width, side / scale, overlap / scale, edge, weights);
        const auto rows = plain_axis(plan.image.height, side / scale, overlap / scale, edge, weights);
        REQUIRE(plan.x.count == static_cast<std::int64_t>(columns.size()));
        REQUIRE(plan.y.count == static_cast<std::int64_t>(rows.size()));
        for (std::int64_t i = 0; i < plan.x.count; ++i) {
          REQUIRE(plan.x.begin(i) == columns[static_cast<std::size_t>(i)].begin);
          REQUIRE(plan.input_of({i, 0}).x == columns[static_cast<std::size_t>(i)].begin * scale);
        }
        std::vector<std::vector<float>> values(static_cast<std::size_t>(plan.tiles()));
        std::vector<bool> present(values.size());
        const bool holes = turn % 4 == 1;
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i].resize(static_cast<std::size_t>(plan.x.tile * plan.x.tile * output.channels));
          for (float& value : values[i]) value = static_cast<float>(random() % 6000) / 1000.0F - 2.0F;
          present[i] = !holes || random() % 3 != 0;
        }
        const PlainImage expected{plan, output, columns, rows, values, present};
        StitchBand band(plan, output, weights);
        const PixelFormat format = StitchBand::format(output);
        PixelImage image(plan.image, format);
        put_in_any_order(band, plan, values, present, image, random);
        std::int64_t wrong = 0;
        for (std::int64_t y = 0; y < plan.image.height; ++y) {
          for (std::int64_t x = 0; x < plan.image.width; ++x) {
            if (output.kind == NetworkOutput::Kind::classes) {
              int label = expected.sample(x, y, 0) < 0 ? output.ignore : 0;
              for (int c = 1; label < output.channels && c < output.channels; ++c) {
                if (expected.sample(x, y, c) > expected.sample(x, y, label)) label = c;
              }
              wrong += image.at<std::uint8_t>(x, y) != label;
              continue;
            }
            for (int c = 0; c < output.channels; ++c) {
              std::int64_t value = expected.sample(x, y, c);
              if (value < 0) value = format == rgb_format ? 255 : 0;
              wrong += (output.sample == SampleType::uint8 ? image.at<std::uint8_t>(x, y, c)
                                                           : image.at<std::uint16_t>(x, y, c)) != value;
            }
          }
        }
        REQUIRE(wrong == 0);
      }
    }
  }
}

TEST_CASE("flat tiles give a flat image, whatever their weights") {
  for (const StitchWeights weights : {StitchWeights::tent, StitchWeights::cosine, StitchWeights::none}) {
    for (int overlap = 0; overlap <= 16; ++overlap) {
      const StitchPlan plan = plan_stitching({101, 77}, 32, overlap, 1, StitchEdge::shift);
      for (const int value : {0, 1, 127, 254, 255}) {
        NetworkOutput output;
        output.low = 0.0F;
        output.high = 255.0F;
        StitchBand band(plan, output, weights);
        PixelImage image(plan.image, luminance_format);
        std::mt19937_64 random(1);
        const std::vector<std::vector<float>> values(static_cast<std::size_t>(plan.tiles()),
                                                     std::vector<float>(32 * 32, static_cast<float>(value)));
        put_in_any_order(band, plan, values, std::vector<bool>(values.size(), true), image, random);
        CHECK(std::ranges::all_of(image.bytes, [&](std::byte b) { return std::to_integer<int>(b) == value; }));
      }
    }
  }
}

TEST_CASE("weights of neighbours are whole, and what two tiles weigh is symmetric") {
  for (int overlap = 1; overlap < 600; ++overlap) {
    for (const StitchWeights weights : {StitchWeights::tent, StitchWeights::cosine}) {
      const std::vector<std::uint16_t> ramp = stitch_ramp(weights, overlap);
      for (std::size_t t = 0; t < ramp.size(); ++t) {
        REQUIRE(ramp[t] == plain_ramp(weights, static_cast<std::int64_t>(t), overlap));
        if (t > 0) REQUIRE(ramp[t] >= ramp[t - 1]);
        if (weights == StitchWeights::cosine) REQUIRE(ramp[t] + ramp[ramp.size() - 1 - t] == 256);
      }
    }
  }
}

TEST_CASE("values are mapped as float32 does it, and what isn't a finite number is found") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float largest = std::numeric_limits<float>::max();
  const std::array<float, 8> values = {0.0F, 1.0F, 0.5F / 255.0F, 1.5F / 255.0F, -1.0F, 7.0F, largest, -largest};
  std::array<std::uint8_t, 8> mapped{};
  NetworkOutput one;
  NetworkOutput two;
  two.channels = 2;
  const MappedValues seen = map_values(mapped.data(), values.data(), 8, one);
  CHECK(seen.not_finite == -1);
  CHECK(seen.outside == 4);
  CHECK(seen.least == -largest);
  CHECK(seen.largest == largest);
  CHECK(mapped == std::array<std::uint8_t, 8>{0, 255, 0, 2, 0, 255, 255, 0});
  std::array<std::uint16_t, 8> wide{};
  std::array<float, 8> wrong = values;
  wrong[5] = nan;
  CHECK(map_values(wide.data(), wrong.data(), 4, two).not_finite == 5);
  for (const float value : {infinite, -infinite, nan}) {
    wrong[2] = value;
    CHECK(map_values(wide.data(), wrong.data(), 4, two).not_finite == 2);
    CHECK(map_values(mapped.data(), wrong.data(), 8, one).not_finite == 2);
  }
  CHECK(seen.saturated == 0);
  CHECK(seen.ignored == 0);
  NetworkOutput output;
  const StitchPlan plan = plan_stitching({4, 4}, 4, 0, 1, StitchEdge::shift);
  StitchBand band(plan, output, StitchWeights::tent);
  std::vector<float> tile(16, 0.0F);
  CHECK(band.put({0, 0}, tile).sound(output));
  for (const float value : {nan, infinite, -infinite}) {
    tile[15] = value;
    CHECK_FALSE(band.put({0, 0}, tile).sound(output));
  }
  CHECK_THROWS_AS(static_cast<void>(band.put({0, 0}, std::span(tile).first(15))), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(band.put({0, 2}, tile)), std::invalid_argument);
}

TEST_CASE("activations are those of float64, to 3e-7") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> value(-30.0F, 30.0F);
  constexpr std::int64_t pixels = 700;
  for (const int channels : {1, 2, 5, 16}) {
    std::vector<float> values(static_cast<std::size_t>(pixels * channels));
    for (float& v : values) v = value(random);
    values[0] = 1e30F;
    values[1] = -1e30F;
    values[2] = 0.0F;
    for (const NetworkActivation activation : {NetworkActivation::softmax, NetworkActivation::sigmoid}) {
      NetworkOutput output;
      output.channels = channels;
      output.activation = activation;
      std::vector<std::uint16_t> samples(values.size());
      const MappedValues seen = map_values(samples.data(), values.data(), pixels, output);
      CHECK(seen.sound(output));
      CHECK(seen.outside == 0);
      CHECK(seen.least >= 0.0F);
      CHECK(seen.largest <= 1.0F);
      for (std::int64_t i = 0; i < pixels; ++i) {
        double sum = 0.0, most = -1e40;
        for (int c = 0; c < channels; ++c) most = std::max(most, static_cast<double>(values[c * pixels + i]));
        for (int c = 0; c < channels; ++c) sum += std::exp(static_cast<double>(values[c * pixels + i]) - most);
        for (int c = 0; c < channels; ++c) {
          const double v = values[c * pixels + i];
          const double expected =
              activation == NetworkActivation::softmax ? std::exp(v - most) / sum : 1.0 / (1.0 + std::exp(-v));
          // Half a sample is what rounding takes.
          REQUIRE(std::abs(samples[i * channels + c] - 65535.0 * expected) <= 0.5 + 65535.0 * 3e-7);
        }
      }
    }
  }
}

TEST_CASE("scores of classes are never clamped, and what isn't computed has a label of its own") {
  NetworkOutput output;
  output.kind = NetworkOutput::Kind::classes;
  output.channels = 2;
  output.ignore = 7;
  const StitchPlan plan = plan_stitching({8, 4}, 4, 0, 1, StitchEdge::shift);
  StitchBand band(plan, output, StitchWeights::tent);
  std::vector<float> tile(32, 0.25F);
  std::fill(tile.begin() + 16, tile.end(), 0.75F);
  CHECK(band.put({0, 0}, tile).sound(output));
  tile[3] = 5.0F;
  const MappedValues seen = band.put({1, 0}, tile);
  CHECK_FALSE(seen.sound(output));
  CHECK(seen.outside == 1);
  CHECK(seen.largest == 5.0F);
  band.arrived({0, 0}, true);
  band.arrived({1, 0}, false);
  PixelImage labels({8, 4}, luminance_format);
  band.gather(labels.view());
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::to_integer<int>(labels.bytes[i]) == (i % 8 < 4 ? 1 : 7));
  output.ignore = 1;
  CHECK_THROWS_AS(StitchBand(plan, output, StitchWeights::tent), std::invalid_argument);
}

TEST_CASE("classes are compared before their blend is rounded") {
  NetworkOutput output;
  output.kind = NetworkOutput::Kind::classes;
  output.channels = 2;
  const StitchPlan plan = plan_stitching({6, 4}, 4, 2, 1, StitchEdge::shift);
  StitchBand band(plan, output, StitchWeights::tent);
  // Column 2 is 3/4 of the left tile and 1/4 of the right one, column 3 the reverse.
  const auto tile = [](float first, float second) {
    std::vector<float> values(32, first / 65535.0F);
    std::fill(values.begin() + 16, values.end(), second / 65535.0F);
    return values;
  };
  CHECK(band.put({0, 0}, tile(1000, 1000)).sound(output));
  CHECK(band.put({1, 0}, tile(1000, 1001)).sound(output));
  band.arrived({0, 0}, true);
  band.arrived({1, 0}, true);
  PixelImage labels({6, 4}, luminance_format);
  band.gather(labels.view());
  // Rounded, the second class is 1000 in column 2 as the first is, which would win.
  for (std::int64_t x = 0; x < 6; ++x) CHECK(int{labels.at<std::uint8_t>(x, 1)} == (x < 2 ? 0 : 1));
}

TEST_CASE("tiles are cut as numpy's symmetric padding has them, from no more rows than they need") {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < rounds(200); ++turn) {
    const Size size = random_size(random, 50);
    const int scale = static_cast<int>(1 + random() % 3);
    const std::int64_t side = scale * (1 + random_below(random, 9));
    const std::int64_t overlap = scale * random_below(random, side / scale / 2 + 1);
    const StitchPlan plan =
        plan_stitching(size, side, overlap, scale, turn % 2 == 0 ? StitchEdge::shift : StitchEdge::mirror);
    const PixelImage image = random_image(random, size, rgb_format);
    std::int64_t before = 0;
    for (std::int64_t row = 0; row < plan.y.count; ++row) {
      const auto [first, end] = plan.input_rows(row);
      CHECK(first >= before);
      CHECK(end - first <= std::min(side, size.height));
      before = first;
      const PixelImage rows = image.cut({0, first, size.width, end - first});
      for (std::int64_t column = 0; column < plan.x.count; ++column) {
        const Rect rect = plan.input_of({column, row});
        std::vector<std::uint8_t> tile(static_cast<std::size_t>(side * side * 3));
        cut_tile(tile, rows.view(), rect);
        const auto inside = [](std::int64_t i, std::int64_t length) {
          while (i < 0 || i >= length) i = i < 0 ? -1 - i : 2 * length - 1 - i;
          return i;
        };
        for (std::int64_t y = 0; y < side; ++y) {
          for (std::int64_t x = 0; x < side; ++x) {
            for (int c = 0; c < 3; ++c) {
              REQUIRE(tile[static_cast<std::size_t>((y * side + x) * 3 + c)] ==
                      image.at(inside(rect.x + x, size.width), inside(rect.y + y, size.height), c));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("areas are means with the weights that their ends give, rounded half up") {
  std::mt19937_64 random(8);
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t factor = 65537 + static_cast<std::int64_t>(random() % (turn % 3 == 0 ? 20 : 5) * 65536) +
                                static_cast<std::int64_t>(random() % 65536);
    Size size = random_size(random, 90);
    size.width += (factor / 65536 + 1) * (turn % 20 == 0 ? 1100 : 1);  // some rows have several parts
    size.height += factor / 65536 + 1;
    const PixelImage image = random_image(random, size, rgb_format);
    PixelImage made(AreaResampler::size_of(size, factor), rgb_format);
    resample_area(made.view(), image.view(), factor);
    REQUIRE(made.image == Size{size.width * 65536 / factor, size.height * 65536 / factor});
    // The same some rows at a time, with the parts of a row from the last to the first.
    PixelImage in_pieces(made.image, rgb_format);
    AreaResampler resampler(size, factor);
    AreaResampler::Taken all;
    while (all.rows < size.height) {
      const std::int64_t room = std::min(1 + random_below(random, 3), in_pieces.image.height - all.made);
      const AreaResampler::Taken taken = resampler.add(
          room == 0 ? nullptr : in_pieces.view().row<std::uint8_t>(all.made), in_pieces.view().pitch,
          std::max<std::int64_t>(room, 1), image.view().row<const std::uint8_t>(all.rows), image.view().pitch,
          std::min(1 + random_below(random, 9), size.height - all.rows), [](std::size_t parts, const auto& work) {
            for (std::size_t part = parts; part > 0; --part) work(part - 1);
          });
      REQUIRE(taken.rows > 0);
      REQUIRE(taken.made <= room);
      all.rows += taken.rows;
      all.made += taken.made;
    }
    REQUIRE(all.made == in_pieces.image.height);
    for (std::int64_t y = 0; y < made.image.height; ++y) {
      const auto bytes = static_cast<std::size_t>(made.image.width * 3);
      REQUIRE(std::memcmp(made.view().row<std::uint8_t>(y), in_pieces.view().row<std::uint8_t>(y), bytes) == 0);
    }
    const auto weight = [&](std::int64_t pixel, std::int64_t sample) {
      const std::int64_t begin = std::max(pixel * 65536, sample * factor);
      const std::int64_t end = std::min((pixel + 1) * 65536, (sample + 1) * factor);
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, end - begin));
    };
    for (int sample = 0; sample < 40; ++sample) {
      const std::int64_t x = random_below(random, made.image.width);
      const std::int64_t y = random_below(random, made.image.height);
      std::uint64_t sum = 0;
      // No other pixel has a weight.
      const auto begin = [&](std::int64_t of) { return of * factor / 65536; };
      const auto end = [&](std::int64_t of, std::int64_t side) { return std::min(side, begin(of + 1) + 1); };
      for (std::int64_t j = begin(y); j < end(y, size.height); ++j) {
        for (std::int64_t i = begin(x); i < end(x, size.width); ++i)
          sum += weight(j, y) * weight(i, x) * image.at(i, j, sample % 3);
      }
      const auto area = static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(factor);
      REQUIRE(made.at(x, y, sample % 3) == (2 * sum + area) / (2 * area));
    }
    // A part that is made alone, from its own rows and columns.
    Rect part = {random_below(random, made.image.width), random_below(random, made.image.height), 0, 0};
    part.width = 1 + random_below(random, made.image.width - part.x);
    part.height = 1 + random_below(random, made.image.height - part.y);
    const Rect source = AreaResampler::source_of(part, factor);
    AreaResampler of_part(size, factor, part);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(source.width * 3));
    std::vector<std::uint8_t> line(static_cast<std::size_t>(part.width * 3));
    std::int64_t rows = 0;
    for (std::int64_t y = source.y; y < source.bottom(); ++y) {
      for (std::int64_t i = 0; i < source.width * 3; ++i) {
        row[static_cast<std::size_t>(i)] =
            static_cast<std::uint8_t>(image.at(source.x + i / 3, y, static_cast<int>(i % 3)));
      }
      if (!of_part.add(line.data(), row.data())) continue;
      for (std::int64_t i = 0; i < part.width * 3; ++i) {
        REQUIRE(line[static_cast<std::size_t>(i)] == made.at(part.x + i / 3, part.y + rows, static_cast<int>(i % 3)));
      }
      ++rows;
    }
    REQUIRE(rows == part.height);
  }
  CHECK(area_factor(0.5, 0.25) == 131072);
  CHECK(area_factor(0.51, 0.5) == 65536);
  CHECK(area_factor(0.49, 0.5) == 65536);
  CHECK_THROWS_AS(area_factor(0.48, 0.5), Error);
  CHECK_THROWS_AS(area_factor(130.0, 0.5), Error);
}
