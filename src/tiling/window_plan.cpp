#include "tiling/window_plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "image/mask.hpp"
#include "operators/tissue/preparation.hpp"
#include "slide/file.hpp"

namespace slidestream {

namespace {

std::string short_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  return error == std::errc() ? std::string(text, end) : "?";
}

/// Begins of windows along an axis.
std::int64_t windows_along(std::int64_t length, std::int64_t size, std::int64_t step, WindowEdge edge) {
  if (edge == WindowEdge::pad) return (length + step - 1) / step;
  return length < size ? 0 : (length - size) / step + 1;
}

/// Leaves the windows [first, last) of all.
void keep_piece(WindowPlan& plan, std::size_t first, std::size_t last) {
  std::vector<WindowRow> rows;
  for (const WindowRow& row : plan.rows) {
    const std::size_t begin = std::max(row.first, first);
    const std::size_t end = std::min(row.first + row.count, last);
    if (begin < end) rows.push_back({row.y, begin - first, end - begin});
  }
  plan.rows = std::move(rows);
  plan.columns = {plan.columns.begin() + static_cast<std::ptrdiff_t>(first),
                  plan.columns.begin() + static_cast<std::ptrdiff_t>(last)};
}

}  // namespace

std::size_t choose_level(const SlideInfo& info, const WindowRequest& request) {
  if (!request.mpp) {
    if (request.level < 0 || static_cast<std::size_t>(request.level) >= info.levels.size()) {
      throw_slide_error(info.path, "has no level " + std::to_string(request.level) + "; its levels are 0 to " +
                                       std::to_string(info.levels.size() - 1));
    }
    return static_cast<std::size_t>(request.level);
  }
  if (!info.mpp) throw_slide_error(info.path, "doesn't say its pixel size: ask for a level in place of mpp");
  std::string known;
  for (std::size_t i = 0; i < info.levels.size(); ++i) {
    const double mpp = *info.mpp * info.levels[i].downsample;
    if (std::abs(mpp / *request.mpp - 1.0) <= 0.02) return i;
    known += (known.empty() ? "" : ", ") + short_text(mpp);
  }
  throw_slide_error(info.path,
                    "has no level of " + short_text(*request.mpp) + " um a pixel within 2 %; its levels have " + known);
}

WindowPlan plan_windows(const Slide& slide, const WindowRequest& request) {
  const SlideInfo& info = slide.info();
  WindowPlan plan;
  plan.level = choose_level(info, request);
  const Level& level = info.levels[plan.level];
  std::optional<MaskTable> tissue;
  if (request.tissue) {
    Config config;
    config.decode.on_bad_tile = request.on_bad_tile;
    tissue.emplace(*operators::prepare_mask({slide, plan.level, info.path, info.mpp}, config));
  }
  const Level& finest = info.levels.front();
  const GridScale scale = {static_cast<double>(finest.width) / static_cast<double>(level.width),
                           static_cast<double>(finest.height) / static_cast<double>(level.height)};
  const std::int64_t across = windows_along(level.width, request.size.width, request.step.width, request.edge);
  const std::int64_t down = windows_along(level.height, request.size.height, request.step.height, request.edge);
  for (std::int64_t j = 0; j < down; ++j) {
    WindowRow row = {j * request.step.height, plan.columns.size(), 0};
    for (std::int64_t i = 0; i < across; ++i) {
      const std::int64_t x = i * request.step.width;
      const Rect window = {x, row.y, std::min(request.size.width, level.width - x),
                           std::min(request.size.height, level.height - row.y)};
      if (tissue && !tissue->is_tissue(window, scale, request.tissue_share)) continue;
      plan.columns.push_back(x);
    }
    row.count = plan.columns.size() - row.first;
    if (row.count > 0) plan.rows.push_back(row);
  }
  if (request.shards > 1) {
    const auto piece = [&](int shard) {
      return plan.columns.size() / request.shards * shard +
             plan.columns.size() % request.shards * shard / request.shards;
    };
    keep_piece(plan, piece(request.shard), piece(request.shard + 1));
  }
  return plan;
}

}  // namespace slidestream
