#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "operators/common/network_operator.hpp"
#include "planning/network_plan.hpp"
#include "support/pipeline_runs.hpp"
#include "support/pixel_images.hpp"
#include "support/random_pause.hpp"
#include "support/temporary_folder.hpp"

/// \file
/// A network that is made up, runs with it, and what its images must be.

namespace slidestream::test {

/// A network that is made up of a function of its tiles.
struct MadeUp final : Network {
  NetworkTiles cut{96, 32, 3, std::nullopt, false};
  NetworkOutput given{NetworkOutput::Kind::image, 3, 1, SampleType::uint8, NetworkActivation::none, 0.0F, 255.0F};
  int count = 1;
  bool place = false;                           ///< what it gives depends on the place in the tile
  std::map<std::uint64_t, std::int64_t> known;  ///< tiles of a slide by what they look like
  bool knows_all = false;                       ///< other tiles only fill batches up
  std::set<std::int64_t> failing;               ///< of these
  bool lacks_memory = false;                    ///< where it fails
  std::set<std::int64_t> wrong;                 ///< of these, those that it gives something for that isn't a number
  bool slow = false;
  std::chrono::milliseconds pause{0};
  std::set<std::int64_t> stuck;      ///< of the known: what isn't given before it is interrupted
  std::function<void()> when_stuck;  ///< called then
  mutable std::atomic<int> running{0};
  mutable std::atomic<int> runs{0};
  mutable std::atomic<int> known_ones{0};  ///< tiles that it got

  NetworkTiles tiles() const override { return cut; }
  NetworkOutput output() const override { return given; }
  NetworkMemory own;
  NetworkMemory memory() const override { return own; }
  std::string description() const override { return "made up"; }
  int sessions() const override { return count; }
  std::unique_ptr<NetworkSession> session(int) const override;

  static std::uint64_t look(std::span<const std::uint8_t> tile) {
    std::uint64_t hash = 14695981039346656037U;
    for (const std::uint8_t value : tile) hash = (hash ^ value) * 1099511628211U;
    return hash;
  }
};

inline float value_of(const MadeUp& network, int r, int g, int b, std::int64_t x, std::int64_t y, int channel) {
  const int colour = channel % 3 == 0 ? r : channel % 3 == 1 ? g : b;
  if (!network.place) return static_cast<float>(colour);
  return static_cast<float>((colour + 3 * x + 5 * y + 7 * channel) % 256);
}

class MadeUpSession final : public NetworkSession {
 public:
  explicit MadeUpSession(const MadeUp& network) : network_(network) {}

  void run(std::span<const std::uint8_t> pixels, std::span<float> values) override {
    CHECK(network_.running.fetch_add(1) < 2 * network_.count);
    ++network_.runs;
    if (network_.slow) random_pause();
    std::this_thread::sleep_for(network_.pause);
    const std::int64_t side = network_.cut.side;
    const bool vector = network_.given.kind == NetworkOutput::Kind::vector;
    const int scale = vector ? 1 : network_.given.scale;
    const std::int64_t out = vector ? 1 : side / scale;
    const int channels = network_.given.channels;
    REQUIRE(pixels.size() == static_cast<std::size_t>(network_.cut.batch * side * side * 3));
    REQUIRE(values.size() == static_cast<std::size_t>(network_.cut.batch * channels * out * out));
    bool fails = false;
    {
      std::size_t at = 0;
      for (std::int64_t tile = 0; tile < network_.cut.batch; ++tile) {
        std::int64_t number = -1;
        if (!network_.known.empty()) {
          const auto tile_bytes = static_cast<std::size_t>(side * side * 3);
          const auto own = pixels.subspan(static_cast<std::size_t>(tile) * tile_bytes, tile_bytes);
          const auto found = network_.known.find(MadeUp::look(own));
          if (found != network_.known.end()) number = found->second;
          if (number >= 0) ++network_.known_ones;
          if (network_.knows_all && number < 0) CHECK(std::ranges::all_of(own, [](int value) { return value == 0; }));
        }
        fails |= network_.failing.contains(number);
        if (network_.stuck.contains(number)) wait_for_interruption();
        for (int c = 0; c < channels; ++c) {
          for (std::int64_t y = 0; y < out; ++y) {
            for (std::int64_t x = 0; x < out; ++x) {
              const auto from = static_cast<std::size_t>(((tile * side + y * scale) * side + x * scale) * 3);
              values[at++] = value_of(network_, pixels[from], pixels[from + 1], pixels[from + 2], x, y, c);
            }
          }
        }
        if (network_.wrong.contains(number)) values[at - 1] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    network_.running.fetch_sub(1);
    if (fails && network_.lacks_memory) throw std::bad_alloc();
    if (fails) throw Error("planted");
  }

  void interrupt(bool now) noexcept override { interrupted_.store(now); }

 private:
  void wait_for_interruption() const {
    if (network_.when_stuck) network_.when_stuck();
    while (!interrupted_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    network_.running.fetch_sub(1);
    throw Error("interrupted");
  }

  const MadeUp& network_;
  std::atomic<bool> interrupted_{false};
};

inline std::unique_ptr<NetworkSession> MadeUp::session(int) const { return std::make_unique<MadeUpSession>(*this); }

/// Hands vectors to a test in place of a file of them.
class VectorsOperator final : public operators::NetworkOperator {
 public:
  VectorsOperator(std::shared_ptr<const Network> network, std::function<void(const TileVectors&)> take)
      : NetworkOperator("model", std::move(network)), take_(std::move(take)) {}

  std::vector<VectorsFile> vectors_files() const override {
    return {{"features", "features", ".vectors", [this](const std::filesystem::path& file, const TileVectors& vectors) {
               take_(vectors);
               std::ofstream(file) << vectors.values.size();
             }}};
  }

 private:
  std::function<void(const TileVectors&)> take_;
};

class MadeUpOperator final : public operators::NetworkOperator {
 public:
  explicit MadeUpOperator(std::shared_ptr<const Network> network) : NetworkOperator("model", std::move(network)) {}
};

inline Config config_of_network(const TemporaryFolder& folder, const std::string& name) {
  Config config = config_for(backends().back());
  if (config.pipeline.backend == Backend::cuda) config.pipeline.memory_mib = 64;
  config.output.maps = MapFormat::none;
  config.output.dir = (folder / name).string();
  config.image.format = ImageFormat::ome_tiff;
  config.image.compression = ImageCompression::none;
  config.image.tile = 64;
  config.image.levels = 2;
  config.pipeline.strip_height = 128;
  return config;
}

inline FaultInjection with(const std::shared_ptr<const MadeUp>& network, FaultInjection faults = {}) {
  faults.operators = {std::make_shared<MadeUpOperator>(network)};
  return faults;
}

inline std::filesystem::path network_image_of(const Config& config, const SlideResult& slide,
                                              const char* suffix = ".model.ome.tif") {
  return std::filesystem::path(config.output.dir) / "images" /
         (std::filesystem::path(slide.path).stem().string() + suffix);
}

inline PixelImage read_level(const std::filesystem::path& file, std::size_t level = 0) {
  const auto slide = Slide::open(file);
  const Level& of = slide->info().levels.at(level);
  PixelImage image({of.width, of.height}, rgb_format);
  read_rgb(*slide, level, 0, 0,
           {reinterpret_cast<std::uint8_t*>(image.bytes.data()), static_cast<std::ptrdiff_t>(image.pitch), of.width,
            of.height, rgb_format},
           BadTilePolicy::fail);
  return image;
}

/// What a network's image of a slide must be: all in memory, a tile after the other.
inline PixelImage whole_image(const MadeUp& network, const PixelImage& pixels, const Config& config,
                              const std::set<std::int64_t>& absent = {}) {
  const StitchPlan plan = plan_stitching(pixels.image, network.cut.side, network.cut.overlap, network.given.scale,
                                         edge_of(config.stitch.edge, network.given));
  StitchBand band(plan, network.given, config.stitch.weights);
  PixelImage image(plan.image, StitchBand::format(network.given));
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(plan.side * plan.side * 3));
  std::vector<float> values;
  std::int64_t made = 0;
  for (std::int64_t number = 0; number < plan.tiles(); ++number) {
    const StitchTile at = plan.tile(number);
    cut_tile(tile, pixels.view(), plan.input_of(at));
    values.clear();
    for (int c = 0; c < network.given.channels; ++c) {
      for (std::int64_t y = 0; y < plan.x.tile; ++y) {
        for (std::int64_t x = 0; x < plan.x.tile; ++x) {
          const auto from = static_cast<std::size_t>((y * plan.side + x) * plan.scale * 3);
          values.push_back(value_of(network, tile[from], tile[from + 1], tile[from + 2], x, y, c));
        }
      }
    }
    if (!absent.contains(number)) REQUIRE(band.put(at, values).sound(network.given));
    band.arrived(at, !absent.contains(number));
    if (band.ready() == made) continue;
    band.gather(part_of(image.view(), {0, made, plan.image.width, band.ready() - made}));
    made = band.ready();
    band.release(made);
  }
  return image;
}

/// Has the network know a slide's tiles.
inline void know(MadeUp& network, const std::string& slide, const Config& config) {
  const PixelImage pixels = read_level(slide);
  const StitchPlan plan = plan_stitching(pixels.image, network.cut.side, network.cut.overlap, network.given.scale,
                                         edge_of(config.stitch.edge, network.given));
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(plan.side * plan.side * 3));
  for (std::int64_t number = 0; number < plan.tiles(); ++number) {
    cut_tile(tile, pixels.view(), plan.input_of(plan.tile(number)));
    network.known[MadeUp::look(tile)] = number;
  }
  REQUIRE(network.known.size() == static_cast<std::size_t>(plan.tiles()));
}

inline std::vector<std::uint64_t> digests(const RunResult& result) {
  std::vector<std::uint64_t> all;
  for (const SlideResult& slide : result.slides) {
    REQUIRE(slide.artifacts.size() == 1);
    all.push_back(slide.artifacts[0].digest);
  }
  return all;
}

}  // namespace slidestream::test
