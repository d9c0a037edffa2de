#include "planning/strip_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "operators/spectrum/spectrum_operator.hpp"

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

/// Columns of outputs whose pixels a panel must have, or rows a strip, along one axis of `size` pixels.
struct Reach {
  std::int64_t first;
  std::int64_t end;
};
Reach reach(const OutputRange& range, std::int64_t window, std::int64_t step, std::int64_t before, std::int64_t after,
            std::int64_t size) {
  return {std::max<std::int64_t>(0, range.first * step - before),
          std::min(size, (range.end() - 1) * step + window + after)};
}

/// Everything that the stages rely on.
void check_plan(const Level& level, const std::vector<OperatorNeeds>& operators, const SlotLimits& limits,
                const LevelPlan& plan) {
  REQUIRE(plan.outputs.size() == operators.size());
  std::vector<std::int64_t> next_column(operators.size());
  std::int64_t covered = 0;
  std::int64_t next_owned = 0;
  for (std::size_t i = 0; i < plan.panels.size(); ++i) {
    const PanelPlan& panel = plan.panels[i];
    REQUIRE(panel.x0 <= covered);
    covered = panel.x1;
    for (std::size_t k = 0; k < operators.size(); ++k) {
      const Footprint& op = operators[k].footprint;
      const OutputRange& columns = plan.columns(i, k);
      REQUIRE(columns.first == next_column[k]);
      REQUIRE(columns.count > 0);
      next_column[k] = columns.end();
      // What windows and halos reach is there, or the image ends.
      const Reach needed = reach(columns, op.window.width, op.step.width, op.halo.left, op.halo.right, level.width);
      REQUIRE(panel.x0 <= needed.first);
      REQUIRE(panel.x1 >= needed.end);
    }
    for (const OperatorNeeds& op : operators) {
      const auto pixel_bytes = static_cast<std::ptrdiff_t>(plane_formats[op.plane].pixel_bytes());
      REQUIRE(panel.pitch[op.plane] >= (panel.x1 - panel.x0) * pixel_bytes);
    }
    REQUIRE(panel.first_tile_column * level.tile_width <= panel.x0);
    REQUIRE((panel.first_tile_column + panel.tile_columns) * level.tile_width >= panel.x1);
    // Every tile column is owned once.
    REQUIRE(panel.first_owned_tile_column == next_owned);
    next_owned = std::max(next_owned, panel.first_tile_column + panel.tile_columns);
  }
  for (std::size_t k = 0; k < operators.size(); ++k) REQUIRE(next_column[k] == plan.outputs[k].width);
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

  std::vector<std::int64_t> fragment_begin(operators.size());  // of outputs
  std::int64_t rows_owned = 0;                                 // of tiles
  for (const ChainPlan& chain : plan.chains) {
    std::vector<std::int64_t> fragment_end;
    std::int64_t last_tile_row = 0;
    std::size_t strip_index = chain.first_strip;
    for (std::size_t panel_index = 0; panel_index < plan.panels.size(); ++panel_index) {
      const PanelPlan& panel = plan.panels[panel_index];
      std::int64_t next_row = plan.strips[strip_index].y0;
      std::vector<std::int64_t> next_output = fragment_begin;
      ByPlane<std::int64_t> carried_from;
      carried_from.fill(next_row);
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
        for (std::size_t plane = 0; plane < plane_count; ++plane) {
          REQUIRE(strip.carry_out_y0[plane] >= strip.carry_in_y0[plane]);
          REQUIRE(strip.carry_out_y0[plane] <= strip.y1);
        }
        carried_from = strip.carry_out_y0;
        for (std::size_t k = 0; k < operators.size(); ++k) {
          const Footprint& op = operators[k].footprint;
          const OutputRange& rows = plan.rows(strip_index, k);
          REQUIRE(rows.first == next_output[k]);
          REQUIRE(rows.count >= 0);
          next_output[k] = rows.end();
          if (rows.count == 0) continue;
          const Reach needed = reach(rows, op.window.height, op.step.height, op.halo.top, op.halo.bottom, level.height);
          REQUIRE(strip.carry_in_y0[operators[k].plane] <= needed.first);
          REQUIRE(strip.y1 >= needed.end);
        }
        std::size_t carried = 0;
        std::size_t all = 0;
        for (std::size_t plane = 0; plane < plane_count; ++plane) {
          carried += static_cast<std::size_t>((strip.y1 - strip.carry_out_y0[plane]) * panel.pitch[plane]);
          all += static_cast<std::size_t>((strip.y1 - strip.carry_in_y0[plane]) * panel.pitch[plane]);
        }
        REQUIRE(carried <= limits.carry_bytes);
        REQUIRE(all <= limits.slot_bytes);
        std::size_t images = 0;
        for (std::size_t k = 0; k < operators.size(); ++k) {
          const std::int64_t bytes = operators[k].image_bytes;
          if (bytes > 0)
            images += static_cast<std::size_t>(plan.rows(strip_index, k).count * image_pitch(level.width, bytes));
        }
        REQUIRE(images <= limits.output_bytes);
      }
      REQUIRE((panel_index == 0 || next_output == fragment_end));
      fragment_end = next_output;
    }
    REQUIRE(strip_index == chain.first_strip + chain.strips);
    // Every tile row is owned once.
    REQUIRE(plan.strips[chain.first_strip].first_tile_row <= rows_owned);
    rows_owned = std::max(rows_owned, last_tile_row);
    fragment_begin = fragment_end;
  }
  for (std::size_t k = 0; k < operators.size(); ++k) REQUIRE(fragment_begin[k] == plan.outputs[k].height);
  REQUIRE(rows_owned == level.rows);
}

/// The spectrum's alone.
const std::vector<OperatorNeeds> windows = {{operators::SpectrumOperator({}).footprint()}};

}  // namespace

TEST_CASE("plans of random levels for one to three operators cover every row, tile and output once") {
  std::mt19937 random(7);
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 400; ++i) {
    std::vector<OperatorNeeds> operators(static_cast<std::size_t>(in(1, 3)));
    Size largest;
    bool any_image = false;
    for (OperatorNeeds& needs : operators) {
      Footprint& op = needs.footprint;
      needs.plane = in(0, 1) == 0 ? luminance_plane : rgb_plane;
      // Windows of an image are single pixels.
      const bool pixels = in(0, 2) == 0;
      if (pixels && i % 2 == 0) needs.image_bytes = in(1, 4);
      any_image |= needs.image_bytes > 0;
      if (!pixels) {
        op.window = {8 * in(1, 40), 8 * in(1, 40)};
        op.step = {in(1, 2 * static_cast<int>(op.window.width)), in(1, 2 * static_cast<int>(op.window.height))};
      }
      op.halo = {in(0, 4), in(0, 4), in(0, 4), in(0, 4)};
      largest = {std::max(largest.width, op.window.width), std::max(largest.height, op.window.height)};
    }
    PipelineConfig pipeline;
    pipeline.strip_height = in(1, 600);
    pipeline.batch_strips = in(0, 3);
    const Level level = make_level(in(static_cast<int>(largest.width), 3000),
                                   in(static_cast<int>(largest.height), 3000), 16 * in(1, 20), 16 * in(1, 20));
    // Rooms from ample to so small that the level falls into panels.
    const auto carry = static_cast<std::size_t>(in(1, 8)) * static_cast<std::size_t>(largest.height + 8) * 1024;
    pipeline.memory_mib = in(1, 40);
    pipeline.queue_depth = in(1, 5);
    const SlotLimits limits = any_image ? slot_limits(pipeline, operators) : slot_limits(carry);
    LevelPlan plan;
    try {
      plan = plan_level(level, operators, pipeline, limits, hundred_a_tile, nullptr,
                        {.fragments = in(1, 6), .decoded_on_device = i % 3 == 0});
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("pipeline.memory_mib") != std::string::npos);
      continue;
    }
    CAPTURE(i);
    check_plan(level, operators, limits, plan);
    if (any_image) {
      CHECK(plan.panels.size() == 1);
      CHECK(plan.chains.size() == 1);
    }
  }
}

TEST_CASE("the memory that a row of tiles of full width is said to need is enough, and not much more") {
  const std::vector<OperatorNeeds> image = {{{}, rgb_plane, 3}, {{{1, 1}, {1, 1}, {1, 1, 1, 1}}, luminance_plane, 4}};
  const Level level = make_level(100000, 3000, 512, 512);
  PipelineConfig pipeline;
  pipeline.memory_mib = 100;
  const auto plan = [&] {
    return plan_level(level, image, pipeline, slot_limits(pipeline, image), hundred_a_tile, nullptr);
  };
  std::string message;
  try {
    plan();
  } catch (const Error& error) {
    message = error.what();
  }
  const std::string key = "pipeline.memory_mib to ";
  REQUIRE(message.find(key) != std::string::npos);
  const int wanted = std::stoi(message.substr(message.find(key) + key.size()));
  pipeline.memory_mib = wanted;
  check_plan(level, image, slot_limits(pipeline, image), plan());
  pipeline.memory_mib = wanted * 97 / 100;
  CHECK_THROWS_AS(plan(), Error);
}

TEST_CASE("the default memory takes spectrum, stain and Sobel of a large slide") {
  const std::vector<OperatorNeeds> all = {
      windows.front(), {{}, rgb_plane, 3}, {{{1, 1}, {1, 1}, {1, 1, 1, 1}}, luminance_plane, 1}};
  const Level level = make_level(65664, 43264, 256, 256);
  const auto compressed = [](const void*, std::int64_t, std::int64_t, std::int64_t columns) { return columns * 15000; };
  const PipelineConfig pipeline;
  check_plan(level, all, slot_limits(pipeline, all),
             plan_level(level, all, pipeline, slot_limits(pipeline, all), compressed, nullptr));
}

TEST_CASE("in a long run whole slides go to a device in one batch, and always where that is asked for") {
  const Level level = make_level(65664, 43264, 256, 256);
  const auto compressed = [](const void*, std::int64_t, std::int64_t, std::int64_t columns) { return columns * 10000; };
  SlotLimits limits;
  limits.slot_bytes = std::size_t{1} << 30;
  limits.fits = [](const BatchNeeds& needs) { return needs.compressed_bytes <= 1 << 30; };
  PipelineConfig pipeline;
  const auto batches = [&](std::size_t index, std::size_t slides, std::int64_t fragments = 1) {
    return plan_level(level, windows, pipeline, limits, compressed, nullptr,
                      {fragments, true, batch_pixels_of(index, slides, 2)})
        .strips.size();
  };
  for (const std::size_t index : {0, 7, 198, 199}) CHECK(batches(index, 200) == 3);
  for (const std::size_t index : {8, 20, 197}) CHECK(batches(index, 200) == 1);
  CHECK(batches(0, 1) == 3);
  CHECK(batches(16, 32) == 3);
  CHECK(batches(16, 33) == 1);
  // Fragments come in smaller batches: one is decoded while the next one is read.
  CHECK(batches(0, 1, 2) == 12);
  CHECK(batches(20, 200, 4) == 12);
  for (std::size_t slides = 0; slides < 200; ++slides) {
    std::int64_t most = device_batch_pixels;
    for (std::size_t i = 0; i < slides; ++i) most = std::max(most, batch_pixels_of(i, slides, 2));
    CHECK(most_batch_pixels(slides, 2) == most);
  }

  pipeline.strip_height = 1024;
  pipeline.batch_strips = 8;
  CHECK(batches(20, 200) == 6);
  pipeline.residency = Residency::whole;
  CHECK(batches(0, 1, 4) == 1);
  // More than a slot holds.
  limits.fits = [](const BatchNeeds& needs) { return needs.compressed_bytes <= 400 << 20; };
  try {
    batches(0, 1);
    FAIL("it fitted");
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find("pipeline.residency = \"whole\": the level's 65664 x 43264 pixels, from 415 MiB") == 0);
    CHECK(message.find("pipeline.memory_mib") != std::string::npos);
  }
}

TEST_CASE("a wide level falls into panels when slots are small, and into one when they are large") {
  const Level level = make_level(20000, 2000, 256, 256);
  const std::vector<OperatorNeeds>& operators = windows;
  PipelineConfig pipeline;
  pipeline.queue_depth = 2;
  pipeline.memory_mib = 8;
  const LevelPlan narrow =
      plan_level(level, operators, pipeline, slot_limits(pipeline, windows), hundred_a_tile, nullptr);
  CHECK(narrow.panels.size() > 1);
  check_plan(level, operators, slot_limits(pipeline, windows), narrow);
  pipeline.memory_mib = 640;
  const LevelPlan wide =
      plan_level(level, operators, pipeline, slot_limits(pipeline, windows), hundred_a_tile, nullptr);
  CHECK(wide.panels.size() == 1);
}

TEST_CASE("the default memory takes a strip of a large slide whole") {
  const Level level = make_level(65664, 43264, 256, 256);
  const PipelineConfig pipeline;
  const auto compressed = [](const void*, std::int64_t, std::int64_t, std::int64_t columns) { return columns * 15000; };
  const LevelPlan plan = plan_level(level, windows, pipeline, slot_limits(pipeline, windows), compressed, nullptr);
  CHECK(plan.outputs[0].width * plan.outputs[0].height == 172544);
  CHECK(plan.panels.size() == 1);
  CHECK(plan.strips.front().y1 == 1024);
}

TEST_CASE("slots and carry buffers together stay within the memory asked for") {
  for (const int depth : {1, 2, 4, 16, 64}) {
    PipelineConfig pipeline;
    pipeline.queue_depth = depth;
    const SlotLimits limits = slot_limits(pipeline, windows);
    const std::size_t slots = static_cast<std::size_t>(depth);
    CHECK(slots * limits.slot_bytes + (slots + 1) * limits.carry_bytes <= std::size_t{640} << 20);
    CHECK(limits.slot_bytes > 0);
    const std::vector<OperatorNeeds> images = {windows.front(), {{}, rgb_plane, 3}, {{}, luminance_plane, 4}};
    const SlotLimits with_images = slot_limits(pipeline, images);
    CHECK(slots * with_images.slot_bytes + (slots + 1) * with_images.carry_bytes +
              with_images.output_slots * with_images.output_bytes <=
          std::size_t{640} << 20);
    CHECK(with_images.output_slots >= 2);
  }
}

TEST_CASE("a level smaller than a window is refused with its size") {
  CHECK_THROWS_WITH_AS(plan_level(make_level(255, 4000, 256, 256), windows, {}, slot_limits(PipelineConfig{}, windows),
                                  hundred_a_tile, nullptr),
                       "the level has 255 x 4000 pixels, less than one window of 256 x 256", Error);
}

TEST_CASE("a tile that fits no slot names the key to turn") {
  const auto huge = [](const void*, std::int64_t, std::int64_t, std::int64_t) { return std::int64_t{1} << 40; };
  CHECK_THROWS_WITH_AS(
      plan_level(make_level(4000, 4000, 256, 256), windows, {}, slot_limits(PipelineConfig{}, windows), huge, nullptr),
      doctest::Contains("raise pipeline.memory_mib"), Error);
}

TEST_CASE("the memory that is advised is enough at the first try") {
  const std::vector<OperatorNeeds> images = {{{}, rgb_plane, 3}};
  int advised = 0;
  for (const int depth : {1, 4, 64, 1024}) {
    for (const int memory_mib : {64, 100, 640}) {
      for (const std::int64_t tile : {512, 4096}) {
        for (const std::int64_t width : {4000, 65000, 300000}) {
          INFO("depth ", depth, ", ", memory_mib, " MiB, tiles of ", tile, ", width ", width);
          const Level level = make_level(width, 9000, tile, tile);
          PipelineConfig pipeline;
          pipeline.queue_depth = depth;
          pipeline.memory_mib = memory_mib;
          const auto plan = [&] {
            plan_level(level, images, pipeline, slot_limits(pipeline, images), hundred_a_tile, nullptr);
          };
          try {
            plan();
          } catch (const RoomError& error) {
            CHECK(std::string(error.what())
                      .find("raise pipeline.memory_mib to " + std::to_string(error.memory_mib()) + " or") !=
                  std::string::npos);
            REQUIRE(error.memory_mib() > memory_mib);
            pipeline.memory_mib = static_cast<int>(error.memory_mib());
            CHECK_NOTHROW(plan());
            ++advised;
          }
        }
      }
    }
  }
  CHECK(advised > 12);
}
