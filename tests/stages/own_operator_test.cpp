// Operators that a program brings itself (`RunControl::operators`).
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <slidestream/operator.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

namespace {

/// 255 less the largest luminance of 3 x 3 pixels, or of those of them that are in the image.
std::uint8_t darkest_of_negative(const std::uint8_t* pixels, std::int64_t pitch, const Rect& held, std::int64_t x,
                                 std::int64_t y) {
  std::uint8_t most = 0;
  for (std::int64_t v = std::max(y - 1, held.y); v < std::min(y + 2, held.bottom()); ++v) {
    for (std::int64_t u = std::max(x - 1, held.x); u < std::min(x + 2, held.right()); ++u) {
      most = std::max(most, pixels[(v - held.y) * pitch + u - held.x]);
    }
  }
  return static_cast<std::uint8_t>(255 - most);
}

class OwnKernel final : public HostKernel {
 public:
  std::int64_t columns_per_task() const noexcept override { return 64; }
  void run(const ConstPixelView<MemorySpace::host>& pixels, const OutputBlock& block, const OutputViews& to,
           const SlideParameters*) override {
    for (std::int64_t y = block.row; y < block.row + block.rows; ++y) {
      for (std::int64_t x = block.column; x < block.column + block.columns; ++x) {
        to.image.row<std::uint8_t>(y)[x - to.image.rect.x] =
            darkest_of_negative(reinterpret_cast<const std::uint8_t*>(pixels.data), pixels.pitch, pixels.rect, x, y);
      }
    }
  }
};

class OwnOperator : public Operator {
 public:
  std::string name() const override { return "own"; }
  PixelFormat input() const override { return luminance_format; }
  Footprint footprint() const override { return {{1, 1}, {1, 1}, {1, 1, 1, 1}}; }
  std::vector<Product> products() const override { return {{"image", Product::Kind::image, luminance_format}}; }
  std::string host_description() const override { return "plain"; }
  std::unique_ptr<HostKernel> host_kernel() const override { return std::make_unique<OwnKernel>(); }
};

}  // namespace

TEST_CASE("a caller's operator runs in place of those that the configuration names") {
  const test::TemporaryFolder folder;
  const std::int64_t width = 700;
  const std::int64_t height = 530;
  write_synthetic_slide(folder / "a.svs", {.width = width, .height = height, .seed = 3, .levels = 1});
  Config config = test::config_for(Backend::automatic);
  config.output.dir = (folder / "out").string();
  config.output.maps = MapFormat::none;
  config.image.compression = ImageCompression::zstd;
  config.pipeline.strip_height = 128;

  RunControl control;
  control.operators = {std::make_shared<OwnOperator>()};
  const RunResult result = run_pipeline(config, {(folder / "a.svs").string()}, control);
  REQUIRE(result.slides.size() == 1);
  REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
  CHECK(result.slides[0].sums.windows == 0);  // the spectrum, which the configuration names, didn't run
  REQUIRE(result.slides[0].artifacts.size() == 1);
  CHECK(result.slides[0].artifacts[0].file == "images/a.own.ome.tif");

  const auto read = [&](const std::string& path) {
    const auto slide = Slide::open(path);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height));
    read_luminance(*slide, 0, 0, 0, {pixels.data(), width, width, height});
    return pixels;
  };
  const std::vector<std::uint8_t> slide = read((folder / "a.svs").string());
  const std::vector<std::uint8_t> made = read((folder / "out/images/a.own.ome.tif").string());
  std::int64_t wrong = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      wrong += made[static_cast<std::size_t>(y * width + x)] !=
               darkest_of_negative(slide.data(), width, {0, 0, width, height}, x, y);
    }
  }
  CHECK(wrong == 0);
}

namespace {

class CountingOperator final : public OwnOperator {
 public:
  std::shared_ptr<const SlideParameters> prepare(const SlideContext& /*context*/) const override {
    ++prepared;
    return nullptr;
  }
  mutable int prepared = 0;
};

}  // namespace

TEST_CASE("operators don't prepare for a slide whose rows don't fit a slot") {
  const test::TemporaryFolder folder;
  write_synthetic_slide(folder / "a.svs", {.width = 4000, .height = 300, .seed = 3, .levels = 1});
  Config config = test::config_for(Backend::cpu);
  config.output.dir = (folder / "out").string();
  config.output.maps = MapFormat::none;
  for (const bool fits : {false, true}) {
    config.pipeline.memory_mib = fits ? 64 : 1;
    const auto op = std::make_shared<CountingOperator>();
    RunControl control;
    control.operators = {op};
    const SlideResult slide = run_pipeline(config, {(folder / "a.svs").string()}, control).slides.at(0);
    CAPTURE(slide.error);
    CHECK(slide.done == fits);
    CHECK((slide.error.find("of full width, as images need it, doesn't fit a slot") != std::string::npos) != fits);
    CHECK(op->prepared == (fits ? 1 : 0));
  }
}
