#include "tiling/window_plan.hpp"

#include <algorithm>
#include <cmath>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <string>

#include "image/mask.hpp"
#include "operators/tissue/preparation.hpp"
#include "slide/file.hpp"

namespace slidestream {

namespace {

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

Size Resolution::size_of(const Level& of_level) const {
  const Size whole = {of_level.width, of_level.height};
  return is_level() ? whole : AreaResampler::size_of(whole, factor);
}

Resolution choose_resolution(const SlideInfo& info, std::int64_t level, const std::optional<double>& mpp,
                             const std::string& remedy) {
  if (!mpp) {
    if (level < 0 || level >= std::ssize(info.levels)) {
      throw_slide_error(info.path, "has no level " + std::to_string(level) + "; its levels are 0 to " +
                                       std::to_string(info.levels.size() - 1));
    }
    return {static_cast<std::size_t>(level)};
  }
  if (!info.mpp) throw_slide_error(info.path, "doesn't say its pixel size: " + remedy + ", or ask for a level");
  info.require_square_pixels("mpp", remedy + ", or ask for a level");
  const std::size_t from = area_level(info.levels, *info.mpp, *mpp);
  Resolution found = {from};
  try {
    found.factor = area_factor(*mpp, *info.mpp * info.levels[from].downsample);
  } catch (const Error& error) {
    throw_slide_error(info.path, error.what());
  }
  if (!found.is_level()) info.require_no_labels("pixels of another size are means of several");
  return found;
}

Resolution choose_resolution(const SlideInfo& info, const WindowRequest& request) {
  return choose_resolution(info, request.level, request.mpp, "set slide_mpp");
}

WindowPlan on_level(const WindowPlan& plan) {
  WindowPlan source = plan;
  if (plan.resolution.is_level()) return source;
  const auto first = [&](std::int64_t at) {
    return AreaResampler::source_of({at, at, 1, 1}, plan.resolution.factor).x;
  };
  for (WindowRow& row : source.rows) row.y = first(row.y);
  for (std::int64_t& column : source.columns) column = first(column);
  return source;
}

Size size_on_level(const Resolution& resolution, const Size& window) {
  if (resolution.is_level()) return window;
  const Rect source = AreaResampler::source_of({0, 0, window.width, window.height}, resolution.factor);
  // Those that begin inside a pixel of the level reach into one more.
  const std::int64_t more = resolution.factor % 65536 == 0 ? 0 : 1;
  return {source.width + more, source.height + more};
}

std::int64_t on_grid(std::int64_t at, double downsample, const Resolution& resolution) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(at) / downsample / resolution.reduction() + 0.5));
}

WindowPlan plan_windows(const Slide& slide, const WindowRequest& request) {
  const SlideInfo& info = slide.info();
  WindowPlan plan;
  plan.resolution = choose_resolution(info, request);
  const Level& level = info.levels[plan.resolution.level];
  const Size whole = plan.resolution.size_of(level);
  std::optional<MaskTable> tissue;
  if (request.tissue) {
    Config config;
    config.decode.on_bad_tile = request.on_bad_tile;
    const SlideContext context = {slide, plan.resolution.level, info.path, info.mean_mpp()};
    const auto mask = operators::prepare_mask(context, config);
    plan.doubts = operators::doubts_of_tissue(*mask, context, "set slide_mpp");
    tissue.emplace(*mask);
  }
  const double pixel = plan.resolution.reduction();
  const GridScale scale = {pixel * info.downsample_x(plan.resolution.level),
                           pixel * info.downsample_y(plan.resolution.level)};
  const std::int64_t across = windows_along(whole.width, request.size.width, request.step.width, request.edge);
  const std::int64_t down = windows_along(whole.height, request.size.height, request.step.height, request.edge);
  for (std::int64_t j = 0; j < down; ++j) {
    WindowRow row = {j * request.step.height, plan.columns.size(), 0};
    for (std::int64_t i = 0; i < across; ++i) {
      const std::int64_t x = i * request.step.width;
      const Rect window = {x, row.y, std::min(request.size.width, whole.width - x),
                           std::min(request.size.height, whole.height - row.y)};
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
