#include "planning/strip_plan.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <slidestream/error.hpp>

namespace slidestream {

bool has_window(const Level& level, const Footprint& op) noexcept {
  const Size outputs = op.outputs({level.width, level.height});
  return outputs.width > 0 && outputs.height > 0;
}

namespace {

constexpr std::int64_t kRowAlignment = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t pitch_for(std::int64_t width) {
  std::int64_t pitch = ceil_div(width, kRowAlignment) * kRowAlignment;
  // Rows a multiple of a page apart would all compete for the same cache sets.
  if (pitch % 4096 == 0) pitch += kRowAlignment;
  return pitch;
}

struct Planner {
  const Level& level;
  std::span<const OperatorNeeds> operators;
  const PipelineConfig& pipeline;
  const SlotLimits& limits;
  CompressedBytes compressed_bytes;
  const void* context;
  PlanOptions options;
  std::vector<Size> outputs;  ///< by operator

  /// Rows [first needed by output row `y`, ...) of the level.
  static std::int64_t first_row_of(const Footprint& op, std::int64_t y) {
    return std::max<std::int64_t>(0, y * op.step.height - op.halo.top);
  }
  static std::int64_t first_column_of(const Footprint& op, std::int64_t x) {
    return std::max<std::int64_t>(0, x * op.step.width - op.halo.left);
  }
  /// One past the last that output row `y` needs, which may be beyond the level.
  static std::int64_t end_row_of(const Footprint& op, std::int64_t y) {
    return y * op.step.height + op.window.height + op.halo.bottom;
  }
  static std::int64_t end_column_of(const Footprint& op, std::int64_t x) {
    return x * op.step.width + op.window.width + op.halo.right;
  }

  /// Most rows of each plane that a strip ever hands to the next one.
  ByPlane<std::int64_t> most_carried_rows() const {
    ByPlane<std::int64_t> most{};
    for (const OperatorNeeds& needs : operators) {
      const Footprint& op = needs.footprint;
      const std::int64_t around = op.halo.top + op.halo.bottom;
      // What is made of single pixels is made as they come.
      const std::int64_t rows = op.window.height == 1 && around == 0 ? 0 : op.window.height + around;
      most[needs.plane] = std::max(most[needs.plane], rows);
    }
    return most;
  }

  bool makes_images() const {
    return std::ranges::any_of(operators, [](const OperatorNeeds& op) { return op.image_bytes > 0; });
  }

  /// The `i`th of `count` parts of `all` outputs.
  static OutputRange part(std::int64_t all, std::int64_t i, std::int64_t count) {
    const std::int64_t first = all * i / count;
    return {first, all * (i + 1) / count - first};
  }

  /// The least number of columns, or rows, of outputs that an operator has: more parts would leave some empty.
  std::int64_t least(std::int64_t Size::*side) const { return (*std::ranges::min_element(outputs, {}, side)).*side; }

  std::vector<PanelPlan> cut_panels(std::int64_t count) const {
    std::vector<PanelPlan> panels(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      PanelPlan& panel = panels[static_cast<std::size_t>(i)];
      panel.x0 = i == 0 ? 0 : level.width;
      panel.x1 = i + 1 == count ? level.width : 0;
      for (std::size_t k = 0; k < operators.size(); ++k) {
        const OutputRange columns = part(outputs[k].width, i, count);
        panel.x0 = std::min(panel.x0, first_column_of(operators[k].footprint, columns.first));
        panel.x1 = std::max(panel.x1, std::min(level.width, end_column_of(operators[k].footprint, columns.end() - 1)));
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      PanelPlan& panel = panels[static_cast<std::size_t>(i)];
      // Windows further apart than they are wide leave columns that nobody needs: they are decoded all the same, so
      // that a damaged tile is found however the level is cut.
      if (i + 1 < count) panel.x1 = std::max(panel.x1, panels[static_cast<std::size_t>(i) + 1].x0);
      panel.first_tile_column = panel.x0 / level.tile_width;
      panel.tile_columns = ceil_div(panel.x1, level.tile_width) - panel.first_tile_column;
      const PanelPlan* before = i == 0 ? nullptr : &panels[static_cast<std::size_t>(i) - 1];
      panel.first_owned_tile_column = before == nullptr ? 0 : before->first_tile_column + before->tile_columns;
      for (const OperatorNeeds& op : operators) {
        const auto pixel_bytes = static_cast<std::int64_t>(plane_formats[op.plane].pixel_bytes());
        panel.pitch[op.plane] = static_cast<std::ptrdiff_t>(pitch_for((panel.x1 - panel.x0) * pixel_bytes));
      }
    }
    return panels;
  }

  std::int64_t tile_row_height(std::int64_t tile_row) const {
    return std::min(level.tile_height, level.height - tile_row * level.tile_height);
  }

  BatchNeeds needs_of_rows(const PanelPlan& panel, std::span<const OutputRange> columns, std::int64_t tile_row) const {
    BatchNeeds needs;
    needs.pitch = panel.pitch;
    needs.width = panel.x1 - panel.x0;
    needs.carried_rows = most_carried_rows();
    needs.rows = tile_row_height(tile_row);
    needs.compressed_bytes = compressed_bytes(context, tile_row, panel.first_tile_column, panel.tile_columns);
    needs.tiles = panel.tile_columns;
    needs.tile_pixels = level.tile_width * level.tile_height;
    needs.decoded_on_device = options.decoded_on_device;
    needs.levels_on_device = options.levels_on_device;
    for (const OutputRange& range : columns) needs.outputs.push_back({range.count, 0});
    const auto windows = std::ranges::find(operators, 0, &OperatorNeeds::image_bytes);
    if (windows != operators.end()) needs.windows = static_cast<std::size_t>(windows - operators.begin());
    return needs;
  }

  /// Whether a batch that completes as many rows of outputs as it can, wherever it lies, fits.
  bool fits(BatchNeeds& needs) const {
    needs.image_bytes = 0;
    for (std::size_t k = 0; k < operators.size(); ++k) {
      const Footprint& op = operators[k].footprint;
      const bool by_pixels = op.window == Size{1, 1} && op.step == Size{1, 1};
      // Those of pixels that waited for the rows below, and no more.
      needs.outputs[k].rows =
          by_pixels ? needs.rows + op.halo.bottom : (needs.rows + op.halo.bottom) / op.step.height + 2;
      if (operators[k].image_bytes == 0) continue;
      needs.image_bytes += needs.outputs[k].rows * image_pitch(needs.outputs[k].columns, operators[k].image_bytes);
    }
    return limits.fits(needs);
  }

  bool fits(const PanelPlan& panel, std::span<const OutputRange> columns) const {
    for (std::int64_t row = 0; row < level.rows; ++row) {
      BatchNeeds needs = needs_of_rows(panel, columns, row);
      if (!fits(needs)) return false;
    }
    return true;
  }

  void choose_panels(LevelPlan& plan) const {
    const std::int64_t most = makes_images() ? 1 : least(&Size::width);
    for (std::int64_t count = 1;; count = std::min(count * 2, most)) {
      plan.panels = cut_panels(count);
      plan.panel_columns.clear();
      for (std::int64_t i = 0; i < count; ++i) {
        for (const Size& size : outputs) plan.panel_columns.push_back(part(size.width, i, count));
      }
      bool all_fit = true;
      for (std::size_t i = 0; all_fit && i < plan.panels.size(); ++i) {
        all_fit = fits(plan.panels[i], columns_of(plan, i));
      }
      if (all_fit) return;
      if (count == most) fail_for_room(plan);
    }
  }

  [[noreturn]] void fail_for_residency() const {
    std::int64_t compressed = 0;
    for (std::int64_t row = 0; row < level.rows; ++row) compressed += compressed_bytes(context, row, 0, level.columns);
    throw Error("pipeline.residency = \"whole\": the level's " + std::to_string(level.width) + " x " +
                std::to_string(level.height) + " pixels, from " + std::to_string((compressed >> 20) + 1) +
                " MiB of tiles, don't fit a slot of " + std::to_string(limits.slot_bytes >> 20) +
                " MiB and its part of the GPU's memory; raise pipeline.memory_mib or gpu.memory_fraction, lower "
                "pipeline.queue_depth, or use \"strips\"");
  }

  /// The largest row of tiles says how much more memory there would have to be: all parts of it grow alike.
  [[noreturn]] void fail_for_room(const LevelPlan& plan) const {
    double share = 1.0;
    for (std::size_t panel = 0; panel < plan.panels.size(); ++panel) {
      for (std::int64_t y = 0; y < level.rows; ++y) share = std::max(share, share_of_row(plan, panel, y));
    }
    std::int64_t wanted = 0;
    if (limits.carry_bytes > 0 && share > 1.0) {
      // Parts are rounded down to whole pages.
      constexpr double page = 4096;
      constexpr double most_memory_mib = 1 << 24;
      const double memory = share * (1.0 + page / static_cast<double>(limits.carry_bytes)) * pipeline.memory_mib;
      if (memory < most_memory_mib) wanted = static_cast<std::int64_t>(std::ceil(memory)) + 1;
    }
    throw RoomError("a row of tiles of " + std::to_string(level.tile_width) + " x " +
                        std::to_string(level.tile_height) + " pixels" +
                        (makes_images() ? " and of full width, as images need it," : "") + " doesn't fit a slot of " +
                        std::to_string(limits.slot_bytes >> 10) + " KiB; raise pipeline.memory_mib " +
                        (wanted > 0 ? "to " + std::to_string(wanted) + " " : "") + "or lower pipeline.queue_depth",
                    wanted);
  }

  /// Of the room for a batch, how much a row of tiles takes.
  double share_of_row(const LevelPlan& plan, std::size_t panel, std::int64_t row) const {
    BatchNeeds needs = needs_of_rows(plan.panels[panel], columns_of(plan, panel), row);
    fits(needs);
    const auto of_room = [](std::int64_t bytes, std::size_t room) {
      return room == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(room);
    };
    return std::max({of_room(needs.plane_bytes() + needs.compressed_bytes + slot_slack, limits.slot_bytes),
                     of_room(needs.carried_bytes(), limits.carry_bytes),
                     options.levels_on_device ? 0.0 : of_room(needs.image_bytes, limits.output_bytes)});
  }

  std::span<const OutputRange> columns_of(const LevelPlan& plan, std::size_t panel) const {
    return std::span(plan.panel_columns).subspan(panel * operators.size(), operators.size());
  }

  /// Rows of outputs and the tile rows that they need.
  struct Fragment {
    std::vector<OutputRange> rows;  ///< by operator
    std::int64_t first_tile_row = 0;
    std::int64_t end_tile_row = 0;
    std::int64_t first_owned_tile_row = 0;
  };

  std::vector<Fragment> cut_fragments(std::int64_t count) const {
    std::vector<Fragment> fragments(static_cast<std::size_t>(count));
    std::int64_t owned_until = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      Fragment& fragment = fragments[static_cast<std::size_t>(i)];
      // Windows further apart than they are high leave rows that nobody needs: they are decoded all the same.
      fragment.first_tile_row = i == 0 ? 0 : owned_until;
      fragment.end_tile_row = i + 1 == count ? level.rows : 0;
      for (std::size_t k = 0; k < operators.size(); ++k) {
        const Footprint& op = operators[k].footprint;
        const OutputRange rows = fragment.rows.emplace_back(part(outputs[k].height, i, count));
        const std::int64_t first = first_row_of(op, rows.first) / level.tile_height;
        fragment.first_tile_row = std::min(fragment.first_tile_row, first);
        const std::int64_t end = ceil_div(end_row_of(op, rows.end() - 1), level.tile_height);
        fragment.end_tile_row = std::max(fragment.end_tile_row, std::min(level.rows, end));
      }
      fragment.first_owned_tile_row = owned_until;
      owned_until = fragment.end_tile_row;
    }
    return fragments;
  }

  std::int64_t wanted_tile_rows_of(const Fragment& fragment, const PanelPlan& panel) const {
    if (pipeline.residency == Residency::whole) return level.rows;
    if (options.decoded_on_device && pipeline.batch_strips == 0) {
      const std::int64_t most =
          std::max<std::int64_t>(1, options.batch_pixels / (pitch_for(panel.x1 - panel.x0) * level.tile_height));
      const std::int64_t rows = fragment.end_tile_row - fragment.first_tile_row;
      // Batches of equal size: a small one at the end would keep the device as long as a large one.
      return ceil_div(rows, ceil_div(rows, most));
    }
    const std::int64_t wanted_rows = std::int64_t{pipeline.strip_height} * std::max(1, pipeline.batch_strips);
    return std::max<std::int64_t>(1, (wanted_rows + level.tile_height / 2) / level.tile_height);
  }

  void cut_strips(LevelPlan& plan, const Fragment& fragment, std::size_t panel_index) const {
    const PanelPlan& panel = plan.panels[panel_index];
    const std::int64_t wanted_tile_rows = wanted_tile_rows_of(fragment, panel);
    const std::span<const OutputRange> columns = columns_of(plan, panel_index);
    std::vector<std::int64_t> next(operators.size());  // row of outputs that isn't complete, by operator
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = fragment.rows[k].first;
    std::int64_t tile_row = fragment.first_tile_row;
    ByPlane<std::int64_t> carried_from;
    carried_from.fill(tile_row * level.tile_height);
    while (tile_row < fragment.end_tile_row) {
      StripPlan strip;
      strip.panel = panel_index;
      strip.first_tile_row = tile_row;
      strip.first_owned_tile_row = fragment.first_owned_tile_row;
      BatchNeeds needs;
      while (tile_row < fragment.end_tile_row && strip.tile_rows < wanted_tile_rows) {
        BatchNeeds more = needs_of_rows(panel, columns, tile_row);
        more.rows += needs.rows;
        more.compressed_bytes += needs.compressed_bytes;
        more.tiles += needs.tiles;
        if (strip.tile_rows > 0 && !fits(more)) break;
        needs = more;
        ++strip.tile_rows;
        ++tile_row;
      }
      strip.y0 = strip.first_tile_row * level.tile_height;
      strip.y1 = std::min(level.height, tile_row * level.tile_height);
      const bool last = tile_row == fragment.end_tile_row;
      strip.carry_in_y0 = carried_from;
      strip.carry_out_y0.fill(strip.y1);
      for (std::size_t k = 0; k < operators.size(); ++k) {
        const Footprint& op = operators[k].footprint;
        const OutputRange& all = fragment.rows[k];
        const std::int64_t first = next[k];
        if (last) {
          next[k] = all.end();
        } else {
          // The last row that an output needs must have been decoded.
          const std::int64_t reach = strip.y1 - end_row_of(op, 0);
          if (reach >= 0) next[k] = std::clamp(reach / op.step.height + 1, first, all.end());
        }
        plan.strip_rows.push_back({first, next[k] - first});
        std::int64_t& carry_out = strip.carry_out_y0[operators[k].plane];
        if (next[k] < all.end()) carry_out = std::min(carry_out, first_row_of(op, next[k]));
      }
      // Rows above the fragment's own are nobody's.
      for (std::size_t plane = 0; plane < plane_count; ++plane) {
        strip.carry_out_y0[plane] = std::max(strip.carry_out_y0[plane], strip.carry_in_y0[plane]);
      }
      carried_from = strip.carry_out_y0;
      plan.strips.push_back(strip);
    }
  }
};

}  // namespace

std::int64_t BatchNeeds::carried_bytes() const noexcept {
  std::int64_t bytes = 0;
  for (std::size_t plane = 0; plane < plane_count; ++plane) bytes += carried_rows[plane] * pitch[plane];
  return bytes;
}

std::int64_t BatchNeeds::plane_bytes() const noexcept {
  std::int64_t bytes = carried_bytes();
  for (const std::int64_t row_bytes : pitch) bytes += rows * row_bytes;
  return bytes;
}

std::int64_t pixel_bytes_of(const ByPlane<std::ptrdiff_t>& pitch) noexcept {
  std::int64_t bytes = 0;
  for (std::size_t plane = 0; plane < plane_count; ++plane) {
    if (pitch[plane] > 0) bytes += static_cast<std::int64_t>(plane_formats[plane].pixel_bytes());
  }
  return bytes;
}

std::int64_t BatchNeeds::patch_bytes() const noexcept { return tile_pixels * pixel_bytes_of(pitch); }

std::int64_t image_pitch(std::int64_t width, std::int64_t pixel_bytes) noexcept {
  return pitch_for(width * pixel_bytes);
}

bool levels_on_device(const Level& level, std::span<const OperatorNeeds> operators, const SlotLimits& limits) {
  if (!limits.makes_levels || std::ranges::any_of(operators, &OperatorNeeds::has_network)) return false;
  std::int64_t below = 0;
  for (const OperatorNeeds& op : operators) below = std::max(below, op.footprint.halo.bottom);
  return limits.makes_levels(level, level.tile_height + below);
}

SlotLimits slot_limits(std::size_t carry_bytes) {
  SlotLimits limits;
  limits.slot_bytes = carry_bytes * 4;
  limits.carry_bytes = carry_bytes;
  limits.fits = [carry = static_cast<std::int64_t>(carry_bytes)](const BatchNeeds& needs) {
    return needs.carried_bytes() <= carry && needs.plane_bytes() + needs.compressed_bytes + slot_slack <= 4 * carry;
  };
  return limits;
}

SlotLimits slot_limits(const PipelineConfig& config, std::span<const OperatorNeeds> operators) {
  const std::size_t total = static_cast<std::size_t>(config.memory_mib) << 20;
  const std::size_t depth = static_cast<std::size_t>(config.queue_depth);
  // Bytes of a pixel in the planes, and in the images that are made of them.
  ByPlane<std::size_t> planes{};
  std::size_t image = 0;
  for (const OperatorNeeds& op : operators) {
    planes[op.plane] = plane_formats[op.plane].pixel_bytes();
    image += static_cast<std::size_t>(op.image_bytes);
  }
  const std::size_t pixel = planes[luminance_plane] + planes[rgb_plane];
  // total = depth x slot + (depth + 1) x slot / 4
  if (image == 0) return slot_limits(total / (5 * depth + 1) / 4096 * 4096);
  // ... + outputs x slot x image / pixel
  const std::size_t outputs = std::max<std::size_t>(2, depth / 2);
  SlotLimits limits = slot_limits(total * pixel / ((5 * depth + 1) * pixel + 4 * outputs * image) / 4096 * 4096);
  limits.output_slots = outputs;
  limits.output_bytes = limits.slot_bytes * image / pixel;
  limits.fits = [fits = limits.fits, bytes = static_cast<std::int64_t>(limits.output_bytes)](const BatchNeeds& needs) {
    return needs.image_bytes <= bytes && fits(needs);
  };
  return limits;
}

void require_window(const Level& level, const Footprint& op) {
  if (has_window(level, op)) return;
  throw Error("the level has " + std::to_string(level.width) + " x " + std::to_string(level.height) +
              " pixels, less than one window of " + std::to_string(op.window.width) + " x " +
              std::to_string(op.window.height));
}

std::vector<OperatorNeeds> fitting_needs(const Level& level, std::span<const OperatorNeeds> operators) {
  std::vector<OperatorNeeds> fitting(operators.begin(), operators.end());
  const auto fits = [&level](const OperatorNeeds& needs) { return has_window(level, needs.footprint); };
  if (std::ranges::none_of(fitting, fits)) return fitting;
  for (OperatorNeeds& needs : fitting) {
    if (!fits(needs)) needs.footprint = {};
  }
  return fitting;
}

LevelPlan plan_level(const Level& level, std::span<const OperatorNeeds> operators, const PipelineConfig& pipeline,
                     const SlotLimits& limits, CompressedBytes compressed_bytes, const void* context,
                     const PlanOptions& options) {
  LevelPlan plan;
  for (const OperatorNeeds& needs : operators) {
    require_window(level, needs.footprint);
    plan.outputs.push_back(needs.footprint.outputs({level.width, level.height}));
  }
  Planner planner{level, operators, pipeline, limits, compressed_bytes, context, options, plan.outputs};
  planner.choose_panels(plan);
  const bool one_chain = planner.makes_images() || pipeline.residency == Residency::whole;
  const std::int64_t fragments = one_chain ? 1 : options.fragments;
  if (fragments > 1) planner.options.batch_pixels = std::min(options.batch_pixels, device_first_pixels);
  for (const Planner::Fragment& fragment :
       planner.cut_fragments(std::clamp<std::int64_t>(fragments, 1, planner.least(&Size::height)))) {
    ChainPlan chain{plan.strips.size(), 0};
    for (std::size_t panel = 0; panel < plan.panels.size(); ++panel) planner.cut_strips(plan, fragment, panel);
    chain.strips = plan.strips.size() - chain.first_strip;
    plan.chains.push_back(chain);
  }
  if (pipeline.residency == Residency::whole && plan.strips.size() > 1) planner.fail_for_residency();
  return plan;
}

}  // namespace slidestream
