#include "stages/strip_plan.hpp"

#include <algorithm>
#include <string>

#include <slidestream/error.hpp>

namespace slidestream {
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
  const AnalysisConfig& analysis;
  const PipelineConfig& pipeline;
  const SlotLimits& limits;
  CompressedBytes compressed_bytes;
  const void* context;
  PlanOptions options;

  std::int64_t windows_along(std::int64_t size) const { return (size - analysis.window) / analysis.stride + 1; }

  /// Rows [first needed by window row `wy`'s smoothing, ...) of the level.
  std::int64_t first_row_of(std::int64_t wy) const {
    return std::max<std::int64_t>(0, wy * analysis.stride - analysis.smoothing_radius);
  }

  /// Most rows that a strip ever hands to the next one.
  std::int64_t most_carried_rows() const { return analysis.window + 2 * std::int64_t{analysis.smoothing_radius}; }

  std::vector<PanelPlan> cut_panels(std::int64_t count, std::int64_t windows_x) const {
    std::vector<PanelPlan> panels(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      PanelPlan& panel = panels[static_cast<std::size_t>(i)];
      panel.first_window_column = windows_x * i / count;
      panel.window_columns = windows_x * (i + 1) / count - panel.first_window_column;
      const std::int64_t radius = analysis.smoothing_radius;
      const std::int64_t last = panel.first_window_column + panel.window_columns - 1;
      panel.x0 = i == 0 ? 0 : std::max<std::int64_t>(0, panel.first_window_column * analysis.stride - radius);
      panel.x1 = std::min(level.width, last * analysis.stride + analysis.window + radius);
      if (i + 1 == count) panel.x1 = level.width;
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
      panel.pitch = static_cast<std::ptrdiff_t>(pitch_for(panel.x1 - panel.x0));
    }
    return panels;
  }

  std::int64_t tile_row_height(std::int64_t tile_row) const {
    return std::min(level.tile_height, level.height - tile_row * level.tile_height);
  }

  BatchNeeds needs_of_rows(const PanelPlan& panel, std::int64_t tile_row) const {
    BatchNeeds needs;
    needs.pitch = panel.pitch;
    needs.width = panel.x1 - panel.x0;
    needs.carried_rows = most_carried_rows();
    needs.rows = tile_row_height(tile_row);
    needs.compressed_bytes = compressed_bytes(context, tile_row, panel.first_tile_column, panel.tile_columns);
    needs.tiles = panel.tile_columns;
    needs.window_columns = panel.window_columns;
    needs.tile_pixels = level.tile_width * level.tile_height;
    needs.decoded_on_device = options.decoded_on_device;
    return needs;
  }

  /// Rows of windows that a batch of so many rows completes at most, wherever it lies.
  std::int64_t most_window_rows(std::int64_t rows) const {
    return (rows + analysis.smoothing_radius) / analysis.stride + 2;
  }

  bool fits(BatchNeeds needs) const {
    needs.window_rows = most_window_rows(needs.rows);
    return limits.fits(needs);
  }

  bool fits(const PanelPlan& panel) const {
    for (std::int64_t row = 0; row < level.rows; ++row) {
      if (!fits(needs_of_rows(panel, row))) return false;
    }
    return true;
  }

  std::vector<PanelPlan> choose_panels(std::int64_t windows_x) const {
    for (std::int64_t count = 1;; count = std::min(count * 2, windows_x)) {
      std::vector<PanelPlan> panels = cut_panels(count, windows_x);
      if (std::all_of(panels.begin(), panels.end(), [this](const PanelPlan& p) { return fits(p); })) return panels;
      if (count == windows_x) {
        throw Error("a row of tiles of " + std::to_string(level.tile_width) + " x " +
                    std::to_string(level.tile_height) + " pixels doesn't fit a slot of " +
                    std::to_string(limits.slot_bytes >> 10) + " KiB; raise pipeline.memory_mib or lower " +
                    "pipeline.queue_depth");
      }
    }
  }

  /// Rows of windows [first, end) and the tile rows that they need.
  struct Fragment {
    std::int64_t first_window_row = 0;
    std::int64_t end_window_row = 0;
    std::int64_t first_tile_row = 0;
    std::int64_t end_tile_row = 0;
    std::int64_t first_owned_tile_row = 0;
  };

  std::vector<Fragment> cut_fragments(std::int64_t count, std::int64_t windows_y) const {
    std::vector<Fragment> fragments(static_cast<std::size_t>(count));
    std::int64_t owned_until = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      Fragment& fragment = fragments[static_cast<std::size_t>(i)];
      fragment.first_window_row = windows_y * i / count;
      fragment.end_window_row = windows_y * (i + 1) / count;
      // Windows further apart than they are high leave rows that nobody needs: they are decoded all the same.
      const std::int64_t first = i == 0 ? 0 : first_row_of(fragment.first_window_row) / level.tile_height;
      fragment.first_tile_row = std::min(first, owned_until);
      const std::int64_t end =
          (fragment.end_window_row - 1) * analysis.stride + analysis.window + analysis.smoothing_radius;
      fragment.end_tile_row = i + 1 == count ? level.rows : std::min(level.rows, ceil_div(end, level.tile_height));
      fragment.first_owned_tile_row = owned_until;
      owned_until = fragment.end_tile_row;
    }
    return fragments;
  }

  std::int64_t wanted_tile_rows_of(const Fragment& fragment, const PanelPlan& panel) const {
    if (options.decoded_on_device && pipeline.batch_strips == 0) {
      const std::int64_t most = std::max<std::int64_t>(1, device_batch_pixels / (panel.pitch * level.tile_height));
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
    std::int64_t tile_row = fragment.first_tile_row;
    std::int64_t window_row = fragment.first_window_row;
    std::int64_t carried_from = tile_row * level.tile_height;
    while (tile_row < fragment.end_tile_row) {
      StripPlan strip;
      strip.panel = panel_index;
      strip.first_tile_row = tile_row;
      strip.first_owned_tile_row = fragment.first_owned_tile_row;
      BatchNeeds needs;
      while (tile_row < fragment.end_tile_row && strip.tile_rows < wanted_tile_rows) {
        BatchNeeds more = needs_of_rows(panel, tile_row);
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
      strip.first_window_row = window_row;
      if (last) {
        window_row = fragment.end_window_row;
      } else {
        // The last row that a window's smoothing touches must have been decoded.
        const std::int64_t reach = strip.y1 - analysis.window - analysis.smoothing_radius;
        if (reach >= 0) {
          window_row = std::clamp(reach / analysis.stride + 1, window_row, fragment.end_window_row);
        }
      }
      strip.window_rows = window_row - strip.first_window_row;
      strip.carry_out_y0 =
          last || window_row == fragment.end_window_row ? strip.y1 : std::min(strip.y1, first_row_of(window_row));
      // Rows above the fragment's own are nobody's.
      strip.carry_out_y0 = std::max(strip.carry_out_y0, strip.carry_in_y0);
      carried_from = strip.carry_out_y0;
      plan.strips.push_back(strip);
    }
  }
};

}  // namespace

SlotLimits slot_limits(std::size_t carry_bytes) {
  SlotLimits limits{carry_bytes * 4, carry_bytes, {}};
  limits.fits = [carry = static_cast<std::int64_t>(carry_bytes)](const BatchNeeds& needs) {
    const std::int64_t carried = needs.carried_rows * needs.pitch;
    return carried <= carry && carried + needs.rows * needs.pitch + needs.compressed_bytes + slot_slack <= 4 * carry;
  };
  return limits;
}

SlotLimits slot_limits(const PipelineConfig& config) {
  const std::size_t total = static_cast<std::size_t>(config.memory_mib) << 20;
  const std::size_t depth = static_cast<std::size_t>(config.queue_depth);
  // total = depth x slot + (depth + 1) x slot / 4
  return slot_limits(total / (5 * depth + 1) / 4096 * 4096);
}

LevelPlan plan_level(const Level& level, const AnalysisConfig& analysis, const PipelineConfig& pipeline,
                     const SlotLimits& limits, CompressedBytes compressed_bytes, const void* context,
                     const PlanOptions& options) {
  if (level.width < analysis.window || level.height < analysis.window) {
    throw Error("the level has " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                " pixels, less than one window of " + std::to_string(analysis.window) + " x " +
                std::to_string(analysis.window));
  }
  const Planner planner{level, analysis, pipeline, limits, compressed_bytes, context, options};
  LevelPlan plan;
  plan.windows_x = planner.windows_along(level.width);
  plan.windows_y = planner.windows_along(level.height);
  plan.panels = planner.choose_panels(plan.windows_x);
  for (const Planner::Fragment& fragment :
       planner.cut_fragments(std::clamp<std::int64_t>(options.fragments, 1, plan.windows_y), plan.windows_y)) {
    ChainPlan chain{plan.strips.size(), 0};
    for (std::size_t panel = 0; panel < plan.panels.size(); ++panel) planner.cut_strips(plan, fragment, panel);
    chain.strips = plan.strips.size() - chain.first_strip;
    plan.chains.push_back(chain);
  }
  return plan;
}

}  // namespace slidestream
