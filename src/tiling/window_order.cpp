#include "tiling/window_order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <slidestream/error.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "slide/file.hpp"

namespace slidestream {

namespace {

/// A window's corner on the resolution's grid. \throws SlideError for one outside of the image
WindowCorner on_resolution(const SlideInfo& info, const Resolution& resolution, const WindowCorner& corner,
                           std::size_t index) {
  const Level& level = info.levels[resolution.level];
  const Level& finest = info.levels.front();
  const Size image = resolution.size_of(level);
  if (corner.x < 0 || corner.y < 0 || corner.x >= finest.width || corner.y >= finest.height) {
    throw_slide_error(info.path, "position " + std::to_string(index) + " is (" + std::to_string(corner.x) + ", " +
                                     std::to_string(corner.y) + "); expected one inside of " +
                                     std::to_string(finest.width) + " x " + std::to_string(finest.height) +
                                     " pixels of level 0");
  }
  // Rounding may lead to the pixel behind the last one.
  return {std::min(on_grid(corner.x, info.downsample_x(resolution.level), resolution), image.width - 1),
          std::min(on_grid(corner.y, info.downsample_y(resolution.level), resolution), image.height - 1)};
}

/// The pixel of level 0 at which a pixel of a resolution begins.
WindowCorner corner_on_finest(const SlideInfo& info, const Resolution& resolution, const WindowCorner& at) {
  return {to_finest(at.x, info.downsample_x(resolution.level), resolution.reduction()),
          to_finest(at.y, info.downsample_y(resolution.level), resolution.reduction())};
}

}  // namespace

std::uint64_t Shuffler::next() noexcept {
  std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

std::size_t Shuffler::below(std::size_t bound) noexcept {
  // Values from `limit` on would make the small results more frequent.
  const std::uint64_t range = bound;
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / range * range;
  std::uint64_t drawn = next();
  while (drawn >= limit) drawn = next();
  return drawn % range;
}

void OpeningWarnings::add(const std::filesystem::path& slide, const std::vector<std::string>& warnings) {
  // A child forked while a thread is in here can't take warnings: most slides have none.
  if (warnings.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const std::string& warning : warnings) {
    std::string line = slide.string() + ": " + warning;
    if (told_.insert(line).second) waiting_.push_back(std::move(line));
  }
}

std::vector<std::string> OpeningWarnings::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

WindowOrder::WindowOrder(const TileStreamOptions& options, std::int64_t chunk)
    : options_(options), chunk_(chunk), slides_(options.slides.size()) {
  std::iota(slides_.begin(), slides_.end(), 0);
  if (options_.shuffle) Shuffler{*options_.shuffle}(slides_);
}

WindowOrder::Planned WindowOrder::plan(std::int32_t place) const {
  Planned planned;
  planned.place = place;
  const auto index = static_cast<std::size_t>(place);
  planned.slide = Slide::open(options_.slides[index], options_.open);
  const SlideInfo& info = planned.slide->info();
  if (options_.warnings != nullptr) options_.warnings->add(info.path, info.warnings);
  WindowRequest request = options_.windows;
  // The shuffled windows of a group are shared out, and the listed ones.
  if (!is_grid()) request.shard = 0, request.shards = 1;
  if (options_.corners.empty()) {
    planned.plan = plan_windows(*planned.slide, request);
    if (options_.warnings != nullptr) options_.warnings->add(info.path, planned.plan.doubts);
    return planned;
  }
  planned.plan.resolution = choose_resolution(info, request);
  const Size image = planned.plan.resolution.size_of(info.levels[planned.plan.resolution.level]);
  const std::vector<WindowCorner>& corners = options_.corners[index];
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const WindowCorner at = on_resolution(info, planned.plan.resolution, corners[i], i);
    const bool is_inside = at.x + request.size.width <= image.width && at.y + request.size.height <= image.height;
    if (is_inside || request.edge == WindowEdge::pad) planned.listed.push_back(i);
  }
  return planned;
}

void WindowOrder::begin_group() {
  const std::size_t together = options_.shuffle ? slides_shuffled_together : 1;
  group_.clear();
  order_.clear();
  next_in_order_ = 0;
  while (next_slide_ < slides_.size() && group_.size() < together) {
    group_.push_back(plan(slides_[next_slide_]));
    ++next_slide_;
  }
  for (std::size_t i = 0; i < group_.size(); ++i) {
    const std::size_t windows = options_.corners.empty() ? group_[i].plan.columns.size() : group_[i].listed.size();
    if (windows > std::numeric_limits<std::uint32_t>::max()) {
      throw_slide_error(group_[i].slide->info().path, "has more than 2^32 windows");
    }
    for (std::size_t window = 0; window < windows; ++window) {
      order_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(window)});
    }
  }
  shuffle_and_cut();
}

/// Shuffles, and keeps the windows of this shard: of a list a piece, of shuffled windows every n-th.
void WindowOrder::shuffle_and_cut() {
  const auto shard = static_cast<std::size_t>(options_.windows.shard);
  const auto shards = static_cast<std::size_t>(options_.windows.shards);
  if (!options_.shuffle) {
    const std::size_t n = order_.size();
    const auto piece = [&](std::size_t i) { return n / shards * i + n % shards * i / shards; };
    order_ = {order_.begin() + static_cast<std::ptrdiff_t>(piece(shard)),
              order_.begin() + static_cast<std::ptrdiff_t>(piece(shard + 1))};
    return;
  }
  // Each group has a generator of its own: it depends on the first slide's place in the order alone.
  Shuffler{*options_.shuffle + 0x632be59bd9b4e019U * next_slide_}(order_);
  std::size_t kept = 0;
  for (std::size_t i = shard; i < order_.size(); i += shards) order_[kept++] = order_[i];
  order_.resize(kept);
}

WindowSegment WindowOrder::segment(std::size_t slide, const std::vector<std::size_t>& windows) const {
  const Planned& of = group_[slide];
  const SlideInfo& info = of.slide->info();
  struct Placed {
    WindowCorner at;      ///< pixels of the resolution
    WindowCorner finest;  ///< pixels of level 0
    std::int64_t number = 0;
  };
  std::vector<Placed> placed;
  placed.reserve(windows.size());
  for (const std::size_t in_order : windows) {
    const std::size_t window = order_[in_order].window;
    Placed one;
    one.number = next_number_ + static_cast<std::int64_t>(in_order - next_in_order_);
    if (options_.corners.empty()) {
      const auto row = std::ranges::upper_bound(of.plan.rows, window, {}, &WindowRow::first) - 1;
      one.at = {of.plan.columns[window], row->y};
      one.finest = corner_on_finest(info, of.plan.resolution, one.at);
    } else {
      const std::size_t index = of.listed[window];
      one.finest = options_.corners[static_cast<std::size_t>(of.place)][index];
      one.at = on_resolution(info, of.plan.resolution, one.finest, index);
    }
    placed.push_back(one);
  }
  std::ranges::sort(placed, {}, [](const Placed& one) { return std::tuple(one.at.y, one.at.x, one.number); });
  WindowSegment segment;
  segment.place = of.place;
  segment.slide = of.slide;
  segment.is_scattered = true;
  segment.plan.resolution = of.plan.resolution;
  for (const Placed& one : placed) {
    std::vector<WindowRow>& rows = segment.plan.rows;
    if (rows.empty() || rows.back().y != one.at.y) rows.push_back({one.at.y, segment.numbers.size(), 0});
    ++rows.back().count;
    segment.plan.columns.push_back(one.at.x);
    segment.numbers.push_back(one.number);
    segment.corners.push_back(one.finest);
  }
  return segment;
}

void WindowOrder::make_chunk() {
  const std::size_t end = std::min(order_.size(), next_in_order_ + static_cast<std::size_t>(chunk_));
  std::vector<std::vector<std::size_t>> windows(group_.size());
  for (std::size_t i = next_in_order_; i < end; ++i) windows[order_[i].slide].push_back(i);
  const std::int64_t last = next_number_ + static_cast<std::int64_t>(end - next_in_order_);
  for (std::size_t slide = 0; slide < group_.size(); ++slide) {
    if (windows[slide].empty()) continue;
    made_.push_back(segment(slide, windows[slide]));
    made_.back().first = next_number_;
    made_.back().last = last;
  }
  next_number_ = last;
  next_in_order_ = end;
}

std::optional<WindowSegment> WindowOrder::next() {
  if (is_grid()) {
    if (next_slide_ == slides_.size()) return std::nullopt;
    Planned planned = plan(slides_[next_slide_]);
    ++next_slide_;
    WindowSegment segment;
    segment.place = planned.place;
    segment.slide = std::move(planned.slide);
    segment.plan = std::move(planned.plan);
    for (const WindowRow& row : segment.plan.rows) {
      for (std::size_t i = row.first; i < row.first + row.count; ++i) {
        segment.corners.push_back(
            corner_on_finest(segment.slide->info(), segment.plan.resolution, {segment.plan.columns[i], row.y}));
      }
    }
    segment.first = next_number_;
    segment.last = next_number_ += std::ssize(segment.plan.columns);
    return segment;
  }
  while (made_.empty()) {
    if (next_in_order_ < order_.size()) {
      make_chunk();
    } else if (next_slide_ < slides_.size()) {
      begin_group();
    } else {
      return std::nullopt;
    }
  }
  WindowSegment segment = std::move(made_.front());
  made_.pop_front();
  return segment;
}

std::int64_t WindowOrder::count() {
  std::int64_t count = 0;
  while (next_slide_ < slides_.size()) {
    if (is_grid()) {
      count += std::ssize(plan(slides_[next_slide_++]).plan.columns);
    } else {
      begin_group();
      count += std::ssize(order_);
    }
  }
  return count;
}

}  // namespace slidestream
