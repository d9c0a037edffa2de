#include "operators/tissue/outlines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <unordered_map>

#include "operators/tissue/components.hpp"
#include "operators/tissue/simplify.hpp"

namespace slidestream::operators {
namespace {

enum Direction : std::uint8_t { right, down, left, up };

constexpr std::array<Corner, 4> steps = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};

/// Walks along the edges of a mask's tissue with tissue at its right hand.
class Tracer {
 public:
  explicit Tracer(const Mask& mask) : mask_(mask), seen_(mask.pixels.size()) {}

  bool tissue(std::int64_t x, std::int64_t y) const {
    return x >= 0 && y >= 0 && x < mask_.size.width && y < mask_.size.height && mask_.pixels[index(x, y)] != 0;
  }

  /// Whether a line that wasn't walked yet passes above this pixel.
  bool starts_at(std::int64_t x, std::int64_t y) const {
    return tissue(x, y) && !tissue(x, y - 1) && seen_[index(x, y)] == 0;
  }

  /// Every corner of the line that passes above a pixel, straight ones too.
  Ring walk(std::int64_t x, std::int64_t y) {
    Ring line;
    Corner at{x, y};
    Direction direction = right;
    do {
      line.push_back(at);
      if (direction == right) seen_[index(at.x, at.y)] = 1;
      at = {at.x + steps[direction].x, at.y + steps[direction].y};
      direction = turned(at, direction);
    } while (!(at == line.front() && direction == right));
    return line;
  }

 private:
  std::size_t index(std::int64_t x, std::int64_t y) const { return static_cast<std::size_t>(y * mask_.size.width + x); }

  /// Where to go on from a corner. Round the pixel at the right hand, where two pixels touch by their corners only:
  /// they belong to different outlines.
  Direction turned(const Corner& at, Direction direction) const {
    // The two pixels ahead, at the right and at the left hand.
    const auto ahead = [&](Direction side) {
      const Corner& forward = steps[direction];
      const Corner& aside = steps[side];
      return tissue(at.x + (forward.x + aside.x - 1) / 2, at.y + (forward.y + aside.y - 1) / 2);
    };
    const auto right_hand = static_cast<Direction>((direction + 1) % 4);
    const auto left_hand = static_cast<Direction>((direction + 3) % 4);
    if (!ahead(right_hand)) return right_hand;
    return ahead(left_hand) ? left_hand : direction;
  }

  const Mask& mask_;
  std::vector<std::uint8_t> seen_;
};

/// Without the corners that lie on a straight line.
Ring without_straight_corners(const Ring& line) {
  Ring ring;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const Corner& before = line[(i + line.size() - 1) % line.size()];
    const Corner& after = line[(i + 1) % line.size()];
    if (before.x != after.x && before.y != after.y) ring.push_back(line[i]);
  }
  return ring;
}

/// Cuts a line at the corners that it passes twice, so that no ring does.
std::vector<Ring> simple_rings(const Ring& line, std::int64_t pitch) {
  std::vector<Ring> rings;
  Ring open;
  std::unordered_map<std::int64_t, std::size_t> place;  // of the corners of `open`
  for (const Corner& corner : line) {
    const std::int64_t key = corner.y * pitch + corner.x;
    if (const auto passed = place.find(key); passed != place.end()) {
      const std::size_t from = passed->second;
      const Ring loop(open.begin() + static_cast<std::ptrdiff_t>(from), open.end());
      rings.push_back(without_straight_corners(loop));
      for (std::size_t i = from + 1; i < open.size(); ++i) place.erase(open[i].y * pitch + open[i].x);
      open.resize(from + 1);
    } else {
      place.emplace(key, open.size());
      open.push_back(corner);
    }
  }
  rings.push_back(without_straight_corners(open));
  return rings;
}

/// What a run of pixels covers of the slide, in pixels of level 0. Exact where the scale is whole.
double covered_by(const MaskRun& run, const Mask& mask) {
  const auto length = [](std::int64_t begin, std::int64_t end, double scale, std::int64_t side) {
    const auto at = [&](std::int64_t place) {
      return std::min(static_cast<double>(place) * scale, static_cast<double>(side));
    };
    return at(end) - at(begin);
  };
  return length(run.begin, run.end, mask.scale.x, mask.level0.width) *
         length(run.y, run.y + 1, mask.scale.y, mask.level0.height);
}

/// A coordinate with at most three digits after the point.
void append_number(std::string& text, double value) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 3).ptr;
  std::string_view number(digits.data(), static_cast<std::size_t>(end - digits.data()));
  number.remove_suffix(number.size() - 1 - number.find_last_not_of('0'));
  if (number.back() == '.') number.remove_suffix(1);
  text += number;
}

}  // namespace

std::int64_t doubled_area(const Ring& ring) {
  std::int64_t area = 0;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Corner& from = ring[i];
    const Corner& to = ring[(i + 1) % ring.size()];
    area += from.x * to.y - to.x * from.y;
  }
  return area;
}

std::vector<Outline> find_outlines(const Mask& mask) {
  const Components components = find_components(mask, 1, Connectivity::four);
  // Runs are the same, whatever touches.
  const Components regions = find_components(mask, 1, Connectivity::eight);
  std::vector<Outline> outlines(components.list.size());
  for (std::size_t i = 0; i < components.runs.size(); ++i) {
    Outline& outline = outlines[components.runs[i].component];
    outline.region = regions.runs[i].component;
    outline.pixels = components.list[components.runs[i].component].pixels;
    outline.covered += covered_by(components.runs[i], mask);
  }
  Tracer tracer(mask);
  for (const MaskRun& run : components.runs) {
    for (std::int64_t x = run.begin; x < run.end; ++x) {
      if (!tracer.starts_at(x, run.y)) continue;
      for (Ring& ring : simple_rings(tracer.walk(x, run.y), mask.size.width + 1)) {
        Outline& outline = outlines[run.component];
        if (doubled_area(ring) > 0) {
          outline.outer = std::move(ring);
        } else {
          outline.holes.push_back(std::move(ring));
        }
      }
    }
  }
  return outlines;
}

std::int64_t count_corners(const Mask& mask) {
  const auto width = static_cast<std::size_t>(mask.size.width);
  const std::vector<std::uint8_t> none(width);
  std::int64_t corners = 0;
  for (std::int64_t y = 0; y <= mask.size.height; ++y) {
    const auto row = [&](std::int64_t number) {
      return number < 0 || number == mask.size.height ? none.data()
                                                      : mask.pixels.data() + static_cast<std::size_t>(number) * width;
    };
    const std::uint8_t* const above = row(y - 1);
    const std::uint8_t* const below = row(y);
    bool left_above = false;
    bool left_below = false;
    for (std::size_t x = 0; x <= width; ++x) {
      const bool right_above = x < width && above[x] != 0;
      const bool right_below = x < width && below[x] != 0;
      // A line turns where one or three of the four pixels are tissue, and two lines where two are across a corner.
      const int tissue = left_above + left_below + right_above + right_below;
      corners += tissue % 2 + (tissue == 2 && left_above == right_below ? 2 : 0);
      left_above = right_above;
      left_below = right_below;
    }
  }
  return corners;
}

std::string geojson_of(const Mask& mask, const std::optional<double>& mpp, double simplify) {
  std::string text = R"({"type":"FeatureCollection","features":[)";
  const auto append_ring = [&](const Ring& ring) {
    text += '[';
    for (std::size_t i = 0; i <= ring.size(); ++i) {
      const Corner& corner = ring[i % ring.size()];
      text += i == 0 ? "[" : ",[";
      append_number(text,
                    std::min(static_cast<double>(corner.x) * mask.scale.x, static_cast<double>(mask.level0.width)));
      text += ',';
      append_number(text,
                    std::min(static_cast<double>(corner.y) * mask.scale.y, static_cast<double>(mask.level0.height)));
      text += ']';
    }
    text += ']';
  };
  const auto append_polygon = [&](const Outline& outline) {
    text += '[';
    append_ring(outline.outer);
    for (const Ring& hole : outline.holes) {
      text += ',';
      append_ring(hole);
    }
    text += ']';
  };
  std::vector<Outline> outlines = find_outlines(mask);
  simplify_outlines(outlines, simplify);
  // Regions in the order of their first pixels, as outlines are.
  std::vector<std::vector<const Outline*>> regions;
  for (const Outline& outline : outlines) {
    regions.resize(std::max(regions.size(), outline.region + 1));
    regions[outline.region].push_back(&outline);
  }
  bool first = true;
  for (const std::vector<const Outline*>& parts : regions) {
    text += first ? "\n" : ",\n";
    first = false;
    const bool is_one = parts.size() == 1;
    text += std::string(R"({"type":"Feature","geometry":{"type":")") + (is_one ? "Polygon" : "MultiPolygon") +
            R"(","coordinates":)" + (is_one ? "" : "[");
    std::int64_t pixels = 0;
    double covered = 0.0;
    for (const Outline* part : parts) {
      if (part != parts.front()) text += ',';
      append_polygon(*part);
      pixels += part->pixels;
      covered += part->covered;
    }
    text += is_one ? "" : "]";
    text += R"(},"properties":{"objectType":"annotation","classification":{"name":"Tissue"},"measurements":{)";
    if (mpp) {
      text += R"("Area um^2":)";
      append_number(text, covered * *mpp * *mpp);
      text += ',';
    }
    text += R"("Mask pixels":)" + std::to_string(pixels) + "}}}";
  }
  text += "\n]}\n";
  return text;
}

}  // namespace slidestream::operators
