#include "operators/tissue/simplify.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace slidestream::operators {
namespace {

/// Below this nothing of a staircase of mask pixels is left out.
constexpr double least_tolerance = 0.25;
/// Side of the cells that segments are sorted into, mask pixels.
constexpr std::int64_t cell_side = 16;

std::int64_t key_of(std::int64_t x, std::int64_t y) { return y * (std::int64_t{1} << 32) + x; }

/// Twice the area of the triangle, above 0 where `c` lies at the right hand of the way from `a` to `b` (y downwards).
std::int64_t cross(const Corner& a, const Corner& b, const Corner& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

std::int64_t dot(const Corner& from, const Corner& a, const Corner& b) {
  return (a.x - from.x) * (b.x - from.x) + (a.y - from.y) * (b.y - from.y);
}

double squared_distance(const Corner& point, const Corner& a, const Corner& b) {
  const std::int64_t length = dot(a, b, b);
  const std::int64_t along = dot(a, b, point);
  if (along <= 0) return static_cast<double>(dot(point, a, a));
  if (along >= length) return static_cast<double>(dot(point, b, b));
  const auto across = static_cast<double>(cross(a, b, point));
  return across * across / static_cast<double>(length);
}

/// A ring's edges by the rows that they cross, so that a look at a point asks only those of its row.
class RingRows {
 public:
  explicit RingRows(const Ring& ring) {
    const auto [top, bottom] = std::ranges::minmax(ring, {}, &Corner::y);
    top_ = top.y;
    rows_.resize(static_cast<std::size_t>(bottom.y - top.y + 1));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      Edge edge{ring[i], ring[(i + 1) % ring.size()]};
      corners_.insert(key_of(edge.a.x, edge.a.y));
      if (edge.a.y > edge.b.y) std::swap(edge.a, edge.b);
      for (std::int64_t y = edge.a.y; y < edge.b.y; ++y) rows_[static_cast<std::size_t>(y - top_)].push_back(edge);
    }
  }

  /// Whether the ring doesn't have the point as a corner, and the point doesn't lie inside of it.
  bool has_outside(const Corner& point) const {
    if (corners_.contains(key_of(point.x, point.y))) return false;
    if (point.y < top_ || point.y - top_ >= static_cast<std::int64_t>(rows_.size())) return true;
    bool is_inside = false;
    for (const Edge& edge : rows_[static_cast<std::size_t>(point.y - top_)]) {
      is_inside = is_inside != (cross(edge.a, edge.b, point) > 0);
    }
    return !is_inside;
  }

 private:
  struct Edge {
    Corner a;  ///< the upper one
    Corner b;
  };
  std::int64_t top_ = 0;
  std::vector<std::vector<Edge>> rows_;
  std::unordered_set<std::int64_t> corners_;
};

struct Segment {
  Corner a;
  Corner b;
  std::size_t ring = 0;
};

bool on_segment(const Corner& point, const Segment& segment) {
  return cross(segment.a, segment.b, point) == 0 && dot(point, segment.a, segment.b) <= 0;
}

/// Whether two segments have more in common than an end of both.
bool conflict(const Segment& s, const Segment& t) {
  for (const auto& [from, s_end] : {std::pair(s.a, s.b), {s.b, s.a}}) {
    for (const auto& [other, t_end] : {std::pair(t.a, t.b), {t.b, t.a}}) {
      if (from == other) return cross(from, s_end, t_end) == 0 && dot(from, s_end, t_end) > 0;
    }
  }
  if (on_segment(s.a, t) || on_segment(s.b, t) || on_segment(t.a, s) || on_segment(t.b, s)) return true;
  const auto opposite = [](std::int64_t a, std::int64_t b) { return (a < 0 && b > 0) || (a > 0 && b < 0); };
  return opposite(cross(s.a, s.b, t.a), cross(s.a, s.b, t.b)) && opposite(cross(t.a, t.b, s.a), cross(t.a, t.b, s.b));
}

/// One ring on its way to fewer corners.
struct Work {
  Ring* target = nullptr;
  Ring exact;
  std::vector<bool> kept;  ///< corners of `exact` that must stay
  double tolerance = 0.0;

  void simplify() { *target = tolerance < least_tolerance ? exact : simplified(); }

 private:
  Ring simplified() const {
    std::vector<bool> stays = kept;
    std::vector<std::size_t> anchors;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (stays[i]) anchors.push_back(i);
    }
    if (anchors.empty()) anchors.push_back(0);
    if (anchors.size() == 1) {
      const Corner& first = exact[anchors.front()];
      const auto farthest =
          std::ranges::max_element(exact, {}, [&first](const Corner& corner) { return dot(first, corner, corner); });
      anchors.push_back(static_cast<std::size_t>(farthest - exact.begin()));
    }
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      stays[anchors[i]] = true;
      const std::size_t end = anchors[(i + 1) % anchors.size()];
      choose(stays, anchors[i], end > anchors[i] ? end : end + exact.size());
    }
    Ring ring;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (stays[i]) ring.push_back(exact[i]);
    }
    const bool turned = ring.size() < 3 || (doubled_area(ring) > 0) != (doubled_area(exact) > 0);
    return turned || doubled_area(ring) == 0 ? exact : ring;
  }

  /// Corners between two that stay; numbers go round.
  void choose(std::vector<bool>& stays, std::size_t first, std::size_t last) const {
    std::vector<std::pair<std::size_t, std::size_t>> open = {{first, last}};
    const auto at = [this](std::size_t i) -> const Corner& { return exact[i % exact.size()]; };
    while (!open.empty()) {
      const auto [from, to] = open.back();
      open.pop_back();
      double most = tolerance * tolerance;
      std::size_t chosen = from;
      for (std::size_t i = from + 1; i < to; ++i) {
        const double distance = squared_distance(at(i), at(from), at(to));
        if (distance <= most) continue;
        most = distance;
        chosen = i;
      }
      if (chosen == from) continue;
      stays[chosen % exact.size()] = true;
      open.emplace_back(from, chosen);
      open.emplace_back(chosen, to);
    }
  }
};

/// Corners in which rings meet stay, and their neighbours too: there rings lie side by side as before.
void keep_meetings(std::vector<Work>& rings) {
  std::unordered_map<std::int64_t, int> uses;
  for (const Work& ring : rings) {
    for (const Corner& corner : ring.exact) ++uses[key_of(corner.x, corner.y)];
  }
  for (Work& ring : rings) {
    const std::size_t size = ring.exact.size();
    ring.kept.assign(size, false);
    for (std::size_t i = 0; i < size; ++i) {
      if (uses[key_of(ring.exact[i].x, ring.exact[i].y)] < 2) continue;
      ring.kept[i] = ring.kept[(i + 1) % size] = ring.kept[(i + size - 1) % size] = true;
    }
  }
}

/// Numbers of rings that touch or cross others, or themselves.
std::vector<bool> rings_in_conflict(const std::vector<Work>& rings) {
  std::unordered_map<std::int64_t, std::vector<Segment>> cells;
  std::vector<bool> found(rings.size());
  for (std::size_t number = 0; number < rings.size(); ++number) {
    const Ring& ring = *rings[number].target;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Segment segment = {ring[i], ring[(i + 1) % ring.size()], number};
      const auto [left, right] = std::minmax(segment.a.x, segment.b.x);
      const auto [top, bottom] = std::minmax(segment.a.y, segment.b.y);
      for (std::int64_t y = top / cell_side; y <= bottom / cell_side; ++y) {
        for (std::int64_t x = left / cell_side; x <= right / cell_side; ++x) {
          std::vector<Segment>& cell = cells[key_of(x, y)];
          for (const Segment& other : cell) {
            if (conflict(segment, other)) found[number] = found[other.ring] = true;
          }
          cell.push_back(segment);
        }
      }
    }
  }
  return found;
}

}  // namespace

void simplify_outlines(std::vector<Outline>& outlines, double tolerance) {
  if (tolerance < least_tolerance) return;
  std::vector<Work> rings;
  for (Outline& outline : outlines) {
    rings.push_back({&outline.outer, outline.outer, {}, tolerance});
    for (Ring& hole : outline.holes) rings.push_back({&hole, hole, {}, tolerance});
  }
  keep_meetings(rings);
  for (Work& ring : rings) ring.simplify();
  while (true) {
    std::vector<bool> wrong = rings_in_conflict(rings);
    std::size_t number = 0;
    for (const Outline& outline : outlines) {
      const std::size_t outer = number++;
      if (outline.holes.empty()) continue;
      const RingRows rows(outline.outer);
      for (const Ring& hole : outline.holes) {
        const auto is_outside = [&rows](const Corner& corner) { return rows.has_outside(corner); };
        if (std::ranges::any_of(hole, is_outside)) wrong[outer] = wrong[number] = true;
        ++number;
      }
    }
    bool changed = false;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      if (!wrong[i] || rings[i].tolerance < least_tolerance) continue;
      rings[i].tolerance /= 2;
      rings[i].simplify();
      changed = true;
    }
    if (!changed) return;
  }
}

}  // namespace slidestream::operators
