#include "operators/tissue/geojson.hpp"

#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "config/bounded_json.hpp"
#include "config/tissue_keys.hpp"
#include "operators/tissue/geojson_reader.hpp"

namespace slidestream::operators {
namespace {

/// Coordinates beyond this are nonsense, and no longer exact.
constexpr double max_coordinate = 1e12;

/// Rows of the mask that edges of all outlines cross, and pixels as `for_spans` counts them. More take minutes to draw.
constexpr std::uint64_t most_crossings = std::uint64_t{1} << 32;

/// What is wrong, without the file's name.
[[noreturn]] void fail(const std::string& cause) { throw Error(cause); }

/// Whether a slide is given up, asked now and then.
class DrawingWatch {
 public:
  explicit DrawingWatch(const std::function<bool()>& given_up) : given_up_(given_up) {}

  void ask() const {
    if (given_up_ && given_up_()) throw StoppedError("its tissue outlines were being read when the run gave it up");
  }
  /// Before so many crossings or the like are drawn.
  void pass(std::uint64_t steps) {
    constexpr std::uint64_t between = std::uint64_t{1} << 16;
    passed_ += steps;
    if (passed_ < between) return;
    passed_ = 0;
    ask();
  }

 private:
  const std::function<bool()>& given_up_;
  std::uint64_t passed_ = 0;
};

/// Draws polygons into a mask, and counts what is passed over or drawn from other planes.
class Painter final : public GeometrySink {
 public:
  Painter(Mask& mask, const std::function<bool()>& given_up) : mask_(mask), watch_(given_up) {}

  void polygons(const GeoCoordinates& coordinates, bool multiple) override {
    check(coordinates, multiple ? 4 : 3);
    areas_ += coordinates.polygons.size();
    if (coordinates.is_of_other_plane) ++passed_over_.planes;
    std::size_t ring = 0;
    for (const std::size_t end : coordinates.polygons) {
      paint(coordinates, ring, end);
      ring = end;
    }
  }
  void flat() override { ++passed_over_.flat; }
  void ignored() override { ++passed_over_.ignored; }

  std::size_t areas_seen() const { return areas_; }
  const PassedOver& passed_over() const { return passed_over_; }

 private:
  /// In mask pixels.
  struct Point {
    double x = 0.0;
    double y = 0.0;
  };
  /// Where an edge crosses the centres of a row: the first pixel behind it.
  struct Crossing {
    std::int32_t row = 0;
    std::int32_t column = 0;
  };

  /// The part of the mask that a ring crosses: rows [top, bottom), and the columns `left` to `right` of its crossings.
  struct Box {
    std::int64_t left = 0;
    std::int64_t right = 0;
    std::int64_t top = 0;
    std::int64_t bottom = 0;
  };

  /// `depth` is that of positions.
  static void check(const GeoCoordinates& coordinates, int depth) {
    const int found = coordinates.depth;
    const auto is_empty = [&](int at) { return (coordinates.empty >> at & 1U) != 0; };
    if (found == depth - 3 && found > 0) fail("a polygon's coordinates are no array of rings");
    if (found == depth - 2 || is_empty(depth - 1)) fail("a ring has fewer than four positions");
    if ((found != 0 && found != depth) || !coordinates.are_sound || is_empty(depth)) {
      fail("a position is not two numbers");
    }
    std::size_t first = 0;
    for (const std::size_t end : coordinates.rings) {
      if (end - first < 4) fail("a ring has fewer than four positions");
      first = end;
    }
  }

  Point point_of(const GeoPosition& position) const {
    if (!(std::abs(position.x) <= max_coordinate) || !(std::abs(position.y) <= max_coordinate)) {
      fail("a position is out of range");
    }
    return {position.x / mask_.scale.x, position.y / mask_.scale.y};
  }

  /// The first pixel of an axis whose centre is at `edge` or beyond.
  static std::int64_t first_centre(double edge, std::int64_t size) {
    return static_cast<std::int64_t>(std::clamp(std::ceil(edge - 0.5), 0.0, static_cast<double>(size)));
  }

  /// Calls `see` with the ends of each edge of a ring, the upper one first, and the rows whose centres it crosses; one
  /// of its ends belongs to it.
  template <class See>
  void for_edges(const GeoCoordinates& coordinates, std::size_t ring, const See& see) {
    const auto at = [&](std::size_t i) { return coordinates.positions.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto first = at(ring == 0 ? 0 : coordinates.rings[ring - 1]);
    const auto last = at(coordinates.rings[ring]);
    Point before = point_of(*(last - 1));
    for (auto position = first; position != last; ++position) {
      const Point point = point_of(*position);
      const bool down = before.y <= point.y;
      const Point& from = down ? before : point;
      const Point& to = down ? point : before;
      const std::int64_t first_row = first_centre(from.y, mask_.size.height);
      const std::int64_t end_row = first_centre(to.y, mask_.size.height);
      watch_.pass(1 + static_cast<std::uint64_t>(std::max<std::int64_t>(end_row - first_row, 0)));
      if (first_row < end_row) see(from, to, first_row, end_row);
      before = point;
    }
  }

  template <class See>
  void for_crossings(const GeoCoordinates& coordinates, std::size_t ring, const See& see) {
    for_edges(coordinates, ring, [&](const Point& from, const Point& to, std::int64_t first, std::int64_t last) {
      const double slope = (to.x - from.x) / (to.y - from.y);
      for (std::int64_t y = first; y < last; ++y) {
        see(y, first_centre(from.x + (static_cast<double>(y) + 0.5 - from.y) * slope, mask_.size.width));
      }
    });
  }

  /// The first ring without all others, which are holes. Holes may overlap.
  void paint(const GeoCoordinates& coordinates, std::size_t ring, std::size_t end) {
    if (end - ring == 1) {
      for_spans(coordinates, ring, [this](std::int64_t y, std::int64_t first, std::int64_t last) {
        const auto row = mask_.row(y);
        std::fill(row.begin() + first, row.begin() + last, std::uint8_t{1});
      });
      return;
    }
    cut_.resize(mask_.pixels.size());
    fill_holes(coordinates, ring + 1, end, 1);
    for_spans(coordinates, ring, [this](std::int64_t y, std::int64_t first, std::int64_t last) {
      const std::uint8_t* const cut = cut_.data() + y * mask_.size.width;
      std::uint8_t* const pixels = mask_.row(y).data();
      for (std::int64_t x = first; x < last; ++x) pixels[x] |= static_cast<std::uint8_t>(cut[x] ^ 1);
    });
    fill_holes(coordinates, ring + 1, end, 0);
  }

  void fill_holes(const GeoCoordinates& coordinates, std::size_t ring, std::size_t end, std::uint8_t value) {
    for (; ring < end; ++ring) {
      const auto fill = [this, value](std::int64_t y, std::int64_t first, std::int64_t last) {
        const auto row = cut_.begin() + y * mask_.size.width;
        std::fill(row + first, row + last, value);
      };
      for_spans(coordinates, ring, fill, value == 0);
    }
  }

  /// Calls `draw` with a row and the pixels [first, last) of it that lie in a ring, by the even-odd rule. Crossings are
  /// sorted where they are few, and else counted, even or odd, in an image of the ring's size.
  /// \param is_again  the ring's work was counted
  template <class Draw>
  void for_spans(const GeoCoordinates& coordinates, std::size_t ring, const Draw& draw, bool is_again = false) {
    const auto see = [&](std::int64_t y, std::int64_t first, std::int64_t last) {
      // Rings that overlap may fill the mask any number of times.
      constexpr std::int64_t pixels_like_a_crossing = 64;
      const auto work = static_cast<std::uint64_t>((last - first) / pixels_like_a_crossing);
      watch_.pass(work);
      if (!is_again) take_work(work);
      draw(y, first, last);
    };
    std::uint64_t crossings = 0;
    Box box{mask_.size.width, 0, mask_.size.height, 0};
    for_edges(coordinates, ring, [&](const Point& from, const Point& to, std::int64_t first, std::int64_t last) {
      crossings += static_cast<std::uint64_t>(last - first);
      // A crossing may lie beyond both ends by what is rounded.
      const std::int64_t left = first_centre(std::min(from.x, to.x) - 1.0, mask_.size.width);
      const std::int64_t right = first_centre(std::max(from.x, to.x) + 1.0, mask_.size.width);
      box = {std::min(box.left, left), std::max(box.right, right), std::min(box.top, first),
             std::max(box.bottom, last)};
    });
    if (crossings == 0) return;
    if (!is_again) take_work(crossings);
    const std::int64_t area = (box.bottom - box.top) * (box.right - box.left + 1);
    if (crossings <= static_cast<std::uint64_t>(area) / 8) {
      for_sorted_spans(coordinates, ring, crossings, see);
    } else {
      for_counted_spans(coordinates, ring, box, see);
    }
  }

  void take_work(std::uint64_t crossings) {
    work_ += crossings;
    if (work_ > most_crossings) fail("its polygons cross or cover more pixels than can be drawn");
  }

  template <class See>
  void for_sorted_spans(const GeoCoordinates& coordinates, std::size_t ring, std::size_t count, const See& see) {
    sorted_.clear();
    sorted_.reserve(count);
    for_crossings(coordinates, ring, [this](std::int64_t y, std::int64_t x) {
      sorted_.push_back({static_cast<std::int32_t>(y), static_cast<std::int32_t>(x)});
    });
    std::sort(sorted_.begin(), sorted_.end(), [](const Crossing& a, const Crossing& b) {
      return a.row != b.row ? a.row < b.row : a.column < b.column;
    });
    // Rings are closed: every row is crossed an even number of times.
    for (std::size_t i = 0; i + 1 < sorted_.size(); i += 2) {
      see(sorted_[i].row, sorted_[i].column, sorted_[i + 1].column);
    }
  }

  template <class See>
  void for_counted_spans(const GeoCoordinates& coordinates, std::size_t ring, const Box& box, const See& see) {
    const std::int64_t pitch = box.right - box.left + 1;
    const auto bytes = static_cast<std::size_t>(pitch * (box.bottom - box.top));
    if (odd_.size() < bytes) odd_.resize(bytes);
    for_crossings(coordinates, ring, [&](std::int64_t y, std::int64_t x) {
      odd_[static_cast<std::size_t>((y - box.top) * pitch + x - box.left)] ^= 1;
    });
    for (std::int64_t y = box.top; y < box.bottom; ++y) {
      const auto odd = odd_.begin() + (y - box.top) * pitch;
      bool inside = false;
      std::int64_t begin = 0;
      for (std::int64_t x = 0; x < pitch; ++x) {
        if (odd[x] == 0) continue;
        if (inside) see(y, begin, box.left + x);
        inside = !inside;
        begin = box.left + x;
      }
      std::fill(odd, odd + pitch, std::uint8_t{0});
    }
  }

  Mask& mask_;
  DrawingWatch watch_;
  std::size_t areas_ = 0;
  PassedOver passed_over_;
  std::uint64_t work_ = 0;         ///< crossings of all rings, and a part of their pixels
  std::vector<Crossing> sorted_;   ///< of the ring being drawn
  std::vector<std::uint8_t> odd_;  ///< whether an odd number of its crossings is there; all 0 between rings
  std::vector<std::uint8_t> cut_;  ///< 1 where a hole of the polygon being drawn is; all 0 between polygons
};

Mask read_mask(BoundedJson& source, std::string_view name, Size size, GridScale scale, Size level0,
               PassedOver* passed_over, const std::function<bool()>& given_up) {
  Mask mask = empty_mask(size, scale, level0);
  try {
    Painter painter(mask, given_up);
    GeoJsonReader reader(painter);
    std::istream in(&source);
    if (!nlohmann::json::sax_parse(in, &reader)) fail("is not JSON");
    if (painter.areas_seen() == 0) {
      const PassedOver& passed = painter.passed_over();
      fail(passed.ignored > 0 ? "all of its polygons have the class Ignore*; draw others around the tissue"
           : passed.flat > 0  ? "it holds points and lines alone; Polygon and MultiPolygon can be read"
                              : "it holds no polygon; draw a Polygon or MultiPolygon around the tissue");
    }
    if (passed_over != nullptr) *passed_over = painter.passed_over();
  } catch (const StoppedError& error) {
    throw StoppedError(std::string(name) + ": " + error.what());
  } catch (const Error& error) {
    throw SlideError(std::string(name) + ": not usable as tissue outlines: " + error.what());
  }
  return mask;
}

}  // namespace

std::string text_of_passed_over(const PassedOver& passed_over) {
  std::string text;
  if (passed_over.flat > 0) {
    text = "points and lines of its outlines are ignored, as they have no area: " + std::to_string(passed_over.flat);
  }
  if (passed_over.ignored > 0) {
    text += text.empty() ? "" : "; ";
    text += "outlines of the class Ignore* are left out: " + std::to_string(passed_over.ignored);
  }
  if (passed_over.planes > 0) {
    text += text.empty() ? "" : "; ";
    text += "outlines of planes whose z or t isn't 0 count as tissue: " + std::to_string(passed_over.planes);
  }
  return text;
}

Mask mask_from_geojson(std::string_view text, std::string_view name, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over, const std::function<bool()>& given_up) {
  BoundedJson source(text, [&] { DrawingWatch(given_up).ask(); });
  return read_mask(source, name, size, scale, level0, passed_over, given_up);
}

Mask read_geojson_mask(const std::filesystem::path& path, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over, const std::function<bool()>& given_up) {
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw SlideError(path.string() + ": isn't a regular file");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) throw SlideError(path.string() + ": can't be read: " + failed.message());
  if (bytes > max_geojson_bytes)
    throw SlideError(path.string() + ": tissue outlines of more than 256 MiB are not read");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SlideError(path.string() + ": can't be read: " + std::strerror(errno));
  BoundedJson source(*file.rdbuf(), [&] { DrawingWatch(given_up).ask(); });
  return read_mask(source, path.string(), size, scale, level0, passed_over, given_up);
}

}  // namespace slidestream::operators
