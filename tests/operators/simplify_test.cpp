#include "operators/tissue/simplify.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

namespace {

Mask random_mask(std::mt19937_64& random, int dense) {
  const Size size = random_size(random, 40);
  Mask mask = empty_mask(size, {8.0, 8.0}, {size.width * 8, size.height * 8});
  for (std::uint8_t& pixel : mask.pixels) pixel = (random() >> 20) % 100 < static_cast<std::uint64_t>(dense) ? 1 : 0;
  return mask;
}

Mask disc(std::int64_t radius) {
  const std::int64_t side = 2 * radius + 1;
  Mask mask = empty_mask({side, side}, {8.0, 8.0}, {side * 8, side * 8});
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      const std::int64_t dx = x - radius;
      const std::int64_t dy = y - radius;
      mask.row(y)[static_cast<std::size_t>(x)] = dx * dx + dy * dy <= radius * radius ? 1 : 0;
    }
  }
  return mask;
}

std::vector<const Ring*> rings_of(const std::vector<Outline>& outlines) {
  std::vector<const Ring*> rings;
  for (const Outline& outline : outlines) {
    rings.push_back(&outline.outer);
    for (const Ring& hole : outline.holes) rings.push_back(&hole);
  }
  return rings;
}

std::size_t corners_of(const std::vector<Outline>& outlines) {
  std::size_t corners = 0;
  for (const Ring* ring : rings_of(outlines)) corners += ring->size();
  return corners;
}

double distance(const Corner& point, const Corner& a, const Corner& b) {
  const auto dx = static_cast<double>(b.x - a.x);
  const auto dy = static_cast<double>(b.y - a.y);
  const auto px = static_cast<double>(point.x - a.x);
  const auto py = static_cast<double>(point.y - a.y);
  const double t = std::clamp((px * dx + py * dy) / (dx * dx + dy * dy), 0.0, 1.0);
  return std::hypot(px - t * dx, py - t * dy);
}

/// The part of two segments that both have, by solving for it in exact fractions: 0 nothing, 1 an end of both, 2 more.
int common(const Corner& a, const Corner& b, const Corner& c, const Corner& d) {
  const auto side = [](const Corner& p, const Corner& q, const Corner& r) {
    const std::int64_t value = (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    return (value > 0) - (value < 0);
  };
  const auto lies_on = [&](const Corner& r, const Corner& p, const Corner& q) {
    return side(p, q, r) == 0 && std::min(p.x, q.x) <= r.x && r.x <= std::max(p.x, q.x) && std::min(p.y, q.y) <= r.y &&
           r.y <= std::max(p.y, q.y);
  };
  const int ends = (a == c) + (a == d) + (b == c) + (b == d);
  const int touches = lies_on(a, c, d) + lies_on(b, c, d) + lies_on(c, a, b) + lies_on(d, a, b);
  if (touches > 0) return ends == 1 && touches == 2 ? 1 : 2;
  return side(a, b, c) != side(a, b, d) && side(c, d, a) != side(c, d, b) ? 2 : 0;
}

}  // namespace

TEST_CASE("Simplified outlines stay near the mask's and are valid polygons (long)") {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 120; ++turn) {
    const double tolerance = std::vector{0.6, 1.0, 2.5, 10.0}[static_cast<std::size_t>(turn % 4)];
    const Mask mask = random_mask(random, 25 + turn % 6 * 13);
    const std::vector<Outline> exact = find_outlines(mask);
    std::vector<Outline> outlines = exact;
    simplify_outlines(outlines, tolerance);
    const auto before = rings_of(exact);
    const auto after = rings_of(outlines);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Ring& ring = *after[i];
      CHECK((doubled_area(ring) > 0) == (doubled_area(*before[i]) > 0));
      auto place = before[i]->begin();
      for (const Corner& corner : ring) {
        place = std::find(place, before[i]->end(), corner);
        REQUIRE(place != before[i]->end());
      }
      for (const Corner& corner : *before[i]) {
        double nearest = 1e9;
        for (std::size_t k = 0; k < ring.size(); ++k) {
          nearest = std::min(nearest, distance(corner, ring[k], ring[(k + 1) % ring.size()]));
        }
        CHECK(nearest <= tolerance + 1e-9);
      }
    }
    // No segment has more in common with another than a corner of both.
    std::vector<std::pair<Corner, Corner>> segments;
    for (const Ring* ring : after) {
      for (std::size_t k = 0; k < ring->size(); ++k) segments.emplace_back((*ring)[k], (*ring)[(k + 1) % ring->size()]);
    }
    bool apart = true;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        apart = apart && common(segments[i].first, segments[i].second, segments[k].first, segments[k].second) < 2;
      }
    }
    CHECK(apart);
  }
}

TEST_CASE("A round outline loses most of its corners, and none without a tolerance") {
  const std::vector<Outline> exact = find_outlines(disc(100));
  std::vector<Outline> outlines = exact;
  simplify_outlines(outlines, 0.0);
  CHECK(corners_of(outlines) == corners_of(exact));
  simplify_outlines(outlines, 1.0);
  CHECK(corners_of(outlines) * 8 < corners_of(exact));
  const auto area = static_cast<double>(doubled_area(outlines[0].outer));
  CHECK(std::abs(area / static_cast<double>(doubled_area(exact[0].outer)) - 1.0) < 0.02);
  // A narrow ring: the hole doesn't get near the outer line.
  Mask ring = disc(40);
  const Mask inner = disc(39);
  for (std::int64_t y = 0; y < 79; ++y) {
    for (std::size_t x = 0; x < 79; ++x) {
      if (inner.row(y)[x] != 0) ring.row(y + 1)[x + 1] = 0;
    }
  }
  std::vector<Outline> narrow = find_outlines(ring);
  simplify_outlines(narrow, 5.0);
  for (const Outline& outline : narrow) CHECK(doubled_area(outline.outer) > 0);
}

TEST_CASE("GeoJSON has the simplified lines, and the mask's area") {
  const Mask mask = disc(30);
  const nlohmann::json exact = nlohmann::json::parse(geojson_of(mask, 0.5));
  const nlohmann::json simplified = nlohmann::json::parse(geojson_of(mask, 0.5, 1.0));
  const auto& feature = simplified["features"][0];
  CHECK(feature["properties"] == exact["features"][0]["properties"]);
  const auto& ring = feature["geometry"]["coordinates"][0];
  CHECK(ring.size() * 3 < exact["features"][0]["geometry"]["coordinates"][0].size());
  CHECK(ring.front() == ring.back());
}
