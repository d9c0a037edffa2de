#include "operators/stain/stain_operator.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <string>

#include "codec/tile_rule.hpp"
#include "operators/common/image_operator.hpp"
#include "operators/stain/stained_blocks.hpp"
#include "operators/tissue/ink.hpp"
#include "operators/tissue/preparation.hpp"

namespace slidestream::operators {
namespace {

StainBasis stains_of(const SlideContext& context, const Config& config) {
  Preparation& preparation = Preparation::of(context, config);
  const auto mask = preparation.mask();
  WhitePoint white = usual_white;
  if (config.stain.white.empty()) {
    white = measure_white(preparation.image().view(), *mask);
  } else {
    for (std::size_t j = 0; j < white.size(); ++j) white[j] = static_cast<std::uint8_t>(config.stain.white.at(j));
  }
  Mask stained = *mask;
  InkColours colours;
  if (config.tissue.ink == TissueInk::drop) {
    // A mask that was found by saturation has no even ink itself, but pixels that a stroke covers in part.
    Mask ink = empty_mask(mask->size, mask->scale, mask->level0);
    colours = mark_ink_and_edges(ink, preparation.image().view());
    for (std::size_t i = 0; i < ink.pixels.size(); ++i) {
      if (ink.pixels[i] != 0) stained.pixels[i] = 0;
    }
  }
  const auto blocks =
      stained_blocks(context.slide, context.mpp, stained, config.stain.mpp, config.decode.on_bad_tile, colours);
  try {
    return fit_stains(blocks, white);
  } catch (const Error& error) {
    if (!is_grey(context.slide.info().levels.front().colour)) throw;
    throw Error(std::string(error.what()) + "; the slide is grey");
  }
}

std::shared_ptr<const Slide> open_reference(const Config& config) {
  return Slide::open(config.stain.reference, {.max_pixels = config.input.max_pixels,
                                              .max_tiles = config.input.max_tiles,
                                              .retries = config.input.retries,
                                              .mpp_default = config.input.mpp_default,
                                              .channel = config.input.channel,
                                              .openslide = config.input.openslide,
                                              .to_srgb = config.input.colour == InputColour::srgb});
}

/// What slides are normalised to. A slide is looked at once a run: all slides fail with the one cause.
class Reference {
 public:
  explicit Reference(const Config& config) : config_(config) {}

  /// \throws Error naming the reference's file
  const StainBasis& stains() {
    if (config_.stain.reference.empty()) return published_stains();
    const std::lock_guard lock(mutex_);
    if (!stains_ && failure_.empty()) look();
    if (!stains_) throw Error("stain.reference: " + failure_);
    return *stains_;
  }

 private:
  void look() {
    const std::string& path = config_.stain.reference;
    try {
      const auto slide = open_reference(config_);
      // Slides in sRGB would get the stains of other colours.
      if (config_.input.colour == InputColour::srgb && !slide->info().is_srgb) {
        throw Error(slide->info().warnings.back() + "; set input.colour to \"file\", or name another reference");
      }
      stains_ = stains_of({*slide, 0, path, slide->info().mean_mpp()}, config_);
    } catch (const SlideError& error) {
      failure_ = error.what();
    } catch (const Error& error) {
      failure_ = path + ": " + error.what();
    }
  }

  const Config& config_;
  std::mutex mutex_;
  std::optional<StainBasis> stains_;  ///< guarded by mutex_, as what follows
  std::string failure_;
};

class StainOperator final : public ImageOperator {
 public:
  explicit StainOperator(const Config& config)
      : ImageOperator("stain", rgb_format, rgb_format, {}),
        config_(config),
        reference_(std::make_unique<Reference>(config_)) {}

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    const StainBasis& reference = reference_->stains();
    const StainBasis own = stains_of(context, config_);
    return std::make_shared<StainParameters>(stain_map(own, reference, config_.stain.output), own);
  }

  bool looks_at_small_level() const override { return true; }
  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return "tables"; }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel([](const HostView& out, const ConstHostView& in, const SlideParameters* parameters) {
      static_cast<const StainParameters&>(*parameters).stain().run(out, in);
    });
  }

 private:
  Config config_;
  std::unique_ptr<Reference> reference_;
};

}  // namespace

std::vector<NamedValue> StainParameters::values() const {
  constexpr std::array<const char*, 3> channels = {"red", "green", "blue"};
  constexpr std::array<const char*, 2> stains = {"hematoxylin", "eosin"};
  std::vector<NamedValue> values;
  for (std::size_t j = 0; j < 3; ++j)
    values.push_back({std::string("stain.white_") + channels[j], static_cast<double>(slide_.white[j])});
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string stain = std::string("stain.") + stains[i] + "_";
    for (std::size_t j = 0; j < 3; ++j) values.push_back({stain + channels[j], slide_.colours[i][j]});
    values.push_back({stain + "maximum", slide_.maxima[i]});
  }
  return values;
}

void check_stain_reference(const Config& config) {
  if (!config.operators.runs("stain") || config.stain.reference.empty()) return;
  try {
    open_reference(config);
  } catch (const Error& error) {
    throw ConfigError(std::string("stain.reference: ") + error.what());
  }
}

std::string doubt_of_stain_reference(const Config& config) {
  // A network that finds tissue and wants to know the pixel size says so.
  if (!config.operators.runs("stain") || config.stain.reference.empty() || !config.tissue.model.empty()) return {};
  try {
    if (open_reference(config)->info().mpp) return {};
  } catch (const Error&) {
    return {};  // slides fail with the cause
  }
  return "stain.reference: " + config.stain.reference + ": " + doubt_of_pixel_size(true, "set input.mpp_default");
}

std::shared_ptr<const Operator> make_stain_operator(const Config& config) {
  return std::make_shared<StainOperator>(config);
}

}  // namespace slidestream::operators
