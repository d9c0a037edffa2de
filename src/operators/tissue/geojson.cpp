#include "operators/tissue/geojson.hpp"

#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace slidestream::operators {
namespace {

using Json = nlohmann::json;

/// Collections in collections are followed this far.
constexpr int max_depth = 16;

/// Coordinates beyond this are nonsense, and no longer exact.
constexpr double max_coordinate = 1e12;

/// What is wrong, without the file's name.
[[noreturn]] void fail(const std::string& cause) { throw Error(cause); }

/// A value that must be there, and be an array.
const Json& array_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) fail(std::string("\"") + key + "\" is missing or no array");
  return *found;
}

std::string type_of(const Json& object) {
  if (!object.is_object()) fail("an object with a \"type\" was expected");
  const auto type = object.find("type");
  if (type == object.end() || !type->is_string()) fail("an object has no \"type\"");
  return type->get<std::string>();
}

/// Draws polygons into a mask.
class Painter {
 public:
  explicit Painter(Mask& mask) : mask_(mask), crossings_(static_cast<std::size_t>(mask.size.height)) {}

  void paint(const Json& polygon) {
    if (!polygon.is_array()) fail("a polygon's coordinates are no array of rings");
    first_row_ = mask_.size.height;
    end_row_ = 0;
    for (const Json& ring : polygon) {
      if (!ring.is_array() || ring.size() < 4) fail("a ring has fewer than four positions");
      Point before = point_of(ring.back());
      for (const Json& position : ring) {
        const Point point = point_of(position);
        add_edge(before, point);
        before = point;
      }
    }
    for (std::int64_t y = first_row_; y < end_row_; ++y) {
      std::vector<double>& of_row = crossings_[static_cast<std::size_t>(y)];
      std::sort(of_row.begin(), of_row.end());
      const auto row = mask_.row(y);
      for (std::size_t i = 0; i + 1 < of_row.size(); i += 2) {
        std::fill(row.begin() + first_centre(of_row[i], mask_.size.width),
                  row.begin() + first_centre(of_row[i + 1], mask_.size.width), std::uint8_t{1});
      }
      of_row.clear();
    }
  }

 private:
  /// In mask pixels.
  struct Point {
    double x = 0.0;
    double y = 0.0;
  };

  Point point_of(const Json& position) const {
    if (!position.is_array() || position.size() < 2 || !position[0].is_number() || !position[1].is_number()) {
      fail("a position is not two numbers");
    }
    const Point point{position[0].get<double>(), position[1].get<double>()};
    if (!(std::abs(point.x) <= max_coordinate) || !(std::abs(point.y) <= max_coordinate)) {
      fail("a position is out of range");
    }
    return {point.x / mask_.scale.x, point.y / mask_.scale.y};
  }

  /// The first pixel of an axis whose centre is at `edge` or beyond.
  static std::int64_t first_centre(double edge, std::int64_t size) {
    return static_cast<std::int64_t>(std::clamp(std::ceil(edge - 0.5), 0.0, static_cast<double>(size)));
  }

  /// Notes where the edge crosses the rows' centres; one of its ends belongs to it.
  void add_edge(Point from, Point to) {
    if (from.y > to.y) std::swap(from, to);
    const std::int64_t begin = first_centre(from.y, mask_.size.height);
    const std::int64_t end = first_centre(to.y, mask_.size.height);
    if (begin >= end) return;
    const double slope = (to.x - from.x) / (to.y - from.y);
    for (std::int64_t y = begin; y < end; ++y) {
      crossings_[static_cast<std::size_t>(y)].push_back(from.x + (static_cast<double>(y) + 0.5 - from.y) * slope);
    }
    first_row_ = std::min(first_row_, begin);
    end_row_ = std::max(end_row_, end);
  }

  Mask& mask_;
  std::vector<std::vector<double>> crossings_;  ///< of the polygon being drawn, by row
  std::int64_t first_row_ = 0;                  ///< that have any
  std::int64_t end_row_ = 0;
};

void paint_geometry(Painter& painter, const Json& object, int depth) {
  if (depth > max_depth) fail("collections inside collections go too deep");
  const std::string type = type_of(object);
  if (type == "FeatureCollection") {
    for (const Json& feature : array_of(object, "features")) paint_geometry(painter, feature, depth + 1);
  } else if (type == "GeometryCollection") {
    for (const Json& geometry : array_of(object, "geometries")) paint_geometry(painter, geometry, depth + 1);
  } else if (type == "Feature") {
    const auto geometry = object.find("geometry");
    if (geometry == object.end()) fail("a feature has no \"geometry\"");
    if (!geometry->is_null()) paint_geometry(painter, *geometry, depth + 1);
  } else if (type == "Polygon") {
    painter.paint(array_of(object, "coordinates"));
  } else if (type == "MultiPolygon") {
    for (const Json& polygon : array_of(object, "coordinates")) painter.paint(polygon);
  } else {
    const bool plain = !type.empty() && type.size() <= 32 && std::all_of(type.begin(), type.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    fail("a geometry of type " + (plain ? type : std::string("unknown")) + "; Polygon and MultiPolygon can be read");
  }
}

}  // namespace

Mask mask_from_geojson(std::string_view text, std::string_view name, Size size, GridScale scale, Size level0) {
  Mask mask = empty_mask(size, scale, level0);
  try {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) fail("is not JSON");
    Painter painter(mask);
    paint_geometry(painter, json, 0);
  } catch (const Error& error) {
    throw SlideError(std::string(name) + ": not usable as tissue outlines: " + error.what());
  }
  return mask;
}

Mask read_geojson_mask(const std::filesystem::path& path, Size size, GridScale scale, Size level0) {
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) throw SlideError(path.string() + ": can't be read: " + failed.message());
  if (bytes > max_geojson_bytes)
    throw SlideError(path.string() + ": tissue outlines of more than 256 MiB are not read");
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    throw SlideError(path.string() + ": can't be read: " + std::strerror(errno));
  }
  return mask_from_geojson(text, path.string(), size, scale, level0);
}

}  // namespace slidestream::operators
