#include <slidestream/forecast.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include <slidestream/error.hpp>

#include "image/small_level.hpp"
#include "operators/common/tile_grid.hpp"
#include "operators/registry.hpp"
#include "operators/stain/stain_operator.hpp"
#include "planning/device_sizing.hpp"
#include "planning/network_plan.hpp"
#include "planning/operator_needs.hpp"
#include "planning/staging_plan.hpp"
#include "planning/tile_ranges.hpp"
#include "runtime/machine.hpp"
#include "sink/image_formats.hpp"
#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/open_options.hpp"
#include "stages/delivery.hpp"
#include "stages/forecast.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/slide_images.hpp"
#include "stages/network/network_admission.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"
#include "stages/run/small_levels.hpp"
#include "stages/source.hpp"

namespace slidestream {
namespace {

/// Assumed where a configuration wants a GPU and none is here.
constexpr const char* default_model = "h100";

struct Machine {
  SlotLimits limits;
  std::size_t lanes = 1;
  bool gpu = false;
  DeviceWork work;  ///< of GPUs
};

void forecast_gpus(RunForecast& forecast, Machine& machine, const Config& config, const DeviceWork& work,
                   const DeviceFacts& facts, std::size_t slides, std::size_t count) {
  forecast.backend = "cuda";
  forecast.gpus = static_cast<int>(count);
  forecast.gpu = facts.name;
  forecast.engine = facts.engine;
  forecast.gpu_unknown = facts.unknown;
  forecast.gpu_free_bytes = facts.free;
  forecast.gpu_allowed_bytes = static_cast<std::uint64_t>(static_cast<double>(facts.free) * config.gpu.memory_fraction);
  const HostSlots host = device_host_slots(config.pipeline, work, count);
  const DeviceLayout layout = lay_out(config, work, host, facts.sizing, forecast.gpu_allowed_bytes);
  machine = {device_slot_limits(work, host, layout, facts.sizing), count, true, work};
  forecast.gpu_bytes = layout.total();
  PipelineConfig other = config.pipeline;
  other.residency = other.residency == Residency::whole ? Residency::strips : Residency::whole;
  DeviceWork other_work = work;
  other_work.batch_pixels = batch_pixels_for(other, most_batch_pixels(slides, count));
  forecast.gpu_other_residency_bytes =
      lay_out(config, other_work, host, facts.sizing, forecast.gpu_allowed_bytes).total();
  forecast.slots = static_cast<int>(layout.slots * count);
  forecast.slot_bytes = host.slot_bytes;
  forecast.output_slots = static_cast<int>(host.output_slots);
  forecast.output_slot_bytes = host.output_bytes;
  forecast.results_bytes = count * layout.host_bytes();
  forecast.staging_bytes = count * staging_plan(config.gpu, runtime::last_cache_bytes(), count).bytes();
}

void forecast_cpu(RunForecast& forecast, Machine& machine, const Config& config, const Operators& all_operators) {
  forecast.backend = "cpu";
  machine.limits = slot_limits(config.pipeline, needs_of(readers_of(all_operators)));
  forecast.slots = config.pipeline.queue_depth;
  forecast.slot_bytes = machine.limits.slot_bytes;
  forecast.output_slots = static_cast<int>(machine.limits.output_slots);
  forecast.output_slot_bytes = machine.limits.output_bytes;
  forecast.carry_bytes = (static_cast<std::uint64_t>(config.pipeline.queue_depth) + 1) * machine.limits.carry_bytes;
}

Machine choose_machine(RunForecast& forecast, const Config& config, const Operators& all_operators, std::size_t slides,
                       const ForecastOptions& options) {
  Machine machine;
  const bool wants = config.pipeline.backend == Backend::cuda || config.decode.device == DecodeDevice::gpu;
  if (config.pipeline.backend == Backend::cpu) {
    if (options.assumed) throw ConfigError("a GPU was assumed, but pipeline.backend is \"cpu\"");
    forecast_cpu(forecast, machine, config, all_operators);
    return machine;
  }
  forecast.why = why_not_on_gpus(config, all_operators);
  if (!forecast.why.empty()) {
    if (options.assumed) throw ConfigError("a GPU was assumed, but " + forecast.why);
    if (wants) throw ConfigError("a GPU is asked for, but " + forecast.why);
    forecast_cpu(forecast, machine, config, all_operators);
    return machine;
  }
  const Operators operators = readers_of(all_operators);
  const auto assume = [&](const GpuModel& model, const std::string& why) {
    const std::size_t count = std::max<std::size_t>(1, config.gpu.devices.size());
    forecast.gpus_assumed = true;
    forecast.why = why;
    const DeviceWork work = device_work(config, operators, slides, count);
    forecast_gpus(forecast, machine, config, work, facts_of(config, work, model), slides, count);
  };
  if (options.assumed) {
    assume(*options.assumed, "as was asked for");
    return machine;
  }
  const GpuChoice choice = [&] {
    try {
      return choose_gpus(config);
    } catch (const ConfigError& error) {
      return GpuChoice{{}, error.what()};
    }
  }();
  if (!choice.devices.empty()) {
    // The fullest one decides; they are alike, as a rule.
    std::optional<DeviceFacts> fullest;
    const DeviceWork work = device_work(config, operators, slides, choice.devices.size());
    for (const int ordinal : choice.devices) {
      DeviceFacts facts = facts_of_device(config, work, ordinal);
      if (!fullest || facts.free < fullest->free) fullest = std::move(facts);
    }
    forecast_gpus(forecast, machine, config, work, *fullest, slides, choice.devices.size());
  } else if (wants) {
    assume(gpu_model(default_model), choice.why_none);
  } else {
    forecast_cpu(forecast, machine, config, all_operators);
    forecast.why = choice.why_none;
  }
  return machine;
}

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

class Planner {
 public:
  Planner(const Config& config, const Machine& machine, const Operators& all_operators, RunForecast& forecast)
      : config_(config),
        machine_(machine),
        all_operators_(all_operators),
        operators_(readers_of(all_operators)),
        needs_(needs_of(operators_)),
        spectrum_(place_of_spectrum(operators_)),
        forecast_(forecast),
        tissue_network_(tissue_network_of(config, all_operators)) {}

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
    const auto batches = [this] {
      std::int64_t sum = 0;
      for (const SlideForecast& slide : forecast_.slides) sum += slide.batches;
      return sum;
    }();
    forecast_.carry_touched_bytes =
        std::min(forecast_.carry_bytes, (static_cast<std::uint64_t>(forecast_.slots) + 1) * carried_);
    forecast_.host_slot_bytes = forecast_.slot_bytes;
    if (machine_.gpu && batches > 0)
      forecast_.host_slot_bytes = std::min(forecast_.slot_bytes, most_touched(forecast_));
    forecast_.slots_used = static_cast<int>(std::min<std::int64_t>(forecast_.slots, batches));
    std::ranges::sort(maps_, std::greater{});
    const std::size_t open = most_open_slides(static_cast<std::size_t>(forecast_.slots), machine_.lanes, machine_.gpu);
    const auto aside = static_cast<std::size_t>(std::min(tiles_aside(), NetworkAdmission::most_aside));
    maps_.resize(
        std::min(maps_.size(), open + Delivery::most_waiting(machine_.lanes) + Delivery::most_put_off + aside));
    for (const std::uint64_t bytes : maps_) forecast_.maps_bytes += bytes;
    forecast_.decode_bytes = decode_memory_bytes(config_);
    forecast_.small_levels_bytes = small_levels(open);
    forecast_.opening_bytes = compared_levels();
    std::vector<std::uint64_t> tables;
    for (const SlideForecast& slide : forecast_.slides) tables.push_back(slide.table_bytes);
    std::ranges::sort(tables, std::greater{});
    tables.resize(std::min(tables.size(), open));
    for (const std::uint64_t bytes : tables) forecast_.tables_bytes += bytes;
    // The end of one slide and the beginning of the next.
    std::ranges::sort(pyramids_, std::greater{});
    pyramids_.resize(std::min<std::size_t>(pyramids_.size(), 2));
    for (const std::uint64_t bytes : pyramids_) forecast_.pyramids_bytes += bytes;
    NetworkForecast& all = forecast_.network;
    all.bands_bytes = bands_bytes();
    for (const auto& op : operators_) {
      if (op->network() != nullptr) add_network(*op->network());
    }
    if (all.sessions > 0) all.session_bytes /= all.sessions;
    if (tissue_network_ != nullptr) forecast_.tissue_network_bytes = tissue_network_bytes();
    forecast_.networks_bytes =
        all.bands_bytes + all.batches_bytes + all.weights_bytes + all.sessions * all.session_bytes;
  }

 private:
  /// What networks keep of a slide.
  struct OfNetwork {
    std::uint64_t bytes = 0;
    std::int64_t tiles = 0;
    bool small = false;  ///< these are fewer than a batch
  };

  /// Tiles of small slides that are in memory besides those of slides that are let in.
  std::int64_t tiles_aside() const {
    std::int64_t tiles = 0;
    for (const auto& op : operators_) {
      if (op->network() != nullptr) tiles += network_tiles_aside(*op->network(), machine_.lanes);
    }
    return tiles;
  }

  /// Of the slides that take most, as many as are let in, and small ones that wait besides.
  std::uint64_t bands_bytes() {
    std::ranges::sort(networks_, std::greater{}, &OfNetwork::bytes);
    std::int64_t aside = tiles_aside();
    std::size_t places = network_slides(machine_.lanes) + (aside > 0 ? NetworkAdmission::most_large_aside : 0);
    std::uint64_t sum = 0;
    for (const OfNetwork& slide : networks_) {
      if (places > 0) {
        --places;
      } else if (slide.small && slide.tiles <= aside) {
        aside -= slide.tiles;
      } else {
        continue;
      }
      sum += slide.bytes;
    }
    return sum;
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
    std::ranges::sort(masks_, std::greater{});
    masks_.resize(std::min(masks_.size(), open));
    for (const std::uint64_t bytes : masks_) sum += bytes;
    if (!config_.operators.runs("stain") || config_.stain.reference.empty()) return sum;
    try {
      const OpenOptions options = open_options(config_, config_.stain.reference);
      const auto reference = Slide::open(config_.stain.reference, options);
      return sum + small_level_bytes(config_, all_operators_, reference->info(), tissue_network_.get());
    } catch (const Error&) {
      return sum;  // Each slide says it.
    }
  }

  /// Of levels that slides which are opened at a time compare.
  std::uint64_t compared_levels() {
    std::ranges::sort(opening_, std::greater{});
    opening_.resize(std::min(opening_.size(), machine_.lanes + most_slow));
    return std::accumulate(opening_.begin(), opening_.end(), std::uint64_t{0});
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

  void add_network(const Network& network) {
    NetworkForecast& all = forecast_.network;
    if (all.description.empty()) {
      all.description = network.description();
      all.side = network.tiles().side;
      all.batch = network.tiles().batch;
    }
    all.tissue_only |= network.tiles().tissue_only;
    all.mixed |= network.tiles().mixed;
    const std::size_t sessions = static_cast<std::size_t>(network.sessions()) * machine_.lanes;
    all.sessions += sessions;
    // One that slides share and that fails is divided by its session, which takes another for the parts.
    const std::size_t parts = network.tiles().mixed ? sessions : 0;
    all.batches_bytes += (network_batches(sessions) + parts) * network_batch_bytes(network);
    try {
      const NetworkMemory memory = network.memory();
      all.weights_bytes += memory.weights;
      all.session_bytes += sessions * memory.session;
      all.device_bytes += memory.device;
    } catch (const Error& error) {
      all.unknown = error.what();
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
      bytes +=
          pyramid_bytes(image, product->format, options, rows, static_cast<std::int64_t>(machine_.limits.output_slots));
    }
    return bytes;
  }

  /// The same of one image, made from so many bands of so many rows at a time.
  static std::uint64_t pyramid_bytes(Size image, const PixelFormat& format, const ImageOptions& options,
                                     std::int64_t rows, std::int64_t bands) {
    std::uint64_t bytes = 0;
    const PyramidLayout layout(image, options.tile, options.levels);
    for (int level = 0; level < layout.levels(); ++level) {
      const Size size = layout.size(level);
      const std::int64_t band = (rows >> level) / options.tile + 1;
      const std::int64_t kept = std::min(layout.rows(level), 1 + bands * band);
      bytes += static_cast<std::uint64_t>(kept * std::min<std::int64_t>(options.tile, size.height) * size.width) *
               format.pixel_bytes();
    }
    return bytes;
  }

  /// What networks keep of a slide, and what they get of it.
  OfNetwork of_network(const SlideInfo& info, std::size_t level_index, SlideForecast& slide) const {
    OfNetwork all;
    for (const auto& op : operators_) {
      if (op->network() == nullptr) continue;
      const auto product = image_of(*op);
      ImageOptions options;
      if (product) options = image_options(config_.image, product->format, product->labels);
      const Level& level = info.levels[level_index];
      operators::require_square_pixels(op->network()->tiles(), info);
      const NetworkPlan plan = plan_network(*op->network(), {level.width, level.height}, mpp_of(info, level_index),
                                            config_.stitch, options.tile, machine_.gpu);
      all.bytes += plan.bytes;
      const std::int64_t tiles = plan.stitch.tiles();
      const std::int64_t batch = op->network()->tiles().batch;
      slide.network_tiles += tiles;
      slide.network_batches += (tiles + batch - 1) / batch;
      all.tiles += tiles;
      all.small |= tiles < batch;
      if (!product) continue;
      all.bytes += pyramid_bytes(plan.stitch.image, product->format, options, plan.chunk_rows,
                                 static_cast<std::int64_t>(network_chunks));
    }
    return all;
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

  void plan(SlideForecast& slide, std::size_t index_in_run, std::size_t slides) {
    OpenOptions options = open_options(config_, slide.path);
    options.retries = 0;
    const auto opened = Slide::open(slide.path, options);
    const SlideInfo& info = opened->info();
    slide.file_bytes = info.file_size;
    const std::size_t index = level_of(config_, operators_, info);
    const Level& level = info.levels[index];
    slide.width = level.width;
    slide.height = level.height;
    slide.codec = name(level.codec);
    slide.decoded_on_gpu = machine_.gpu && device_decodes(config_, machine_.work, *opened, index);
    add_small_level(info);
    opening_.push_back(opening_bytes(*opened));
    if (needs_.empty()) return;
    slide.table_bytes = table_bytes(*opened);
    if (!slide.decoded_on_gpu) {
      slide.tile_bytes = decoding_bytes(opened->coded_level(index), coding_of(*opened, index));
      check_decode_memory(config_, *opened, index);
    }
    const TileRanges ranges{*opened, index};
    slide.levels_on_gpu = levels_on_device(level, needs_, machine_.limits);
    const LevelPlan plan = plan_level(
        level, fitting_needs(level, needs_), config_.pipeline, machine_.limits, &TileRanges::compressed_bytes, &ranges,
        {fragments_of_slide(config_.gpu.split_slides, slides - index_in_run, machine_.lanes), slide.decoded_on_gpu,
         batch_pixels_of(index_in_run, slides, machine_.lanes, slide.levels_on_gpu), slide.levels_on_gpu});
    if (spectrum_) {
      const Size windows = needs_[*spectrum_].footprint.outputs({level.width, level.height});
      slide.windows_x = windows.width;
      slide.windows_y = windows.height;
    }
    slide.batches = static_cast<std::int64_t>(plan.strips.size());
    slide.panels = static_cast<std::int64_t>(plan.panels.size());
    slide.fragments = static_cast<std::int64_t>(plan.chains.size());
    const bool is_looked_at = level.codec == Codec::jpeg2000 || config_.image.compression == ImageCompression::copy;
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
    if (!slide.levels_on_gpu) {
      pyramids_.push_back(pyramid_bytes(*opened, index, slide.most_rows) + copied_bytes(plan, ranges));
    }
    networks_.push_back(of_network(info, index, slide));
    if (spectrum_ && config_.output.maps != MapFormat::none)
      maps_.push_back(static_cast<std::uint64_t>(slide.windows()) * 8);
  }

  const Config& config_;
  const Machine& machine_;
  const Operators& all_operators_;
  Operators operators_;
  std::vector<OperatorNeeds> needs_;
  std::optional<std::size_t> spectrum_;
  RunForecast& forecast_;
  std::shared_ptr<const Network> tissue_network_;
  std::uint64_t carried_ = 0;
  std::vector<std::uint64_t> pyramids_;
  std::vector<OfNetwork> networks_;
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
  for (const SlideForecast& slide : slides) most_tile = std::max(most_tile, slide.tile_bytes);
  return static_cast<std::uint64_t>(slots_used) * std::min(most_touched(*this), host_slot_bytes) + carry_touched_bytes +
         staging_bytes + results_bytes + maps_bytes + images_bytes() + networks_bytes + tissue_network_bytes +
         small_levels_bytes + opening_bytes + tables_bytes +
         std::min(decode_bytes, most_tile * static_cast<std::uint64_t>(threads));
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
  const Machine machine = choose_machine(forecast, config, operators, slides.size(), options);
  Planner planner(config, machine, operators, forecast);
  for (std::size_t i = 0; i < slides.size(); ++i) planner.add(slides[i], i, slides.size());
  planner.finish();
  return forecast;
}

}  // namespace slidestream
