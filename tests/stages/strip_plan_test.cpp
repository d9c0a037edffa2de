#include "stages/strip_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include <slidestream/error.hpp>

using namespace slidestream;

namespace {

Level make_level(std::int64_t width, std::int64_t height, std::int64_t tile_width, std::int64_t tile_height) {
  Level level;
  level.width = width;
  level.height = height;
  level.tile_width = tile_width;
  level.tile_height = tile_height;
  level.columns = (width + tile_width - 1) / tile_width;
  level.rows = (height + tile_height - 1) / tile_height;
  return level;
}

std::int64_t hundred_a_tile(const void*, std::int64_t, std::int64_t, std::int64_t columns) { return columns * 100; }

/// Everything that the stages rely on.
void check_plan(const Level& level, const AnalysisConfig& analysis, const SlotLimits& limits, const LevelPlan& plan) {
  std::int64_t next_window_column = 0;
  std::int64_t covered = 0;
  std::int64_t next_owned = 0;
  for (const PanelPlan& panel : plan.panels) {
    REQUIRE(panel.first_window_column == next_window_column);
    REQUIRE(panel.window_columns > 0);
    next_window_column += panel.window_columns;
    REQUIRE(panel.x0 <= covered);
    covered = panel.x1;
    // Smoothing's neighbours are there, or the image ends.
    const std::int64_t last = next_window_column - 1;
    REQUIRE(panel.x0 <=
            std::max<std::int64_t>(0, panel.first_window_column * analysis.stride - analysis.smoothing_radius));
    REQUIRE(panel.x1 >= std::min(level.width, last * analysis.stride + analysis.window + analysis.smoothing_radius));
    REQUIRE(panel.pitch >= panel.x1 - panel.x0);
    REQUIRE(panel.first_tile_column * level.tile_width <= panel.x0);
    REQUIRE((panel.first_tile_column + panel.tile_columns) * level.tile_width >= panel.x1);
    // Every tile column is owned once.
    REQUIRE(panel.first_owned_tile_column == next_owned);
    next_owned = std::max(next_owned, panel.first_tile_column + panel.tile_columns);
  }
  REQUIRE(next_window_column == plan.windows_x);
  REQUIRE(covered == level.width);
  REQUIRE(next_owned == level.columns);

  // Chains follow each other without a gap.
  std::size_t next_strip = 0;
  for (const ChainPlan& chain : plan.chains) {
    REQUIRE(chain.first_strip == next_strip);
    REQUIRE(chain.strips > 0);
    next_strip += chain.strips;
  }
  REQUIRE(next_strip == plan.strips.size());

  std::int64_t fragment_begin = 0;  // of windows
  std::int64_t rows_owned = 0;      // of tiles
  for (const ChainPlan& chain : plan.chains) {
    std::int64_t fragment_end = 0;
    std::int64_t last_tile_row = 0;
    std::size_t strip_index = chain.first_strip;
    for (std::size_t panel_index = 0; panel_index < plan.panels.size(); ++panel_index) {
      const PanelPlan& panel = plan.panels[panel_index];
      std::int64_t next_row = plan.strips[strip_index].y0;
      std::int64_t next_window_row = fragment_begin;
      std::int64_t carried_from = next_row;
      for (; strip_index < chain.first_strip + chain.strips && plan.strips[strip_index].panel == panel_index;
           ++strip_index) {
        const StripPlan& strip = plan.strips[strip_index];
        REQUIRE(strip.first_owned_tile_row == rows_owned);
        REQUIRE(strip.y0 == next_row);
        REQUIRE(strip.y0 == strip.first_tile_row * level.tile_height);
        REQUIRE(strip.y1 > strip.y0);
        next_row = strip.y1;
        last_tile_row = strip.first_tile_row + strip.tile_rows;
        REQUIRE(strip.carry_in_y0 == carried_from);
        REQUIRE(strip.carry_out_y0 >= strip.carry_in_y0);
        carried_from = strip.carry_out_y0;
        REQUIRE(strip.first_window_row == next_window_row);
        REQUIRE(strip.window_rows >= 0);
        next_window_row += strip.window_rows;
        if (strip.window_rows > 0) {
          const std::int64_t first = strip.first_window_row * analysis.stride - analysis.smoothing_radius;
          const std::int64_t last =
              (next_window_row - 1) * analysis.stride + analysis.window + analysis.smoothing_radius;
          REQUIRE(strip.carry_in_y0 <= std::max<std::int64_t>(0, first));
          REQUIRE(strip.y1 >= std::min(level.height, last));
        }
        REQUIRE(static_cast<std::size_t>((strip.y1 - strip.carry_out_y0) * panel.pitch) <= limits.carry_bytes);
        REQUIRE(static_cast<std::size_t>((strip.y1 - strip.carry_in_y0) * panel.pitch) <= limits.slot_bytes);
      }
      REQUIRE((panel_index == 0 || next_window_row == fragment_end));
      fragment_end = next_window_row;
    }
    REQUIRE(strip_index == chain.first_strip + chain.strips);
    // Every tile row is owned once.
    REQUIRE(plan.strips[chain.first_strip].first_tile_row <= rows_owned);
    rows_owned = std::max(rows_owned, last_tile_row);
    fragment_begin = fragment_end;
  }
  REQUIRE(fragment_begin == plan.windows_y);
  REQUIRE(rows_owned == level.rows);
}

}  // namespace

TEST_CASE("plans of random levels cover every row, tile and window once") {
  std::mt19937 random(7);
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 400; ++i) {
    AnalysisConfig analysis;
    analysis.window = 8 * in(1, 40);
    analysis.stride = in(1, 2 * analysis.window);
    analysis.smoothing_radius = in(0, 4);
    PipelineConfig pipeline;
    pipeline.strip_height = in(1, 600);
    pipeline.batch_strips = in(0, 3);
    const Level level =
        make_level(in(analysis.window, 3000), in(analysis.window, 3000), 16 * in(1, 20), 16 * in(1, 20));
    // Rooms from ample to so small that the level falls into panels.
    const auto carry = static_cast<std::size_t>(in(1, 8)) * static_cast<std::size_t>(analysis.window + 8) * 1024;
    const SlotLimits limits = slot_limits(carry);
    LevelPlan plan;
    try {
      plan = plan_level(level, analysis, pipeline, limits, hundred_a_tile, nullptr,
                        {.fragments = in(1, 6), .decoded_on_device = i % 3 == 0});
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("pipeline.memory_mib") != std::string::npos);
      continue;
    }
    CAPTURE(i);
    check_plan(level, analysis, limits, plan);
  }
}

TEST_CASE("a wide level falls into panels when slots are small, and into one when they are large") {
  const Level level = make_level(20000, 2000, 256, 256);
  const AnalysisConfig analysis;
  PipelineConfig pipeline;
  pipeline.queue_depth = 2;
  pipeline.memory_mib = 8;
  const LevelPlan narrow = plan_level(level, analysis, pipeline, slot_limits(pipeline), hundred_a_tile, nullptr);
  CHECK(narrow.panels.size() > 1);
  check_plan(level, analysis, slot_limits(pipeline), narrow);
  pipeline.memory_mib = 640;
  const LevelPlan wide = plan_level(level, analysis, pipeline, slot_limits(pipeline), hundred_a_tile, nullptr);
  CHECK(wide.panels.size() == 1);
}

TEST_CASE("the default memory takes a strip of a large slide whole") {
  const Level level = make_level(65664, 43264, 256, 256);
  const PipelineConfig pipeline;
  const auto compressed = [](const void*, std::int64_t, std::int64_t, std::int64_t columns) { return columns * 15000; };
  const LevelPlan plan = plan_level(level, {}, pipeline, slot_limits(pipeline), compressed, nullptr);
  CHECK(plan.windows_x * plan.windows_y == 172544);
  CHECK(plan.panels.size() == 1);
  CHECK(plan.strips.front().y1 == 1024);
}

TEST_CASE("slots and carry buffers together stay within the memory asked for") {
  for (const int depth : {1, 2, 4, 16, 64}) {
    PipelineConfig pipeline;
    pipeline.queue_depth = depth;
    const SlotLimits limits = slot_limits(pipeline);
    const std::size_t slots = static_cast<std::size_t>(depth);
    CHECK(slots * limits.slot_bytes + (slots + 1) * limits.carry_bytes <= std::size_t{640} << 20);
    CHECK(limits.slot_bytes > 0);
  }
}

TEST_CASE("a level smaller than a window is refused with its size") {
  CHECK_THROWS_WITH_AS(plan_level(make_level(255, 4000, 256, 256), {}, {}, slot_limits({}), hundred_a_tile, nullptr),
                       "the level has 255 x 4000 pixels, less than one window of 256 x 256", Error);
}

TEST_CASE("a tile that fits no slot names the key to turn") {
  const auto huge = [](const void*, std::int64_t, std::int64_t, std::int64_t) { return std::int64_t{1} << 40; };
  CHECK_THROWS_WITH_AS(plan_level(make_level(4000, 4000, 256, 256), {}, {}, slot_limits({}), huge, nullptr),
                       doctest::Contains("raise pipeline.memory_mib"), Error);
}
