#include "operators/tissue/outlines.hpp"

#include <doctest/doctest.h>
#include <slidestream/error.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "operators/drawn_outlines.hpp"
#include "operators/tissue/components.hpp"
#include "operators/tissue/geojson.hpp"
#include "runtime/machine.hpp"
#include "support/pixel_images.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

namespace {

Mask mask_of(const std::vector<std::string>& rows, GridScale scale = {1.0, 1.0}) {
  const Size size = {static_cast<std::int64_t>(rows[0].size()), static_cast<std::int64_t>(rows.size())};
  Mask mask = empty_mask(size, scale, size);
  for (std::size_t i = 0; i < mask.pixels.size(); ++i)
    mask.pixels[i] = rows[i / rows[0].size()][i % rows[0].size()] == '#';
  return mask;
}

Mask random_mask(std::mt19937_64& random, int dense) {
  const Size size = random_size(random, 25);
  const GridScale scale = {16.00731, 15.99};
  Mask mask = empty_mask(size, scale,
                         {static_cast<std::int64_t>(static_cast<double>(size.width) * scale.x),
                          static_cast<std::int64_t>(static_cast<double>(size.height) * scale.y)});
  for (std::uint8_t& pixel : mask.pixels) pixel = (random() >> 20) % 100 < static_cast<std::uint64_t>(dense) ? 1 : 0;
  return mask;
}

/// Every corner of a ring, those on straight lines too; each may be passed once.
void check_simple(const Ring& ring) {
  std::set<std::pair<std::int64_t, std::int64_t>> passed;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    Corner at = ring[i];
    const Corner& to = ring[(i + 1) % ring.size()];
    REQUIRE((at.x == to.x) != (at.y == to.y));
    while (!(at == to)) {
      CHECK(passed.emplace(at.x, at.y).second);
      at.x += (to.x > at.x) - (to.x < at.x);
      at.y += (to.y > at.y) - (to.y < at.y);
    }
  }
}

std::string error_of(const std::string& text) {
  try {
    mask_from_geojson(text, "a.geojson", ten, {1.0, 1.0}, ten);
  } catch (const SlideError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Outlines are valid polygons of the pixels' area, one a component") {
  std::mt19937_64 random(31);
  for (int i = 0; i < 300; ++i) {
    const Mask mask = random_mask(random, 30 + i % 6 * 12);
    const Components components = find_components(mask, 1, Connectivity::four);
    const std::vector<Outline> outlines = find_outlines(mask);
    REQUIRE(outlines.size() == components.list.size());
    for (std::size_t j = 0; j < outlines.size(); ++j) {
      std::int64_t area = doubled_area(outlines[j].outer);
      CHECK(area > 0);
      check_simple(outlines[j].outer);
      for (const Ring& hole : outlines[j].holes) {
        CHECK(doubled_area(hole) < 0);
        check_simple(hole);
        area += doubled_area(hole);
      }
      CHECK(area == 2 * components.list[j].pixels);
      CHECK(outlines[j].pixels == components.list[j].pixels);
    }
  }
}

TEST_CASE("Corners are counted without finding outlines") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    const Mask mask = random_mask(random, 5 + round % 10 * 10);
    std::int64_t corners = 0;
    for (const Outline& outline : find_outlines(mask)) {
      corners += static_cast<std::int64_t>(outline.outer.size());
      for (const Ring& hole : outline.holes) corners += static_cast<std::int64_t>(hole.size());
    }
    CHECK(count_corners(mask) == corners);
  }
  CHECK(count_corners(empty_mask({5, 3}, {8.0, 8.0}, {40, 24})) == 0);
}

TEST_CASE("A mask written as GeoJSON and read again is the same") {
  std::mt19937_64 random(37);
  for (int i = 0; i < 200; ++i) {
    const Mask mask = random_mask(random, 30 + i % 6 * 12);
    // Without tissue there are no polygons, and such a file isn't read.
    if (find_outlines(mask).empty()) continue;
    const Mask again = mask_from_geojson(geojson_of(mask), "again", mask.size, mask.scale, mask.level0);
    CHECK(again.pixels == mask.pixels);
  }
}

TEST_CASE("A region whose parts meet at corners is one Feature, with its area") {
  std::mt19937_64 random(41);
  for (int i = 0; i < 100; ++i) {
    Mask mask = random_mask(random, 30 + i % 6 * 12);
    // The slide's edge cuts none.
    mask.level0 = {mask.level0.width + 1, mask.level0.height + 1};
    const Components regions = find_components(mask, 1, Connectivity::eight);
    const nlohmann::json json = nlohmann::json::parse(geojson_of(mask, 0.5));
    REQUIRE(json["features"].size() == regions.list.size());
    for (std::size_t j = 0; j < regions.list.size(); ++j) {
      const nlohmann::json& measurements = json["features"][j]["properties"]["measurements"];
      CHECK(measurements["Mask pixels"] == regions.list[j].pixels);
      CHECK(measurements["Area um^2"].get<double>() ==
            doctest::Approx(static_cast<double>(regions.list[j].pixels) * mask.scale.x * mask.scale.y / 4.0));
    }
  }
  const nlohmann::json two = nlohmann::json::parse(geojson_of(mask_of({"#..", ".#.", "..."})));
  REQUIRE(two["features"].size() == 1);
  CHECK(two["features"][0]["geometry"]["type"] == "MultiPolygon");
  CHECK(two["features"][0]["geometry"]["coordinates"].size() == 2);
  CHECK_FALSE(two["features"][0]["properties"]["measurements"].contains("Area um^2"));
}

TEST_CASE("The area of a region ends with the slide, as its outline does") {
  std::mt19937_64 random(43);
  for (int i = 0; i < 50; ++i) {
    // The last column has 1 to 8 pixels of the slide, and the last row 1 to 5.
    Mask mask = random_mask(random, 30 + i % 6 * 12);
    mask.scale = {8.0, 5.0};
    mask.level0 = {8 * mask.size.width - static_cast<std::int64_t>(random() % 8),
                   5 * mask.size.height - static_cast<std::int64_t>(random() % 5)};
    std::int64_t covered = 0;
    for (std::int64_t y = 0; y < mask.level0.height; ++y) {
      for (std::int64_t x = 0; x < mask.level0.width; ++x) covered += mask.row(y / 5)[static_cast<std::size_t>(x / 8)];
    }
    double areas = 0.0;
    const nlohmann::json json = nlohmann::json::parse(geojson_of(mask, 2.0));
    for (const nlohmann::json& feature : json["features"])
      areas += feature["properties"]["measurements"]["Area um^2"].get<double>();
    CHECK(areas == 4.0 * static_cast<double>(covered));
  }
}

TEST_CASE("Only corners where the outline turns are written") {
  const std::vector<Outline> outlines = find_outlines(mask_of({"#####", "#...#", "#.###", "#####"}));
  REQUIRE(outlines.size() == 1);
  CHECK(outlines[0].outer == Ring{{0, 0}, {5, 0}, {5, 4}, {0, 4}});
  REQUIRE(outlines[0].holes.size() == 1);
  CHECK(outlines[0].holes[0].size() == 6);
}

TEST_CASE("Where pixels touch by their corners outlines touch there, too") {
  CHECK(find_outlines(mask_of({"#.", ".#"})).size() == 2);
  // The hole and the outside meet in a corner.
  const std::vector<Outline> open = find_outlines(mask_of({"###", "#.#", "##."}));
  REQUIRE(open.size() == 1);
  CHECK(open[0].outer.size() == 6);
  CHECK(open[0].holes.size() == 1);
  // Two holes that meet in a corner.
  const std::vector<Outline> two = find_outlines(mask_of({"####", "#.##", "##.#", "####"}));
  REQUIRE(two.size() == 1);
  CHECK(two[0].holes.size() == 2);
}

TEST_CASE("GeoJSON is a FeatureCollection in level 0 pixels, cut at the slide's edge") {
  Mask mask = mask_of({"##.", "##.", "..#"}, {16.0, 8.25});
  mask.level0 = {45, 24};
  const nlohmann::json json = nlohmann::json::parse(geojson_of(mask));
  CHECK(json["type"] == "FeatureCollection");
  REQUIRE(json["features"].size() == 1);
  const nlohmann::json& first = json["features"][0];
  CHECK(first["type"] == "Feature");
  CHECK(first["properties"]["objectType"] == "annotation");
  CHECK(first["properties"]["classification"]["name"] == "Tissue");
  CHECK(first["geometry"]["type"] == "MultiPolygon");
  CHECK(first["geometry"]["coordinates"][0] == nlohmann::json::parse("[[[0,0],[32,0],[32,16.5],[0,16.5],[0,0]]]"));
  CHECK(first["geometry"]["coordinates"][1] ==
        nlohmann::json::parse("[[[32,16.5],[45,16.5],[45,24],[32,24],[32,16.5]]]"));
  CHECK(nlohmann::json::parse(geojson_of(empty_mask({3, 3}, {}, {3, 3})))["features"].empty());
}

TEST_CASE("Polygons and multipolygons are read wherever they may stand") {
  const std::string square = "[[[2,1],[5,1],[5,3],[2,3],[2,1]]]";
  const std::vector<std::string> expected = drawn(R"({"type":"Polygon","coordinates":)" + square + "}");
  CHECK(expected[0] == "..........");
  CHECK(expected[1] == "..###.....");
  CHECK(expected[2] == "..###.....");
  CHECK(expected[3] == "..........");
  const std::string geometry = R"({"type":"MultiPolygon","coordinates":[)" + square + "]}";
  CHECK(drawn(geometry) == expected);
  const std::string feature = R"({"type":"Feature","properties":null,"geometry":)" + geometry + "}";
  CHECK(drawn(feature) == expected);
  CHECK(drawn(R"({"type":"FeatureCollection","features":[)" + feature + R"(,{"type":"Feature","geometry":null}]})") ==
        expected);
  CHECK(drawn(R"({"type":"GeometryCollection","geometries":[)" + geometry + "]}") == expected);
  // A bare list, as QuPath writes it.
  const std::string point = R"({"type":"Feature","geometry":{"type":"Point","coordinates":[8,8]}})";
  CHECK(drawn("[" + feature + "," + point + "]") == expected);
  CHECK(drawn("[" + feature + "]") == expected);
  CHECK(drawn("[" + geometry + "]") == expected);
}

TEST_CASE("Points and lines among outlines are ignored and counted") {
  const std::string polygon = R"({"type":"Polygon","coordinates":[[[0,0],[5,0],[5,10],[0,10],[0,0]]]})";
  const std::string point = R"({"type":"Feature","geometry":{"type":"Point","coordinates":[8,8]}})";
  const std::string text = R"({"type":"FeatureCollection","features":[)" + point + R"(,{"type":"Feature","geometry":)" +
                           polygon + R"(},{"type":"GeometryCollection","geometries":[{"type":"LineString",)" +
                           R"("coordinates":[[0,0],[9,9]]},{"type":"MultiPoint","coordinates":[]}]}]})";
  PassedOver passed_over = {7, 7};
  CHECK(tissue_share(mask_from_geojson(text, "a.geojson", ten, {1.0, 1.0}, ten, &passed_over)) == 0.5);
  CHECK(passed_over.flat == 3);
  CHECK(passed_over.ignored == 0);
  CHECK(drawn(text) == drawn(polygon));
  mask_from_geojson(polygon, "a.geojson", ten, {1.0, 1.0}, ten, &passed_over);
  CHECK(passed_over.flat == 0);
}

TEST_CASE("Polygons of QuPath's class Ignore* are left out and counted") {
  const auto feature = [](const std::string& ring, const std::string& properties, bool properties_first = false) {
    const std::string geometry = R"("geometry":{"type":"Polygon","coordinates":[)" + ring + "]}";
    const std::string members = R"("properties":)" + properties;
    return R"({"type":"Feature",)" + (properties_first ? members + "," + geometry : geometry + "," + members) + "}";
  };
  const std::string left = "[[0,0],[5,0],[5,10],[0,10],[0,0]]";
  const std::string right = "[[5,0],[10,0],[10,10],[5,10],[5,0]]";
  const std::string tissue =
      feature(left, R"({"objectType":"annotation","classification":{"name":"Tissue","color":[1,2,3]}})");
  const std::string left_out = R"({"objectType":"annotation","classification":{"color":[180,1,1],"name":"Ignore*"}})";
  const std::vector<std::string> expected = drawn(tissue);
  CHECK(expected[0] == "#####.....");
  PassedOver passed_over;
  for (const std::string& ignored :
       {feature(right, left_out), feature(right, left_out, true),
        feature(right, R"({"classification":{"names":["Ignore*","Positive"]}})"),
        feature(right, R"({"classification":{"name":"Ignore*: Positive","colorRGB":-7}})"),
        feature(right, R"({"classification":"Ignore*"})"),
        feature(right, R"({"classification":"{ \"name\": \"Ignore*\", \"color\": [ 180, 1, 1 ] }"})", true),
        feature(right, R"({"classification":"{\"names\":[\"Ignore*\",\"Positive\"]}"})"),
        std::string(R"({"type":"Feature","geometry":{"type":"GeometryCollection","geometries":[)") +
            R"({"type":"Polygon","coordinates":[)" + right + R"(]},{"type":"MultiPolygon","coordinates":[[)" + right +
            R"(]]}]},"properties":)" + left_out + "}"}) {
    const std::string text = "[" + ignored + "," + tissue + "]";
    CHECK_MESSAGE(tissue_share(mask_from_geojson(text, "a.geojson", ten, {1.0, 1.0}, ten, &passed_over)) == 0.5, text);
    CHECK(passed_over.ignored == 1);
    CHECK(passed_over.flat == 0);
  }
  // Other classes that end in a star are regions, and the word elsewhere is no class.
  for (const char* counts :
       {"null", R"({"classification":{"name":"Region*"}})", R"({"name":"Ignore*"})", R"({"a":{"name":"Ignore*"}})",
        R"({"classification":{"a":{"name":"Ignore*"}}})", R"([{"classification":{"name":"Ignore*"}}])",
        R"({"a":{"classification":{"name":"Ignore*"}}})", R"({"classification":{"name":"a","b":["Ignore*"]}})",
        R"({"classification":"Tissue"})", R"({"classification":"{\"name\":\"Tissue\"}"})",
        R"({"classification":"{\"name\":1,\"names\":{}}"})", R"({"classification":"{\"a\":\"Ignore*\"}"})",
        R"({"classification":["Ignore*"]})", R"({"classification":{"classification":"Ignore*"}})"}) {
    const std::string text = "[" + feature(right, counts) + "," + tissue + "]";
    CHECK_MESSAGE(tissue_share(mask_from_geojson(text, "a.geojson", ten, {1.0, 1.0}, ten, &passed_over)) == 1.0, text);
    CHECK(passed_over.ignored == 0);
  }
  CHECK(text_of_passed_over({}).empty());
  CHECK(text_of_passed_over({0, 2}) == "outlines of the class Ignore* are left out: 2");
  CHECK(text_of_passed_over({3, 1}) ==
        "points and lines of its outlines are ignored, as they have no area: 3; outlines of the class Ignore* are left "
        "out: 1");
  CHECK(error_of("[" + feature(right, left_out) + "]") ==
        "a.geojson: not usable as tissue outlines: all of its polygons have the class Ignore*; draw others around the "
        "tissue");
}

TEST_CASE("Polygons of other planes of QuPath's count as tissue, and are counted") {
  const auto outline = [](const std::string& before, const std::string& behind) {
    return R"([{"type":"Feature","geometry":{"type":"Polygon",)" + before +
           R"("coordinates":[[[0,0],[5,0],[5,10],[0,10],[0,0]]])" + behind + "}}]";
  };
  PassedOver passed_over;
  const auto planes_in = [&](const std::string& text) {
    CHECK_MESSAGE(tissue_share(mask_from_geojson(text, "a.geojson", ten, {1.0, 1.0}, ten, &passed_over)) == 0.5, text);
    return passed_over.planes;
  };
  for (const char* plane : {R"("plane":{"c":-1,"z":1,"t":0})", R"("plane":{"t":2.0})", R"("plane":{"z":3,"a":[0]})"}) {
    CAPTURE(plane);
    CHECK(planes_in(outline(std::string(plane) + ",", "")) == 1);
    CHECK(planes_in(outline("", "," + std::string(plane))) == 1);
  }
  for (const char* plane :
       {R"("plane":{"c":1,"z":0,"t":0})", R"("plane":{"a":{"z":1}})", R"("plane":{"z":[1]})", R"("plane":{"z":"1"})",
        R"("plane":1)", R"("plane":[1])", R"("other":{"z":1})", R"("plane":{"z":0},"bbox":[1,2])", R"("z":1)"}) {
    CAPTURE(plane);
    CHECK(planes_in(outline(std::string(plane) + ",", "")) == 0);
    CHECK(planes_in(outline("", "," + std::string(plane))) == 0);
  }
  CHECK(text_of_passed_over({0, 0, 2}) == "outlines of planes whose z or t isn't 0 count as tissue: 2");
  CHECK(text_of_passed_over({0, 1, 1}) ==
        "outlines of the class Ignore* are left out: 1; outlines of planes whose z or t isn't 0 count as tissue: 1");
}

TEST_CASE("What isn't outlines is refused in one line that names the file") {
  const std::string before = "a.geojson: not usable as tissue outlines: ";
  CHECK(error_of("") == before + "is not JSON: wrong at line 1, column 1, where it ends");
  CHECK(error_of("{") == before + "is not JSON: wrong at line 1, column 2, where it ends");
  CHECK(error_of("[[]]") == before + "an object with a \"type\" was expected");
  CHECK(error_of("[3]") == before + "an object with a \"type\" was expected");
  CHECK(error_of("3") == before + "an object with a \"type\" was expected");
  CHECK(error_of("{\"type\":\n \"Feature\",}") == before + "is not JSON: wrong at line 2, column 12");
  CHECK(error_of("[{\"type\":\"Feature\",\"geometry\":null}\n") ==
        before + "is not JSON: wrong at line 2, column 1, where it ends");
  CHECK(error_of(std::string("[]") + '\0' + "]").starts_with(before + "is not JSON: wrong at line 1, column 3"));
  CHECK(error_of("[]]").starts_with(before + "is not JSON: wrong at line 1, column 3"));
  CHECK(error_of("[1e999]") == before + "has a number that is too large at byte 6: 1e999");
  CHECK(error_of("{}") == before + "an object has no \"type\"");
  CHECK(error_of(R"({"type":7})") == before + "an object has no \"type\"");
  CHECK(error_of(R"({"type":"LineString","coordinates":[]})") ==
        before + "it holds points and lines alone; Polygon and MultiPolygon can be read");
  for (const char* none :
       {"[]", R"({"type":"FeatureCollection","features":[]})", R"({"type":"GeometryCollection","geometries":[]})",
        R"({"type":"Feature","geometry":null})", R"({"type":"MultiPolygon","coordinates":[]})"}) {
    CHECK(error_of(none) == before + "it holds no polygon; draw a Polygon or MultiPolygon around the tissue");
  }
  CHECK(error_of(R"({"type":"Circle","coordinates":[]})") ==
        before + "a geometry of type Circle; Polygon and MultiPolygon can be read");
  CHECK(error_of("{\"type\":\"a\\nb\"}") ==
        before + "a geometry of type unknown; Polygon and MultiPolygon can be read");
  CHECK(error_of(R"({"type":"Polygon"})") == before + "\"coordinates\" is missing or no array");
  CHECK(error_of(R"({"type":"FeatureCollection"})") == before + "\"features\" is missing or no array");
  CHECK(error_of(R"({"type":"Feature"})") == before + "a feature has no \"geometry\"");
  CHECK(error_of(R"({"type":"MultiPolygon","coordinates":[3]})") ==
        before + "a polygon's coordinates are no array of rings");
  CHECK(error_of(R"({"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]})") ==
        before + "a ring has fewer than four positions");
  CHECK(error_of(R"({"type":"Polygon","coordinates":[[[0,0],[1,"a"],[1,1],[0,0]]]})") ==
        before + "a position is not two numbers");
  CHECK(error_of(R"({"type":"Polygon","coordinates":[[[0,0],[1e300,0],[1,1],[0,0]]]})") ==
        before + "a position is out of range");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"type":"GeometryCollection","geometries":[)";
  CHECK(error_of(deep) == before + "collections inside collections go too deep");
  for (int i = 0; i < 100000; ++i) deep += "]}";
  CHECK(error_of(deep) == before + "collections inside collections go too deep");
}

TEST_CASE("A text or a number that is too long is refused before it takes memory") {
  const std::string refused =
      "a.geojson: not usable as tissue outlines: has a text, a number or a gap of more than 1 MiB at byte ";
  constexpr std::size_t bytes = std::size_t{16} << 20;
  const std::string number = R"({"type":"Polygon","coordinates":[[[)" + std::string(bytes, '1');
  const std::string text = R"({"name":")" + std::string(bytes, 'a');
  const std::string key = "{\"" + std::string(bytes, 'a');
  if (runtime::reset_peak_memory()) {
    const std::uint64_t before = runtime::peak_memory().value_or(0);
    CHECK(error_of(text) == refused + "9");
    CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{12} << 20));
  }
  CHECK(error_of(number) == refused + "36");
  CHECK(error_of(text) == refused + "9");
  CHECK(error_of(key) == refused + "2");
}

TEST_CASE("16 objects and lists may be around a geometry") {
  const std::string square = R"({"type":"Polygon","coordinates":[[[2,1],[5,1],[5,3],[2,3],[2,1]]]})";
  const auto in_collections = [&](int count) {
    std::string text = square;
    for (int i = 0; i < count; ++i) text = R"({"type":"GeometryCollection","geometries":[)" + text + "]}";
    return text;
  };
  const auto in_feature = [](const std::string& text) { return R"({"type":"Feature","geometry":)" + text + "}"; };
  const std::vector<std::string> expected = drawn(square);
  CHECK(drawn(in_collections(16)) == expected);
  CHECK(drawn(in_feature(in_collections(15))) == expected);
  CHECK(drawn("[" + in_feature(in_collections(14)) + "]") == expected);
  const std::string refused = "a.geojson: not usable as tissue outlines: collections inside collections go too deep";
  CHECK(error_of(in_collections(17)) == refused);
  CHECK(error_of(in_feature(in_collections(16))) == refused);
  CHECK(error_of("[" + in_feature(in_collections(15)) + "]") == refused);
}

TEST_CASE("Members come in any order, and others are passed over") {
  const std::string square = "[[[2,1],[5,1],[5,3],[2,3],[2,1]]]";
  const std::vector<std::string> expected = drawn(R"({"type":"Polygon","coordinates":)" + square + "}");
  CHECK(drawn(R"({"coordinates":)" + square +
              R"(,"bbox":[1,[2,{"type":3}]],"type":"Polygon","more":{"type":"Point"}})") == expected);
  CHECK(drawn(R"({"features":[{"geometry":{"coordinates":)" + square +
              R"(,"type":"Polygon"},"properties":{"geometry":{},"coordinates":[[7]]},"type":"Feature"}],)" +
              R"("name":"a","type":"FeatureCollection"})") == expected);
  CHECK(drawn(R"({"type":"MultiPolygon","coordinates":[[],)" + square + "]}") == expected);
  const std::string before = "a.geojson: not usable as tissue outlines: ";
  CHECK(error_of(R"({"type":"Polygon","geometry":{"type":"Polygon","coordinates":[]},"coordinates":[]})") ==
        before + "an object of another type holds \"features\", \"geometries\" or a \"geometry\"");
  CHECK(error_of(R"({"type":"Polygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]]]})") ==
        before + "a position is not two numbers");
  CHECK(error_of(R"({"type":"Polygon","coordinates":[[]]})") == before + "a ring has fewer than four positions");
  CHECK(error_of(R"({"type":"Polygon","coordinates":)" + std::string(1000000, '[')) ==
        before + "arrays inside coordinates go too deep");
}

TEST_CASE("A member that stands twice is refused") {
  const std::string square = R"({"type":"Polygon","coordinates":[[[2,1],[5,1],[5,3],[2,3],[2,1]]]})";
  const auto refused = [](const std::string& member) {
    return "a.geojson: not usable as tissue outlines: \"" + member + "\" stands twice in an object";
  };
  CHECK(error_of(R"({"type":"Feature","geometry":)" + square + R"(,"geometry":)" + square + "}") ==
        refused("geometry"));
  CHECK(error_of(R"({"type":"Feature","geometry":null,"properties":{},"geometry":)" + square + "}") ==
        refused("geometry"));
  CHECK(error_of(R"({"type":"Polygon","coordinates":[],"coordinates":[]})") == refused("coordinates"));
  CHECK(error_of(R"({"features":[],"type":"FeatureCollection","features":[]})") == refused("features"));
  CHECK(error_of(R"({"type":"Point","type":"Polygon"})") == refused("type"));
  const auto error_with = [&](const std::string& member) {
    return error_of(R"({"type":"Feature",)" + member + R"(,"geometry":)" + square + "}");
  };
  CHECK(error_with(R"("properties":{},"properties":{})") == refused("properties"));
  CHECK(error_with(R"("properties":{"classification":{"name":"a"},"b":1,"classification":null})") ==
        refused("classification"));
  CHECK(error_with(R"("properties":{"classification":{"name":"a","name":"Ignore*"}})") == refused("name"));
  CHECK(error_of(R"({"type":"Polygon","plane":{"z":1,"z":0},"coordinates":[]})") == refused("z"));
  // Others, and what lies in them, say nothing.
  CHECK(drawn(R"({"type":"Feature","id":1,"id":2,"properties":{"type":1,"type":2},"geometry":)" + square + "}") ==
        drawn(square));
}

TEST_CASE("Outlines are read from a file, and a file that can't be is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "slide.geojson";
  std::ofstream(path) << R"({"type":"Polygon","coordinates":[[[0,0],[4,0],[4,10],[0,10],[0,0]]]})";
  CHECK(tissue_share(read_geojson_mask(path, ten, {1.0, 1.0}, ten)) == 0.4);
  std::ofstream(path) << "\xef\xbb\xbf"
                      << R"({"type":"Polygon","coordinates":[[[0,0],[4,0],[4,5],[0,5],[0,0]]]})";
  CHECK(tissue_share(read_geojson_mask(path, ten, {1.0, 1.0}, ten)) == 0.2);
  const std::string missing = folder / "missing.geojson";
  CHECK_THROWS_WITH_AS(read_geojson_mask(missing, ten, {1.0, 1.0}, ten),
                       (missing + ": can't be read: No such file or directory").c_str(), SlideError);
  std::ofstream(path) << "rubbish";
  CHECK_THROWS_WITH_AS(read_geojson_mask(path, ten, {1.0, 1.0}, ten),
                       (path + ": not usable as tissue outlines: is not JSON: wrong at line 1, column 1").c_str(),
                       SlideError);
}
