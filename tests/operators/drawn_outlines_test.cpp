// Polygons of others, drawn into a mask.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operators/drawn_outlines.hpp"
#include "operators/tissue/geojson.hpp"
#include "runtime/machine.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

TEST_CASE("A polygon is its first ring without its holes, polygons add up") {
  const auto polygon = [](const std::string& rings) { return R"({"type":"Polygon","coordinates":[)" + rings + "]}"; };
  // Wide rings have few crossings for their size, and narrow ones many.
  for (const int wider : {1, 40}) {
    CAPTURE(wider);
    const auto ring_of = [wider](const std::vector<std::pair<int, int>>& corners) {
      std::string text;
      for (std::size_t i = 0; i <= corners.size(); ++i) {
        const auto& [x, y] = corners[i % corners.size()];
        text += (i == 0 ? "[[" : ",[") + std::to_string(x * wider) + "," + std::to_string(y) + "]";
      }
      return text + "]";
    };
    const auto square = [&](int left, int top, int right, int bottom) {
      return ring_of({{left, top}, {right, top}, {right, bottom}, {left, bottom}});
    };
    const auto rows = [&](const std::string& text) {
      std::vector<std::string> found;
      for (const std::string& row : drawn(text, {std::int64_t{10} * wider, 10})) {
        found.emplace_back();
        for (std::size_t x = 0; x < row.size(); x += static_cast<std::size_t>(wider)) found.back() += row[x];
      }
      return found;
    };
    const std::string outer = square(0, 0, 6, 6);
    const std::string inner = square(2, 2, 4, 4);
    const std::vector<std::string> ring = rows(polygon(outer + "," + inner));
    CHECK(ring[1] == "######....");
    CHECK(ring[2] == "##..##....");
    CHECK(rows(R"({"type":"MultiPolygon","coordinates":[[)" + outer + "],[" + inner + "]]}")[2] == "######....");
    // Holes that overlap, one twice, one in another, and one beyond the first ring.
    const std::string all = square(0, 0, 8, 8);
    const std::string hole = square(1, 1, 4, 4);
    std::vector<std::string> cut = rows(polygon(all + "," + hole + "," + square(3, 2, 6, 6)));
    CHECK(cut[0] == "########..");
    CHECK(cut[1] == "#...####..");
    CHECK(cut[2] == "#.....##..");
    CHECK(cut[3] == "#.....##..");
    CHECK(cut[4] == "###...##..");
    CHECK(cut[6] == "########..");
    const std::vector<std::string> once = rows(polygon(all + "," + hole));
    CHECK(once[1] == "#...####..");
    CHECK(rows(polygon(all + "," + hole + "," + hole)) == once);
    CHECK(rows(polygon(all + "," + hole + "," + square(2, 2, 3, 3))) == once);
    cut = rows(polygon(all + "," + square(6, 1, 10, 3)));
    CHECK(cut[1] == "######....");
    CHECK(cut[3] == "########..");
    // A hole cuts nothing out of another polygon, before or behind it.
    const std::string holed = polygon(all + "," + square(1, 1, 7, 7) + "," + square(2, 2, 7, 7));
    const std::string island = polygon(inner);
    const std::vector<std::string> both = rows("[" + holed + "," + island + "]");
    CHECK(both == rows("[" + island + "," + holed + "]"));
    CHECK(both[1] == "#......#..");
    CHECK(both[2] == "#.##...#..");
    // A ring that crosses itself: where it goes round twice is outside.
    CHECK(rows(polygon(ring_of({{0, 0}, {6, 0}, {6, 6}, {2, 6}, {2, 2}, {8, 2}, {8, 4}, {0, 4}})))[3] == "##....##..");
  }
}

TEST_CASE("A pixel counts where its centre is inside") {
  // A triangle whose long side goes through centres: those on a left edge are inside.
  const std::vector<std::string> rows = drawn(R"({"type":"Polygon","coordinates":[[[0,0],[10,0],[0,10],[0,0]]]})");
  CHECK(rows[0] == "#########.");
  CHECK(rows[8] == "#.........");
  CHECK(rows[9] == "..........");
  CHECK(drawn(R"({"type":"Polygon","coordinates":[[[0.5,0.5],[2.5,0.5],[2.5,2.5],[0.5,2.5],[0.5,0.5]]]})")[0] ==
        "##........");
  // Coarser than level 0, and beyond the slide.
  CHECK(drawn(R"({"type":"Polygon","coordinates":[[[-50,-50],[6,-50],[6,500],[-50,500],[-50,-50]]]})", {5, 5},
              {2.0, 2.0})[4] == "###..");
}

TEST_CASE("Few crossings and many are drawn alike") {
  std::mt19937 random(5);
  const auto number = [&random] { return std::to_string(static_cast<double>(random() % 4000) / 16.0); };
  for (const int rings : {1, 40}) {
    std::string once;
    std::string often;
    for (int i = 0; i < rings; ++i) {
      const std::string first = "[" + number() + "," + number() + "]";
      std::string around = first;
      for (int k = 0; k < 3; ++k) around += ",[" + number() + "," + number() + "]";
      const char* before = i > 0 ? ",[" : "[";
      once += before + around + "," + first + "]";
      // An odd number of rounds is one, with many crossings for the ring's size.
      often += before;
      for (int round = 0; round < 41; ++round) often += around + ",";
      often += first + "]";
    }
    const auto rows = [](const std::string& polygon) {
      return drawn(R"({"type":"Polygon","coordinates":[)" + polygon + "]}", {240, 240});
    };
    CHECK(rows(once) == rows(often));
  }
}

TEST_CASE("Reading outlines and drawing them ends when the slide is given up") {
  // Asked so often, the slide is given up.
  const auto given_up_at = [](int question, const std::string& text, Size size = {1000, 1000}) {
    int asked = 0;
    const auto given_up = [&] { return ++asked == question; };
    CHECK_THROWS_WITH_AS(mask_from_geojson(text, "a.geojson", size, {1.0, 1.0}, size, nullptr, given_up),
                         "a.geojson: its tissue outlines were being read when the run gave it up", StoppedError);
  };
  // While nothing is drawn: before the first byte, and in a long text.
  given_up_at(1, "");
  given_up_at(5, R"({"properties":")" + std::string(500'000, ' ') + R"("})");
  // All that follows is read by the 13th question.
  std::string zigzag = "[[0,0]";
  for (int i = 0; i < 5000; ++i) zigzag += i % 2 == 0 ? ",[10,1000]" : ",[0.5,0]";
  given_up_at(40, R"({"type":"Polygon","coordinates":[)" + zigzag + ",[0,0]]]}");
  const std::string square = "[[0,0],[10,0],[10,10],[0,10],[0,0]]";
  std::string polygons = "[" + square + "]";
  std::string holes = square;
  for (int i = 0; i < 20'000; ++i) {
    polygons += ",[" + square + "]";
    holes += "," + square;
  }
  given_up_at(20, R"({"type":"MultiPolygon","coordinates":[)" + polygons + "]}");
  given_up_at(20, R"({"type":"Polygon","coordinates":[)" + holes + "]}");
  // Few crossings, and many pixels.
  constexpr Size wide = {std::int64_t{1} << 20, 1};
  const std::string row = "[[0,0],[2000000,0],[2000000,1],[0,1],[0,0]]";
  std::string rows = "[" + row + "]";
  for (int i = 0; i < 60; ++i) rows += ",[" + row + "]";
  given_up_at(10, R"({"type":"MultiPolygon","coordinates":[)" + rows + "]}", wide);
}

TEST_CASE("Tall triangles of one polygon take little memory") {
  constexpr std::int64_t side = 1000;
  std::string text = R"({"type":"Polygon","coordinates":[)";
  for (int i = 0; i < 4000; ++i) {
    const std::string left = std::to_string(i % 900);
    text += (i > 0 ? ",[[" : "[[") + left + ",0],[" + left + ".7,1000],[" + left + ".9,0],[" + left + ",0]]";
  }
  text += "]}";
  if (!runtime::reset_peak_memory()) return;
  const std::uint64_t before = runtime::peak_memory().value_or(0);
  const Mask mask = mask_from_geojson(text, "a.geojson", {side, side}, {1.0, 1.0}, {side, side});
  CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{48} << 20));
}
