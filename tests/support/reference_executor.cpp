#include "support/reference_executor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <slidestream/error.hpp>
#include <utility>

#include "codec/tile_rule.hpp"
#include "operators/stain/macenko.hpp"
#include "operators/stain/stained_blocks.hpp"
#include "operators/tissue/preparation.hpp"
#include "support/plain_operators.hpp"

namespace slidestream::test {
namespace {

/// What the tiles of a level decode to.
struct Decoded {
  PixelImage luminance;
  PixelImage rgb;
  std::uint64_t missing = 0;
  std::vector<std::int64_t> bad;
};

HostPixels pixels_of(PixelImage& image, const Rect& rect) {
  auto* const first = reinterpret_cast<std::uint8_t*>(image.bytes.data());
  return {first + static_cast<std::size_t>(rect.y) * image.pitch +
              static_cast<std::size_t>(rect.x) * image.format.pixel_bytes(),
          static_cast<std::ptrdiff_t>(image.pitch), rect.width, rect.height, image.format};
}

/// Tile by tile; one that can't be decoded is white.
Decoded decode(const Slide& slide, std::size_t index) {
  const Level& level = slide.info().levels.at(index);
  const Size size = {level.width, level.height};
  Decoded decoded = {PixelImage(size, luminance_format), PixelImage(size, rgb_format), 0, {}};
  for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
    const std::int64_t x = tile % level.columns * level.tile_width;
    const std::int64_t y = tile / level.columns * level.tile_height;
    const Rect rect = {x, y, std::min(level.tile_width, size.width - x), std::min(level.tile_height, size.height - y)};
    if (slide.tile(index, tile).length == 0) ++decoded.missing;
    try {
      read_luminance(slide, index, x, y, pixels_of(decoded.luminance, rect));
      read_rgb(slide, index, x, y, pixels_of(decoded.rgb, rect));
    } catch (const SlideError&) {
      decoded.bad.push_back(tile);
      read_luminance(slide, index, x, y, pixels_of(decoded.luminance, rect), BadTilePolicy::white);
      read_rgb(slide, index, x, y, pixels_of(decoded.rgb, rect), BadTilePolicy::white);
    }
  }
  return decoded;
}

/// Levels of a pyramid: each half as wide and high as the one before, as many as are wanted while there is more than a
/// pixel, or down to one tile; of Deep Zoom down to one pixel.
int level_count(Size size, const ImageConfig& image) {
  const bool to_one_pixel = image.levels > 0 || image.format == ImageFormat::dzi;
  const std::int64_t smallest = to_one_pixel ? 1 : image.tile > 0 ? image.tile : 256;
  int levels = 1;
  while (std::max(size.width, size.height) > smallest && (image.levels == 0 || levels < image.levels)) {
    size = {(size.width + 1) / 2, (size.height + 1) / 2};
    ++levels;
  }
  return levels;
}

WholeImage whole(const PixelImage& image) {
  WholeImage copy(image.image, image.format);
  copy.bytes = image.bytes;
  return copy;
}

ReferenceSpectrum spectrum_of(const PixelImage& luminance, const AnalysisConfig& analysis) {
  Image image{luminance.image.width, luminance.image.height, std::vector<std::uint8_t>(luminance.bytes.size())};
  std::memcpy(image.pixels.data(), luminance.bytes.data(), luminance.bytes.size());
  return {reference_spectrum(image, analysis), run_whole(*make_spectrum_engine(analysis), image, analysis)};
}

const PixelImage& coloured(const Decoded& pixels, PixelColour colour) {
  return colour == PixelColour::rgb ? pixels.rgb : pixels.luminance;
}

}  // namespace

ReferenceSlide reference_slide(const Config& config, const std::filesystem::path& path) {
  ReferenceSlide made;
  const auto fail = [&](const std::string& stage, const std::string& cause) {
    const std::string prefix = path.string() + ": ";
    made.failed_stage = stage;
    made.cause = cause.starts_with(prefix) ? cause.substr(prefix.size()) : cause;
  };
  const auto slide = Slide::open(path, {.mpp = config.input.mpp});
  const auto level = static_cast<std::size_t>(config.input.level);
  const std::vector<std::string>& names = config.operators.run;

  const std::size_t levels = slide->info().levels.size();
  if (level >= levels) {
    fail("source", "level " + std::to_string(level) + " was asked for, but the slide has " + std::to_string(levels) +
                       (levels == 1 ? " level" : " levels"));
    return made;
  }

  const Level& geometry = slide->info().levels.at(level);
  made.width = geometry.width;
  made.height = geometry.height;
  if (slide->info().mpp) made.mpp = *slide->info().mpp * geometry.downsample;
  const std::int64_t window = config.analysis.window;
  operators::StainMap stains{};
  const SlideContext context = {*slide, level, path, slide->info().mean_mpp()};
  std::set<std::string> lacking;
  for (const std::string& name : names) {
    std::string behind_cause;
    try {
      if (name == "spectrum" && std::min(geometry.width, geometry.height) < window) {
        throw Error("the level has " + std::to_string(geometry.width) + " x " + std::to_string(geometry.height) +
                    " pixels, less than one window of " + std::to_string(window) + " x " + std::to_string(window));
      }
      operators::Preparation& preparation = operators::Preparation::of(context, config);
      if (name == "stain" || name == "tissue") preparation.mask();
      if (name != "stain") continue;
      const auto mask = preparation.mask();
      const auto pixels_of_tissue =
          operators::stained_blocks(*slide, context.mpp, *mask, config.stain.mpp, config.decode.on_bad_tile);
      const operators::WhitePoint white = operators::measure_white(preparation.image().view(), *mask);
      if (is_grey(slide->info().levels.front().colour)) behind_cause = "; the slide is grey";
      stains = operators::stain_map(operators::fit_stains(pixels_of_tissue, white), operators::published_stains(),
                                    config.stain.output);
    } catch (const Error& error) {
      if (lacking.empty()) {
        fail("", error.what() + behind_cause);
        made.lacking_stage = name;
      }
      lacking.insert(name);
    }
  }
  if (lacking.size() == names.size()) {
    made.lacking_stage.clear();
    made.failed_stage = "source";
    return made;
  }
  // Tissue alone reads no pixels of the level.
  const bool is_tissue = std::ranges::all_of(names, [](const std::string& name) { return name == "tissue"; });
  for (const auto& [number, tiles] : context.common->tiles_as_glass()) {
    if (number == level && !is_tissue) continue;
    made.missing_as_glass += static_cast<std::uint64_t>(tiles.lost);
    made.bad_as_glass += static_cast<std::uint64_t>(tiles.bad);
  }
  if (is_tissue) return made;

  const Decoded pixels = decode(*slide, level);
  made.missing_tiles = pixels.missing;
  made.bad_tiles = pixels.bad;
  if (!pixels.bad.empty() && config.decode.on_bad_tile == BadTilePolicy::fail) {
    made.failed_stage = "decode";
    made.cause.clear();
    made.failed_tile = pixels.bad.front();
    return made;
  }
  for (const std::string& name : names) {
    if (name == "tissue" || lacking.contains(name)) continue;
    if (name == "spectrum") {
      made.spectrum = spectrum_of(pixels.luminance, config.analysis);
      continue;
    }
    const PixelImage image = [&] {
      if (name == "sobel") {
        const bool floats = config.sobel.output == SobelOutput::float32;
        return plain_sobel(pixels.luminance, floats ? SampleType::float32 : SampleType::uint8);
      }
      if (name == "gaussian") {
        return plain_gaussian(coloured(pixels, config.gaussian.colour), config.gaussian.radius, config.gaussian.sigma);
      }
      if (name == "stain") return plain_stain(pixels.rgb, stains.matrix, stains.from, stains.to);
      if (name == "identity") return coloured(pixels, config.identity.colour);
      throw Error("the reference has no operator " + name);
    }();
    made.images.push_back({name, plain_pyramid(whole(image), level_count(image.image, config.image), false)});
  }
  return made;
}

}  // namespace slidestream::test
