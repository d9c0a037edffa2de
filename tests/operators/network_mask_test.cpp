// Tissue as a network finds it, beside a plain computation of the whole image.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/stitch.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/common/tile_grid.hpp"
#include "operators/tissue/network_mask.hpp"
#include "operators/tissue/preparation.hpp"
#include "operators/tissue/small_image.hpp"
#include "operators/tissue/tissue.hpp"
#include "slide/test_images.hpp"
#include "support/operator_runs.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::operators;
using namespace slidestream::test;

namespace {

constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

/// What a network gives for a sample of a tile, at (x, y) there, from the pixel in its top left corner.
using Value = std::function<float(const std::uint8_t* pixel, std::int64_t x, std::int64_t y, int channel)>;

struct PlainNetwork final : Network {
  NetworkTiles cut{32, 0, 1, 2.0};
  NetworkOutput given{NetworkOutput::Kind::image, 1, 1, SampleType::uint16, NetworkActivation::none, 0.0F, 255.0F};
  Value value = [](const std::uint8_t* pixel, std::int64_t x, std::int64_t y, int channel) {
    // Neighbours differ where they overlap.
    return static_cast<float>((pixel[channel % 3] + 3 * x + 5 * y) % 256);
  };

  std::function<bool()> before;  ///< a batch; true: it isn't computed until it is interrupted

  NetworkTiles tiles() const override { return cut; }
  NetworkOutput output() const override { return given; }
  std::string description() const override { return "plain"; }
  std::unique_ptr<NetworkSession> session(int gpu) const override;

  /// \param tile  its pixels
  void compute(std::span<const std::uint8_t> tile, std::vector<float>& values) const {
    const std::int64_t side = cut.side / given.scale;
    for (int channel = 0; channel < given.channels; ++channel) {
      for (std::int64_t y = 0; y < side; ++y) {
        for (std::int64_t x = 0; x < side; ++x) {
          const auto from = static_cast<std::size_t>((y * cut.side + x) * given.scale * 3);
          values.push_back(value(&tile[from], x, y, channel));
        }
      }
    }
  }
};

class PlainSession final : public NetworkSession {
 public:
  explicit PlainSession(const PlainNetwork& network) : network_(network) {}

  void run(std::span<const std::uint8_t> pixels, std::span<float> values) override {
    if (network_.before && network_.before()) {
      interrupted_.wait(false);
      throw Error("interrupted");
    }
    const auto tile = static_cast<std::size_t>(network_.cut.side * network_.cut.side * 3);
    REQUIRE(pixels.size() == tile * static_cast<std::size_t>(network_.cut.batch));
    std::vector<float> all;
    for (std::size_t at = 0; at < pixels.size(); at += tile) network_.compute(pixels.subspan(at, tile), all);
    REQUIRE(values.size() == all.size());
    std::ranges::copy(all, values.begin());
  }

  void interrupt(bool now) noexcept override {
    interrupted_ = now;
    interrupted_.notify_all();
  }

 private:
  const PlainNetwork& network_;
  std::atomic<bool> interrupted_{false};
};

std::unique_ptr<NetworkSession> PlainNetwork::session(int) const { return std::make_unique<PlainSession>(*this); }

class OneSlide {
 public:
  OneSlide(int width, int height, double mpp) {
    const Picture picture = make_stained_picture(width, height, 3);
    TestDirectory directory =
        tiled_directory(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 32, 32, 3);
    for (int y = 0; y < height; y += 32) {
      for (int x = 0; x < width; x += 32) directory.tiles.push_back(to_bytes(cut(picture, x, y, 32, 32)));
    }
    TestTiff tiff;
    tiff.directories = {directory};
    path = folder.write("slide.svs", tiff.bytes());
    slide = Slide::open(path, {.mpp = mpp});
  }

  SlideContext context() const { return {*slide, 0, path, slide->info().mean_mpp()}; }
  Mask mask(Size size, double scale) const {
    const Level& level = slide->info().levels.front();
    return empty_mask(size, {scale, scale}, {level.width, level.height});
  }

  TemporaryFolder folder;
  std::filesystem::path path;
  std::shared_ptr<const Slide> slide;
};

/// What the network gives for a whole image: a tile after the other, all in memory.
std::vector<std::uint16_t> plain_image(const PlainNetwork& network, const SmallImage& image, const StitchPlan& plan) {
  StitchBand band(plan, network.given, StitchWeights::tent);
  const PixelFormat format = StitchBand::format(network.given);
  std::vector<std::uint16_t> samples(static_cast<std::size_t>(plan.image.width * plan.image.height) * format.channels);
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(plan.side * plan.side * 3));
  std::int64_t made = 0;
  for (std::int64_t number = 0; number < plan.tiles(); ++number) {
    cut_tile(tile, image.view(), plan.input_of(plan.tile(number)));
    std::vector<float> values;
    network.compute(tile, values);
    REQUIRE(band.put(plan.tile(number), values).outside == 0);
    band.arrived(plan.tile(number), true);
    if (band.ready() == made) continue;
    const auto pitch = static_cast<std::ptrdiff_t>(plan.image.width * format.channels * 2);
    band.gather({reinterpret_cast<std::byte*>(samples.data()) + made * pitch,
                 pitch,
                 {0, made, plan.image.width, band.ready() - made},
                 plan.image,
                 format});
    made = band.ready();
    band.release(made);
  }
  REQUIRE(made == plan.image.height);
  return samples;
}

Mask plain_mask(Mask mask, const OneSlide& slide, const PlainNetwork& network, const TissueChoice& choice) {
  const TissueNetworkTiles tiles = plan_tissue_tiles(slide.slide->info(), network, plenty);
  const SmallImage image = read_small_level(*slide.slide, tiles.image, BadTilePolicy::fail);
  const std::vector<std::uint16_t> samples = plain_image(network, image, tiles.stitch);
  const auto channels = static_cast<std::int64_t>(StitchBand::format(network.given).channels);
  const Size size = tiles.stitch.image;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    for (std::int64_t x = 0; x < mask.size.width; ++x) {
      const double pixel = tiles.image.scale.x * static_cast<double>(network.given.scale);
      const auto place = [&](std::int64_t at, std::int64_t most) {
        const double centre = (static_cast<double>(at) + 0.5) * mask.scale.x;
        return std::min(static_cast<std::int64_t>(std::floor(centre / pixel)), most - 1);
      };
      const std::int64_t at = (place(y, size.height) * size.width + place(x, size.width)) * channels;
      const auto sample = [&](std::int64_t channel) { return samples[static_cast<std::size_t>(at + channel)]; };
      bool is = sample(0) == choice.label;
      if (network.given.kind != NetworkOutput::Kind::labels) {
        const int share = channels == 2 ? sample(choice.label) : choice.label == 1 ? sample(0) : 65535 - sample(0);
        is = share >= 65535.0 * choice.probability;
      }
      mask.row(y)[static_cast<std::size_t>(x)] = is ? 1 : 0;
    }
  }
  return mask;
}

/// What goes wrong; empty: nothing.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("A network's mask is that of the whole image in memory, by the nearest pixel (long)") {
  struct Case {
    int width, height;
    double mpp;  // of the slide; the network's pixels have 2
    int side, overlap, batch, channels, scale;
  };
  for (const Case& each :
       {Case{150, 110, 2.0, 32, 0, 1, 1, 1}, Case{150, 110, 2.0, 32, 12, 1, 2, 1}, Case{201, 333, 1.0, 32, 8, 3, 1, 2},
        Case{257, 190, 0.7, 48, 24, 4, 2, 1}, Case{400, 90, 2.0, 64, 16, 5, 1, 4}, Case{40, 30, 2.0, 64, 0, 2, 2, 2}}) {
    const OneSlide slide(each.width, each.height, each.mpp);
    PlainNetwork network;
    network.cut = {each.side, each.overlap, each.batch, 2.0};
    network.given.channels = each.channels;
    network.given.scale = each.scale;
    const TissueNetworkTiles tiles = plan_tissue_tiles(slide.slide->info(), network, plenty);
    const Size level0 = {each.width, each.height};
    // Of a finer, the same and coarser grids, the last of which reaches beyond the slide.
    for (const double scale : {0.7, 1.0, 3.3, 8.0}) {
      for (const int label : {0, 1}) {
        for (const double probability : {0.3, 0.5}) {
          CAPTURE(each.width);
          CAPTURE(scale);
          CAPTURE(label);
          const Size size = {static_cast<std::int64_t>(std::ceil(static_cast<double>(level0.width) / scale)),
                             static_cast<std::int64_t>(std::ceil(static_cast<double>(level0.height) / scale))};
          const TissueChoice choice = {label, probability};
          Mask mask = slide.mask(size, scale);
          mark_by_network(mask, *slide.slide, network, tiles, choice, {});
          CHECK(mask.pixels == plain_mask(slide.mask(size, scale), slide, network, choice).pixels);
          CHECK(tissue_share(mask) > 0.1);
          CHECK(tissue_share(mask) < 0.9);
        }
      }
    }
  }
}

TEST_CASE("Labels are those of the nearest tile, and one of them is tissue") {
  const OneSlide slide(150, 110, 2.0);
  PlainNetwork network;
  network.cut = {32, 12, 2, 2.0};
  network.given = {NetworkOutput::Kind::labels, 1, 1, SampleType::uint16, NetworkActivation::none, 0.0F, 65535.0F};
  network.value = [](const std::uint8_t*, std::int64_t x, std::int64_t y, int) {
    return static_cast<float>((x / 4 + y / 4) % 4);
  };
  const TissueNetworkTiles tiles = plan_tissue_tiles(slide.slide->info(), network, plenty);
  for (const int label : {0, 3, 700}) {
    Mask mask = slide.mask({38, 28}, 4.0);
    mark_by_network(mask, *slide.slide, network, tiles, {label}, {});
    CHECK(mask.pixels == plain_mask(slide.mask({38, 28}, 4.0), slide, network, {label}).pixels);
    CHECK((tissue_share(mask) > 0.1) == (label < 4));
  }
  network.value = [](const std::uint8_t*, std::int64_t, std::int64_t, int) { return 1.5F; };
  Mask mask = slide.mask({38, 28}, 4.0);
  CHECK(error_of([&] { mark_by_network(mask, *slide.slide, network, tiles, {}, {}); }) ==
        "the network gave values from 1.5 to 1.5, and labels are whole numbers from 0 to 65535");
}

TEST_CASE("The pixel size decides what a network looks at") {
  PlainNetwork network;
  const auto error = [&](const OneSlide& slide, std::uint64_t most = plenty) {
    return error_of([&] { plan_tissue_tiles(slide.slide->info(), network, most); });
  };
  const OneSlide unknown(150, 110, 0.0);
  CHECK(error(unknown) == "the network looks at pixels of a size, and the slide's isn't known; set input.mpp");
  const OneSlide coarse(150, 110, 2.2);
  CHECK(error(coarse) ==
        "the slide's pixels have 2.2 micrometres, and the 2 of the network is 9.09 % less; raise model.mpp_tolerance "
        "from 0.02 (2 %) to 0.1 (10 %) to use them unchanged");
  CHECK(error(OneSlide(150, 110, 2.67)).ends_with("; a network for such pixels is needed"));
  CHECK(error(OneSlide(150, 110, 2.66)).ends_with(" to 0.25 (25 %) to use them unchanged"));
  network.cut.mpp_tolerance = 0.1;
  CHECK(plan_tissue_tiles(coarse.slide->info(), network, plenty).image.size == Size{150, 110});
  // Finer by as much, so unchanged as well.
  CHECK(plan_tissue_tiles(OneSlide(150, 110, 1.85).slide->info(), network, plenty).image.size == Size{150, 110});
  network.cut.mpp_tolerance = 0.02;
  CHECK(plan_tissue_tiles(OneSlide(150, 110, 1.85).slide->info(), network, plenty).image.size == Size{138, 101});
  const OneSlide fine(150, 110, 1.0);
  const TissueNetworkTiles tiles = plan_tissue_tiles(fine.slide->info(), network, plenty);
  CHECK(tiles.image.size == Size{75, 55});
  CHECK(tiles.image.scale.x == 2.0);
  CHECK(error(fine, tiles.bytes) == "");
  CHECK(error(fine, tiles.bytes - 1) == "finding its tissue takes 1 MiB, and stitch.memory_mib is 0; raise it");
}

TEST_CASE("The tolerance that a line names is enough, and a hundredth less isn't") {
  // Pixels that the network's are smaller than by 3 % to 25 %, in tenths of a percent.
  for (int tenths = 30; tenths <= 250; ++tenths) {
    CAPTURE(tenths);
    NetworkTiles tiles{32, 12, 2, 0.25};
    const double mpp = 0.25 / (1.0 - tenths / 1000.0);
    const auto refusal = [&] { return error_of([&] { check_fine_enough(tiles, mpp, {}); }); };
    const std::string before = "raise model.mpp_tolerance from 0.02 (2 %) to ";
    const std::string text = refusal();
    const std::size_t found = text.find(before);
    REQUIRE_MESSAGE(found != std::string::npos, text);
    tiles.mpp_tolerance = std::stod(text.substr(found + before.size()));
    CHECK(refusal() == "");
    tiles.mpp_tolerance -= 0.01;
    CHECK(refusal() != "");
  }
}

TEST_CASE("Values that are no probabilities fail") {
  const OneSlide slide(70, 70, 2.0);
  PlainNetwork network;
  network.given.high = 1.0F;
  const TissueNetworkTiles tiles = plan_tissue_tiles(slide.slide->info(), network, plenty);
  Mask mask = slide.mask({70, 70}, 1.0);
  const auto error_with = [&](float value) {
    network.value = [value](const std::uint8_t*, std::int64_t, std::int64_t, int) { return value; };
    return error_of([&] { mark_by_network(mask, *slide.slide, network, tiles, {}, {}); });
  };
  CHECK(error_with(1.0F) == "");
  CHECK(error_with(-2.0F) ==
        "the network gave values from -2 to -2, and model.range is 0 to 1: set model.activation to \"sigmoid\" or "
        "\"softmax\"");
  CHECK(error_with(std::numeric_limits<float>::quiet_NaN()) == "the network gave a value that isn't a finite number");
}

TEST_CASE("A slide's mask is the network's, without its holes and specks") {
  const OneSlide slide(150, 110, 8.0);
  const auto network = std::make_shared<PlainNetwork>();
  network->cut.mpp = 8.0;
  network->value = [](const std::uint8_t* pixel, std::int64_t, std::int64_t, int) {
    return std::max({pixel[0], pixel[1], pixel[2]}) - std::min({pixel[0], pixel[1], pixel[2]}) > 40 ? 255.0F : 0.0F;
  };
  Config config;
  config.tissue.model = "made-up.onnx";
  config.tissue.min_um2 = 64.0 * 9;
  config.tissue.fill_um2 = 64.0 * 30;
  TissueRule rule;
  rule.least_um2 = config.tissue.min_um2;
  rule.filled_um2 = config.tissue.fill_um2;
  Mask raw = plain_mask(slide.mask({150, 110}, 1.0), slide, *network, {});
  Mask expected = raw;
  drop_holes_and_specks(expected, 8.0, rule);
  CHECK(expected.pixels != raw.pixels);
  const SlideContext context = slide.context();
  context.common = std::make_shared<Preparation>(context, config, Admission{}, network);
  const auto mask = prepare_mask(context, config);
  CHECK(mask->pixels == expected.pixels);
  CHECK(context.common->share() == tissue_share(expected));
  // Never another rule in its place.
  const SlideContext closed = slide.context();
  closed.common = std::make_shared<Preparation>(closed, config);
  CHECK(error_of([&] { prepare_mask(closed, config); }) == "internal: the network that finds tissue isn't open");
}

TEST_CASE("A slide that is given up is left, also by a network that computes, and its memory is asked for") {
  const OneSlide slide(150, 110, 2.0);
  const auto network = std::make_shared<PlainNetwork>();
  Config config;
  config.tissue.model = "made-up.onnx";
  std::atomic<bool> over{false};
  std::uint64_t taken = 0;
  Admission admission;
  admission.given_up = [&] { return over.load(); };
  admission.prepare = [&](std::uint64_t bytes) {
    taken = bytes;
    return std::make_shared<int>();
  };
  const std::string message = slide.path.string() + ": its tissue was being looked for when the run gave it up";
  for (const bool stuck : {false, true}) {
    over = false;
    int batches = 0;
    network->before = [&] {
      if (++batches == 3) over = true;
      return stuck && batches == 3;
    };
    const SlideContext context = slide.context();
    context.common = std::make_shared<Preparation>(context, config, admission, network);
    CHECK_THROWS_WITH_AS(prepare_mask(context, config), message.c_str(), StoppedError);
    CHECK(batches == 3);
  }
  const SlideInfo& info = slide.slide->info();
  const std::uint64_t most = static_cast<std::uint64_t>(config.stitch.memory_mib) << 20;
  CHECK(taken == preparation_bytes(info, most, nullptr) + plan_tissue_tiles(info, *network, most).bytes);
  // What fails by itself says why.
  over = false;
  network->before = []() -> bool { throw Error("planted"); };
  const SlideContext context = slide.context();
  context.common = std::make_shared<Preparation>(context, config, admission, network);
  CHECK(error_of([&] { prepare_mask(context, config); }) == "planted");
}
