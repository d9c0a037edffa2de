#include "operators/model/coordinates_operator.hpp"

#include <algorithm>
#include <filesystem>
#include <slidestream/error.hpp>
#include <slidestream/network.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operators/common/tile_grid.hpp"
#include "operators/tissue/preparation.hpp"
#include "sink/feature_file.hpp"

namespace slidestream::operators {
namespace {

class Coordinates final : public SlideParameters {
 public:
  Coordinates(FeatureDescription about, std::vector<TileCorner> corners)
      : about_(std::move(about)), corners_(std::move(corners)) {}

  std::vector<NamedValue> values() const override { return {{"model.tiles", static_cast<double>(corners_.size())}}; }
  std::vector<PreparedFile> files() const override {
    const auto write = [about = about_, corners = corners_](const std::filesystem::path& file) {
      FeatureDescription named = about;
      named.name = file.stem().string();
      write_coordinates(file, named, corners);
    };
    return {{"coords", ".h5", write, "coords"}};
  }

 private:
  FeatureDescription about_;
  std::vector<TileCorner> corners_;
};

/// There are no pixels for it.
class NoKernel final : public HostKernel {
 public:
  std::int64_t columns_per_task() const noexcept override { return 1; }
  void run(const ConstPixelView<MemorySpace::host>&, const OutputBlock&, const OutputViews&,
           const SlideParameters*) override {
    throw Error("internal: no pixels pass by places of tiles");
  }
};

class CoordinatesOperator final : public Operator {
 public:
  explicit CoordinatesOperator(const Config& config) : config_(config) {
    tiles_.side = config.model.tile;
    tiles_.overlap = std::max(config.model.overlap, 0);
    if (config.model.mpp > 0.0) tiles_.mpp = config.model.mpp;
    if (config.model.mpp_tolerance >= 0.0) tiles_.mpp_tolerance = config.model.mpp_tolerance;
    tiles_.tissue_only = config.model.where == ModelWhere::tissue;
    tiles_.tissue_share = std::max(config.model.tissue_share, 0.0);
  }

  std::string name() const override { return "model"; }
  PixelFormat input() const override { return rgb_format; }
  Footprint footprint() const override { return {}; }
  std::vector<Product> products() const override { return {{"coords", Product::Kind::file, {}}}; }
  bool reads_pixels() const override { return false; }

  bool looks_at_small_level() const override { return tiles_.tissue_only; }

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    const SlideInfo& info = context.slide.info();
    const auto asked = static_cast<std::size_t>(config_.input.level);
    require_square_pixels(tiles_, info);
    // As for the network, where nothing else reads pixels.
    const std::size_t from =
        tiles_.mpp && info.mpp ? area_level(info.levels, *info.mpp, *tiles_.mpp, asked, tiles_.mpp_tolerance) : asked;
    const Level& level = info.levels[from];
    const std::optional<double> mpp = info.mpp ? std::optional(*info.mpp * level.downsample) : std::nullopt;
    const StitchEdge edge = config_.stitch.edge == StitchEdge::automatic ? StitchEdge::mirror : config_.stitch.edge;
    TileNames names;
    if (asked > 0) names.level = "input.level " + std::to_string(asked);
    const TileGrid grid = tile_grid(tiles_, {level.width, level.height}, mpp, 1, edge, false, names);
    std::optional<MaskTable> mask;
    if (tiles_.tissue_only) mask.emplace(*prepare_mask(context, config_));
    const Level& level0 = info.levels.front();
    const GridScale scale = {info.downsample_x(from), info.downsample_y(from)};
    FeatureDescription about;
    about.patch = tiles_.side;
    about.overlap = tiles_.overlap;
    about.level0 = {level0.width, level0.height};
    about.level = static_cast<std::int64_t>(from);
    about.downsample = level.downsample;
    about.reduction = static_cast<double>(grid.factor) / 65536.0;
    about.magnification = level0_magnification(info);
    const GridScale pixel = {about.reduction * scale.x, about.reduction * scale.y};
    std::vector<TileCorner> corners;
    for (std::int64_t tile = 0; tile < grid.stitch.tiles(); ++tile) {
      if (mask && !is_tissue(grid, tile, *mask, scale, tiles_.tissue_share)) continue;
      const Rect rect = grid.stitch.input_of(grid.stitch.tile(tile));
      corners.push_back(level0_corner(rect, pixel));
    }
    if (mask && corners.empty()) {
      Preparation::of(context, config_)
          .doubt(doubt_of_tiles(grid, *mask, scale, tiles_.tissue_share, "model.tissue_share"));
    }
    return std::make_shared<Coordinates>(std::move(about), std::move(corners));
  }

  std::string host_description() const override { return "places of tiles"; }
  std::unique_ptr<HostKernel> host_kernel() const override { return std::make_unique<NoKernel>(); }

 private:
  Config config_;
  NetworkTiles tiles_;
};

}  // namespace

std::shared_ptr<const Operator> make_coordinates_operator(const Config& config) {
  const std::string because = "features.coords_only is true, and ";
  if (config.model.tile == 0) {
    throw ConfigError(because +
                      "model.tile is open; set it, here or in MODEL.toml: no network is opened that would tell");
  }
  if (config.model.overlap > config.model.tile / 2) {
    throw ConfigError("model.overlap is " + std::to_string(config.model.overlap) +
                      "; expected at most half of model.tile, " + std::to_string(config.model.tile / 2));
  }
  if (config.model.output != ModelOutput::automatic && config.model.output != ModelOutput::vector) {
    throw ConfigError(because + "model.output isn't \"vector\": an image has no file of places");
  }
  if (config.features.format != FeatureFormat::h5) {
    throw ConfigError(because + "features.format isn't \"h5\": a .pt file holds features alone");
  }
  return std::make_shared<CoordinatesOperator>(config);
}

}  // namespace slidestream::operators
