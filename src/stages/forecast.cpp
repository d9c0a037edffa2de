#include <slidestream/forecast.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include <slidestream/error.hpp>

#include "codec/planar_encoder.hpp"
#include "codec/tile_encoder.hpp"
#include "image/pyramid_builder.hpp"
#include "image/small_level.hpp"
#include "operators/registry.hpp"
#include "operators/stain/stain_operator.hpp"
#include "planning/device_sizing.hpp"
#include "planning/network_plan.hpp"
#include "planning/operator_needs.hpp"
#include "planning/tile_ranges.hpp"
#include "sink/image_formats.hpp"
#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/open_options.hpp"
#include "stages/delivery.hpp"
#include "stages/forecast.hpp"
#include "stages/forecast_machine.hpp"
#include "stages/forecast_networks.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/network/network_admission.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"
#include "stages/run/small_levels.hpp"
#include "stages/source.hpp"

namespace slidestream {
namespace {

/// What of its slot, of that in host memory, and of a carry buffer, a strip touches.
struct Touched {
  std::uint64_t slot = 0;
  std::uint64_t on_host = 0;
  std::uint64_t carry = 0;
};

/// Where a slide's tiles are decoded.
enum class Decoded {
  by_cpu,
  by_gpu,         ///< which has their bytes alone
  by_gpu_looked,  ///< after the host has looked at them
};

/// What the host keeps of a tile that the GPU has: its header, of JPEG. Few are longer.
constexpr std::uint64_t kept_of_tile = 1024;

std::uint64_t compressed_bytes_of(const PanelPlan& panel, const StripPlan& strip, const TileRanges& ranges) {
  std::int64_t compressed = 0;
  for (std::int64_t row = strip.first_tile_row; row < strip.first_tile_row + strip.tile_rows; ++row) {
    compressed += TileRanges::compressed_bytes(&ranges, row, panel.first_tile_column, panel.tile_columns);
  }
  return static_cast<std::uint64_t>(compressed);
}

Touched touched_by(const LevelPlan& plan, const StripPlan& strip, const TileRanges& ranges, Decoded decoded) {
  const PanelPlan& panel = plan.panels[strip.panel];
  Touched touched{compressed_bytes_of(panel, strip, ranges) + static_cast<std::uint64_t>(slot_slack), 0, 0};
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    const std::int64_t rows = decoded != Decoded::by_cpu ? 0 : strip.y1 - strip.carry_in_y0[plane];
    touched.slot += static_cast<std::uint64_t>(rows * panel.pitch[plane]);
    touched.carry += static_cast<std::uint64_t>((strip.y1 - strip.carry_out_y0[plane]) * panel.pitch[plane]);
  }
  const auto tiles = static_cast<std::uint64_t>(strip.tile_rows * panel.tile_columns);
  touched.on_host = decoded == Decoded::by_gpu ? std::min(touched.slot, tiles * kept_of_tile) : touched.slot;
  return touched;
}

std::uint64_t most_touched(const RunForecast& forecast) {
  std::uint64_t most = 0;
  for (const SlideForecast& slide : forecast.slides) most = std::max(most, slide.host_batch_bytes);
  return most;
}

/// The most bytes that so many of them take.
std::uint64_t sum_of_largest(std::vector<std::uint64_t> bytes, std::size_t count) {
  std::ranges::sort(bytes, std::greater{});
  bytes.resize(std::min(bytes.size(), count));
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

/// Plans the slides of a run one after the other, and adds up their memory.
class Planner {
 public:
  Planner(const Config& config, const ForecastMachine& machine, const Operators& all_operators, RunForecast& forecast)
      : config_(config),
        machine_(machine),
        all_operators_(all_operators),
        operators_(readers_of(all_operators)),
        needs_(needs_of(operators_)),
        encoders_(needs_.size()),
        spectrum_(place_of_spectrum(operators_)),
        forecast_(forecast),
        decode_memory_(std::make_shared<DecodeMemory>(decode_memory_bytes(config))),
        tissue_network_(tissue_network_of(config, all_operators)),
        networks_(config, operators_, machine.lanes, machine.gpu) {}

  void add(const std::string& path, std::size_t index, std::size_t slides) {
    SlideForecast slide;
    slide.path = path;
    try {
      plan(slide, index, slides);
    } catch (...) {
      slide.error = current_cause(path);
    }
    forecast_.slides.push_back(std::move(slide));
  }

  void finish() {
    finish_slots();
    const std::size_t open = most_open_slides(static_cast<std::size_t>(forecast_.slots), machine_.lanes, machine_.gpu);
    const auto aside = static_cast<std::size_t>(std::min(networks_.tiles_aside(), NetworkAdmission::most_aside));
    forecast_.maps_bytes =
        sum_of_largest(maps_, open + Delivery::most_waiting(machine_.lanes) + Delivery::most_put_off + aside);
    forecast_.decode_bytes = decode_memory_bytes(config_);
    forecast_.small_levels_bytes = small_levels(open);
    // Levels that are compared while slides are opened.
    forecast_.opening_bytes = sum_of_largest(opening_, machine_.lanes + most_slow);
    std::vector<std::uint64_t> tables;
    for (const SlideForecast& slide : forecast_.slides) tables.push_back(slide.table_bytes);
    forecast_.tables_bytes = sum_of_largest(tables, open);
    // The end of one slide and the beginning of the next.
    forecast_.pyramids_bytes = sum_of_largest(pyramids_, 2);
    for (const Encoders& encoders : encoders_) forecast_.encoders_bytes += bytes_of_encoders(encoders);
    if (tissue_network_ != nullptr) forecast_.tissue_network_bytes = tissue_network_bytes();
    networks_.finish(forecast_);
  }

 private:
  /// Those of an operator's images.
  struct Encoders {
    std::uint64_t bytes = 0;  ///< most of one
    std::uint64_t tiles = 0;  ///< of all slides
  };

  /// Each thread has its own, as far as there are tiles, and an image encodes a blank tile as it begins.
  std::uint64_t bytes_of_encoders(const Encoders& encoders) const {
    return encoders.bytes *
           (1 + std::min<std::uint64_t>(static_cast<std::uint64_t>(forecast_.threads), encoders.tiles));
  }

  void finish_slots() {
    std::int64_t batches = 0;
    for (const SlideForecast& slide : forecast_.slides) batches += slide.batches;
    forecast_.carry_touched_bytes =
        std::min(forecast_.carry_bytes, (static_cast<std::uint64_t>(forecast_.slots) + 1) * carried_);
    forecast_.host_slot_bytes = forecast_.slot_bytes;
    if (machine_.gpu && batches > 0)
      forecast_.host_slot_bytes = std::min(forecast_.slot_bytes, most_touched(forecast_));
    forecast_.slots_used = static_cast<int>(std::min<std::int64_t>(forecast_.slots, batches));
  }

  void add_small_level(const SlideInfo& info) {
    const std::uint64_t bytes = small_level_bytes(config_, all_operators_, info, tissue_network_.get());
    if (bytes == 0) return;
    // A bit a pixel, or where networks look at it a table of 4 bytes.
    const Size size = choose_small_level(info, info.mean_mpp()).size;
    const auto pixels = static_cast<std::uint64_t>(size.width * size.height);
    // Outlines of any mask; those that need more are let in alone.
    const std::uint64_t writing =
        config_.operators.runs("tissue") ? std::min(most_writing_bytes(pixels), small_levels_bytes(config_)) : 0;
    small_levels_.push_back(std::max(bytes, writing));
    const bool has_table = std::ranges::any_of(
        operators_, [](const auto& op) { return op->network() != nullptr && op->network()->tiles().tissue_only; });
    masks_.push_back(has_table ? 4 * pixels + pixels / 8 : pixels / 8);
  }

  /// Of all slides if they fit together, else as many as do, and at least the largest; the reference of stains beside
  /// them; and what `open` slides keep.
  std::uint64_t small_levels(std::size_t open) {
    if (small_levels_.empty()) return 0;
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : small_levels_) sum += bytes;
    sum = std::min(sum, std::max(small_levels_bytes(config_), std::ranges::max(small_levels_)));
    sum += sum_of_largest(masks_, open);
    if (!config_.operators.runs("stain") || config_.stain.reference.empty()) return sum;
    try {
      const OpenOptions options = open_options(config_, config_.stain.reference);
      const auto reference = Slide::open(config_.stain.reference, options);
      return sum + small_level_bytes(config_, all_operators_, reference->info(), tissue_network_.get()) +
             table_bytes(*reference) + opening_bytes(*reference);
    } catch (const Error&) {
      return sum;  // Each slide says it.
    }
  }

  /// Its weights, and a session for each slide that is opened at a time.
  std::uint64_t tissue_network_bytes() const {
    const std::size_t sessions = std::min(small_levels_.size(), machine_.lanes + most_slow);
    try {
      const NetworkMemory memory = tissue_network_->memory();
      return memory.weights + sessions * memory.session;
    } catch (const SlideError& error) {
      throw ConfigError(std::string("tissue.model: ") + error.what());
    }
  }

  /// Rows of tiles of all levels of a slide's images: one that is being filled, and those that the bands under way, of
  /// `rows` rows each, complete.
  std::uint64_t pyramid_bytes(const Slide& slide, std::size_t level_index, std::int64_t rows) const {
    const Size image{slide.info().levels[level_index].width, slide.info().levels[level_index].height};
    std::uint64_t bytes = 0;
    for (std::size_t op = 0; op < needs_.size(); ++op) {
      const auto product = image_of(*operators_[op]);
      if (!product || operators_[op]->network() != nullptr) continue;
      const ImageOptions options = options_for(config_, *product, slide, level_index);
      bytes += most_builder_bytes({image, options.tile, options.levels}, product->format, rows,
                                  static_cast<std::int64_t>(machine_.limits.output_slots));
    }
    return bytes;
  }

  /// Enters the tiles of a slide's images that the host encodes.
  void add_encoders(const Slide& slide, std::size_t level_index, bool levels_on_gpu) {
    const Size image{slide.info().levels[level_index].width, slide.info().levels[level_index].height};
    for (std::size_t op = 0; op < needs_.size(); ++op) {
      const auto product = image_of(*operators_[op]);
      if (!product) continue;
      const ImageOptions options = options_for(config_, *product, slide, level_index);
      const ImageFormatTraits& traits = traits_of(options.format);
      const bool jpeg = options.compression == TileCompression::jpeg;
      if (levels_on_gpu && traits.takes_encoded_tiles && jpeg) continue;
      Encoders& encoders = encoders_[op];
      encoders.tiles += static_cast<std::uint64_t>(PyramidLayout(image, options.tile, options.levels).tiles());
      encoders.bytes = std::max(
          encoders.bytes, traits.has_planes ? planar_encoder_bytes(options.compression, product->format, options.tile)
                                            : encoder_bytes(options.compression, product->format, options.tile));
    }
  }

  /// Compressed tiles that bands hold whose image takes them over.
  std::uint64_t copied_bytes(const LevelPlan& plan, const TileRanges& ranges) const {
    if (config_.image.compression != ImageCompression::copy) return 0;
    std::uint64_t most = 0;
    for (const StripPlan& strip : plan.strips) {
      most = std::max(most, compressed_bytes_of(plan.panels[strip.panel], strip, ranges));
    }
    return machine_.limits.output_slots * most;
  }

  /// Enters the slide's batches, and what they touch of their slots.
  void count_batches(SlideForecast& slide, const LevelPlan& plan, const TileRanges& ranges, Codec codec) {
    slide.batches = static_cast<std::int64_t>(plan.strips.size());
    slide.panels = static_cast<std::int64_t>(plan.panels.size());
    slide.fragments = static_cast<std::int64_t>(plan.chains.size());
    const bool is_looked_at = codec == Codec::jpeg2000 || config_.image.compression == ImageCompression::copy;
    const Decoded decoded = !slide.decoded_on_gpu ? Decoded::by_cpu
                            : is_looked_at        ? Decoded::by_gpu_looked
                                                  : Decoded::by_gpu;
    for (const StripPlan& strip : plan.strips) {
      slide.most_rows = std::max(slide.most_rows, strip.y1 - strip.y0);
      const Touched touched = touched_by(plan, strip, ranges, decoded);
      slide.batch_bytes = std::max(slide.batch_bytes, touched.slot);
      slide.host_batch_bytes = std::max(slide.host_batch_bytes, touched.on_host);
      carried_ = std::max(carried_, touched.carry);
    }
  }

  void plan(SlideForecast& slide, std::size_t index_in_run, std::size_t slides) {
    OpenOptions options = open_options(config_, slide.path);
    options.retries = 0;
    options.decode_memory = decode_memory_;
    const auto opened = Slide::open(slide.path, options);
    const SlideInfo& info = opened->info();
    slide.file_bytes = info.file_size;
    const std::size_t index = level_of(config_, operators_, info);
    const Level& level = info.levels[index];
    slide.width = level.width;
    slide.height = level.height;
    slide.codec = name(level.codec);
    check_labels(all_operators_, info, config_);
    slide.decoded_on_gpu = machine_.gpu && device_decodes(config_, machine_.work, *opened, index);
    add_small_level(info);
    opening_.push_back(opening_bytes(*opened));
    slide.table_bytes = table_bytes(*opened);
    slide.profile_bytes = profile_reading_bytes(*opened);
    if (needs_.empty()) return;
    const TileRanges ranges{*opened, index};
    slide.levels_on_gpu = levels_on_device(level, needs_, machine_.limits);
    const auto planned = [&] {
      return plan_level(
          level, fitting_needs(level, needs_), config_.pipeline, machine_.limits, &TileRanges::compressed_bytes,
          &ranges,
          {fragments_of_slide(config_.gpu.split_slides, slides - index_in_run, machine_.lanes), slide.decoded_on_gpu,
           batch_pixels_of(index_in_run, slides, machine_.lanes, slide.levels_on_gpu), slide.levels_on_gpu});
    };
    // A GPU leaves such tiles to the CPU.
    slide.tile_bytes = several_scans_bytes(*opened, index);
    if (!slide.decoded_on_gpu) {
      slide.tile_bytes =
          std::max(slide.tile_bytes, decoding_bytes(opened->coded_level(index), coding_of(*opened, index)));
      check_decode_memory(config_, *opened, index, planned);
    }
    const LevelPlan plan = planned();
    if (spectrum_) {
      const Size windows = needs_[*spectrum_].footprint.outputs({level.width, level.height});
      slide.windows_x = windows.width;
      slide.windows_y = windows.height;
    }
    count_batches(slide, plan, ranges, level.codec);
    add_encoders(*opened, index, slide.levels_on_gpu);
    if (!slide.levels_on_gpu) {
      pyramids_.push_back(pyramid_bytes(*opened, index, slide.most_rows) + copied_bytes(plan, ranges));
    }
    networks_.add(info, index, slide);
    if (spectrum_ && config_.output.maps != MapFormat::none)
      maps_.push_back(static_cast<std::uint64_t>(slide.windows()) * 8);
  }

  const Config& config_;
  const ForecastMachine& machine_;
  const Operators& all_operators_;
  Operators operators_;
  std::vector<OperatorNeeds> needs_;
  std::vector<Encoders> encoders_;  ///< by operator
  std::optional<std::size_t> spectrum_;
  RunForecast& forecast_;
  std::shared_ptr<DecodeMemory> decode_memory_;  ///< as a run has it: what exceeds it fails
  std::shared_ptr<const Network> tissue_network_;
  NetworksForecast networks_;
  std::uint64_t carried_ = 0;
  std::vector<std::uint64_t> pyramids_;
  std::vector<std::uint64_t> maps_;
  std::vector<std::uint64_t> small_levels_;
  std::vector<std::uint64_t> opening_;
  std::vector<std::uint64_t> masks_;  ///< what is kept of them while a slide is under way
};

}  // namespace

std::uint64_t RunForecast::host_bytes() const noexcept {
  return static_cast<std::uint64_t>(slots) * host_slot_bytes + carry_bytes + staging_bytes + results_bytes +
         maps_bytes + images_bytes() + networks_bytes + tissue_network_bytes + decode_bytes + small_levels_bytes +
         opening_bytes + tables_bytes;
}

std::uint64_t RunForecast::touched_bytes() const noexcept {
  if (slides.empty()) return host_bytes();
  std::uint64_t most_tile = 0;
  std::uint64_t most_profile = 0;
  for (const SlideForecast& slide : slides) {
    most_tile = std::max(most_tile, slide.tile_bytes);
    most_profile = std::max(most_profile, slide.profile_bytes);
  }
  const std::uint64_t opening = static_cast<std::uint64_t>(std::max(gpus, 1)) + most_slow;
  return static_cast<std::uint64_t>(slots_used) * std::min(most_touched(*this), host_slot_bytes) + carry_touched_bytes +
         staging_bytes + results_bytes + maps_bytes + images_bytes() + networks_bytes + tissue_network_bytes +
         small_levels_bytes + opening_bytes + tables_bytes +
         std::min(decode_bytes, most_tile * static_cast<std::uint64_t>(threads) + most_profile * opening);
}

RunForecast forecast_run(const Config& config, const std::vector<std::string>& slides, const ForecastOptions& options) {
  validate(config);
  operators::check_stain_reference(config);
  return forecast_operators(config, operators::make_operators(config), slides, options);
}

RunForecast forecast_operators(const Config& config, const Operators& operators, const std::vector<std::string>& slides,
                               const ForecastOptions& options) {
  check_images(config, operators);
  RunForecast forecast;
  forecast.threads = threads_of(config);
  const ForecastMachine machine = choose_machine(forecast, config, operators, slides.size(), options);
  Planner planner(config, machine, operators, forecast);
  for (std::size_t i = 0; i < slides.size(); ++i) planner.add(slides[i], i, slides.size());
  planner.finish();
  return forecast;
}

}  // namespace slidestream
