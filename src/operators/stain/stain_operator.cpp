#include "operators/stain/stain_operator.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

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

using Clock = std::chrono::steady_clock;

/// Ends work on the reference, which may take as long as a slide's opening. Its time begins here.
class ReferenceEnd {
 public:
  ReferenceEnd(const Config& config, std::function<bool()> stopped)
      : limit_(config.input.max_seconds), stopped_(std::move(stopped)) {}

  bool operator()() const {
    return is_stopped() || (limit_ > 0 && Clock::now() - begin_ > std::chrono::seconds(limit_));
  }
  bool is_stopped() const { return stopped_ && stopped_(); }
  std::string text_of_limit() const { return "took longer than input.max_seconds = " + std::to_string(limit_); }

 private:
  int limit_;
  std::function<bool()> stopped_;
  Clock::time_point begin_ = Clock::now();
};

std::shared_ptr<const Slide> open_reference(const Config& config, const std::function<bool()>& give_up,
                                            std::shared_ptr<DecodeMemory> decode_memory = nullptr) {
  return Slide::open(config.stain.reference, {.max_pixels = config.input.max_pixels,
                                              .max_tiles = config.input.max_tiles,
                                              .retries = config.input.retries,
                                              .give_up = give_up,
                                              .decode_memory = std::move(decode_memory),
                                              .mpp_default = config.input.mpp_default,
                                              .channel = config.input.channel,
                                              .openslide = config.input.openslide,
                                              .to_srgb = config.input.colour == InputColour::srgb});
}

/// What slides are normalised to. A slide is looked at once a run: all slides fail with the one cause.
class Reference {
 public:
  explicit Reference(const Config& config) : config_(config) {}

  /// \param admission  of the slide that asks; the time that this takes isn't its own
  /// \throws Error naming the reference's file; StoppedError when the run ends
  const StainBasis& stains(const Admission& admission) {
    if (config_.stain.reference.empty()) return published_stains();
    const auto begin = Clock::now();
    wait_or_look(admission);
    if (admission.waited) admission.waited(Clock::now() - begin);
    // Nobody changes them any more.
    if (!stains_) throw Error("stain.reference: " + failure_);
    return *stains_;
  }

 private:
  void wait_or_look(const Admission& admission) {
    constexpr auto between_questions = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    while (is_looked_at_) {
      if (admission.stopped && admission.stopped()) {
        throw StoppedError(config_.stain.reference + ": was waited for when the run gave it up");
      }
      changed_.wait_for(lock, between_questions);
    }
    if (stains_ || !failure_.empty()) return;
    is_looked_at_ = true;
    lock.unlock();
    Found found;
    try {
      found = look(admission);
    } catch (...) {
      end_look({});
      throw;
    }
    end_look(std::move(found));
  }

  struct Found {
    std::optional<StainBasis> stains;
    std::string failure;
  };

  void end_look(Found found) {
    {
      const std::lock_guard lock(mutex_);
      is_looked_at_ = false;
      stains_ = found.stains;
      failure_ = std::move(found.failure);
    }
    changed_.notify_all();
  }

  /// \throws StoppedError when the run ends
  Found look(const Admission& admission) const {
    const std::string& path = config_.stain.reference;
    const ReferenceEnd ends(config_, admission.stopped);
    try {
      const auto slide = open_reference(config_, ends, admission.decode_memory);
      // Slides in sRGB would get the stains of other colours.
      if (config_.input.colour == InputColour::srgb && !slide->info().is_srgb) {
        throw Error(slide->info().warnings.back() + "; set input.colour to \"file\", or name another reference");
      }
      const SlideContext about = {*slide, 0, path, slide->info().mean_mpp()};
      Admission own;
      own.given_up = ends;
      Preparation::of(about, config_, std::move(own));
      return {stains_of(about, config_), {}};
    } catch (const StoppedError&) {
      if (ends.is_stopped()) throw;
      return {{}, path + ": " + ends.text_of_limit()};
    } catch (const SlideError& error) {
      return {{}, error.what()};
    } catch (const Error& error) {
      return {{}, path + ": " + error.what()};
    }
  }

  const Config& config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_looked_at_ = false;         ///< guarded by mutex_, as what follows
  std::optional<StainBasis> stains_;  ///< set once
  std::string failure_;
};

class StainOperator final : public ImageOperator {
 public:
  explicit StainOperator(const Config& config)
      : ImageOperator("stain", rgb_format, rgb_format, {}),
        config_(config),
        reference_(std::make_unique<Reference>(config_)) {}

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    const StainBasis& reference = reference_->stains(Preparation::of(context, config_).admission());
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
  const ReferenceEnd ends(config, {});
  try {
    open_reference(config, ends);
  } catch (const StoppedError&) {
    throw ConfigError("stain.reference: " + config.stain.reference + ": " + ends.text_of_limit());
  } catch (const Error& error) {
    throw ConfigError(std::string("stain.reference: ") + error.what());
  }
}

std::string doubt_of_stain_reference(const Config& config) {
  // A network that finds tissue and wants to know the pixel size says so.
  if (!config.operators.runs("stain") || config.stain.reference.empty() || !config.tissue.model.empty()) return {};
  try {
    if (open_reference(config, ReferenceEnd(config, {}))->info().mpp) return {};
  } catch (const Error&) {
    return {};  // slides fail with the cause
  }
  return "stain.reference: " + config.stain.reference + ": " + doubt_of_pixel_size(true, "set input.mpp_default");
}

std::shared_ptr<const Operator> make_stain_operator(const Config& config) {
  return std::make_shared<StainOperator>(config);
}

}  // namespace slidestream::operators
